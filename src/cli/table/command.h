/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_COMMAND_H
#define NACRE_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/text/args.h"
#include "cli/remote/target.h"

/* A command, and its arguments. The table of all is in commands.c. */

struct command_table;

#define CLI_FAILED 125
#define CLI_OPERANDS_ANY ((size_t)-1)

/* The settings of the whole run. */
struct cli {
	struct client_target daemon;
	bool json;
	bool color; /* of standard output */
	const struct command_table *commands;
};

struct command {
	const char *name;     /* one word, or two ("image ls") */
	const char *operands; /* as its usage shows them */
	const char *summary;  /* one line, no full stop */
	/* Paragraphs of at most 88 columns, parted by empty lines; lines that begin with four
	 * blanks are examples. */
	const char *help;
	const struct arg_option *options; /* or NULL */
	size_t n_min, n_max;              /* operands */
	size_t n_verbatim; /* after so many operands nothing is an option; 0: all may be */
	bool alone;        /* speaks to no daemon: which one is not looked for */
	/* Returns the exit status; NULL: done elsewhere (struct cli_extra). */
	int (*run)(const struct cli *cli, const struct args *args);
};

struct command_group {
	const struct command *commands;
	size_t n;
};

struct command_table {
	const struct command_group *const *groups;
	size_t n;
	/* The options of `nacre run` for its container alone, for each container of `nacre pod`. */
	const struct arg_option *container_options;
};

/* The i-th of all commands, in the order in which they are shown; NULL behind the last. */
const struct command *command_at(const struct command_table *t, size_t i);
/* Options that every command takes. */
extern const struct arg_option command_options[];

/* The command that the n words begin with, and how many words its name has; or NULL. */
const struct command *command_find(const struct command_table *t, char *const *words, size_t n,
				   size_t *ret_words);
/* A sentence for words that name no command. */
int command_unknown(const struct command_table *t, char *const *words, size_t n, struct error *err);

/* "nacre: TEXT" on standard error. Returns CLI_FAILED. */
int cli_complain(const char *fmt, ...) _printf_(1, 2);
int cli_fail(const struct error *err);

#endif
