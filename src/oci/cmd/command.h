/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_COMMAND_H
#define NACRE_OCI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/log/error.h"
#include "base/text/args.h"

/* A command of the runtime, and its arguments. The table of all is in commands.c. */

#define OCI_ROOT_DEFAULT "/run/nacre/oci"
#define OCI_OPERANDS_ANY ((size_t)-1)

struct oci_table;

/* The settings of the whole run. */
struct oci {
	const struct oci_table *table;
	const char *root;
	bool systemd_cgroup;
	char **argv; /* of the process, to execute it again */
};

struct oci_command {
	const char *name;
	const char *operands; /* as its usage shows them */
	const char *summary;  /* one line, no full stop */
	const char *help;     /* paragraphs; or NULL */
	const struct arg_option *options;
	size_t n_min, n_max; /* operands */
	size_t n_verbatim;   /* after so many operands nothing is an option; 0: all may be */
	/* The exit status, or a negative errno with err set. */
	int (*run)(const struct oci *oci, const struct args *args, struct error *err);
};

struct oci_table {
	const struct oci_command *commands;
	size_t n;
	const struct arg_option *options; /* before the command */
};

/* The one of all commands, for main.c, which hands it to those who show it. */
extern const struct oci_table oci_table;

void oci_help_overview(const struct oci_table *t, FILE *to);
void oci_help_command(const struct oci_command *c, FILE *to);

#endif
