/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_ARGS_H
#define NACRE_BASE_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"

/*
 * The arguments of a command, taken apart by tables of options: "--name VALUE", "--name=VALUE",
 * "-n VALUE", "-nVALUE", "--flag", and "-abc" for flags of one letter. "--" ends the options.
 * Options may stand among the operands, until so many operands have been seen that the rest belongs
 * to somebody else (the command line of a container). An option that is given twice counts as it
 * was given last, unless its reader asks for all (args_next()).
 */

struct arg_option {
	const char *name;  /* without "--"; NULL ends a table */
	char letter;       /* or 0 */
	const char *value; /* the word for its value in help; NULL: a flag */
	const char *help;
};

struct arg_given {
	const struct arg_option *option;
	char *value;
};

struct args {
	const struct arg_option *tables[2];
	struct arg_given *given;
	size_t n_given;
	char **operands; /* the strings are argv's */
	size_t n_operands;
	/* After a failure: the long option that no table has, without "--", up to '='; or NULL. */
	const char *unknown;
};

#define ARGS_INIT                                                                                  \
	{                                                                                          \
		.given = NULL                                                                      \
	}
#define ARGS_VERBATIM_NEVER ((size_t)-1)

/*
 * Takes argc words apart (without the command's own name). own and common are tables, common may be
 * NULL. After n_verbatim operands every word is an operand. ERROR_INVALID, with the option's name
 * and a near one's where there is one; -ENOMEM. args_done() in any case.
 */
int args_parse(struct args *a, const struct arg_option *own, const struct arg_option *common,
	       size_t n_verbatim, int argc, char **argv, struct error *err);
void args_done(struct args *a);

/* The name must be in a table. */
bool args_flag(const struct args *a, const char *name);
/* NULL where the option was not given. */
char *args_value(const struct args *a, const char *name);
/* Each value of an option in turn: start with *pos = 0, ends with NULL. */
char *args_next(const struct args *a, const char *name, size_t *pos);

/* How many letters must be put in, taken out or changed, or change places with their neighbour, to
 * make b of a; for hints. */
size_t text_distance(const char *a, const char *b);

#endif
