/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_CLI_H
#define NACRE_CLI_CLI_H

#include <stddef.h>

/* The command line: `nacre [OPTION…] COMMAND …`, a client of the daemon's gRPC API. */

/* A command that is taught here and done elsewhere. run gets its own name as argv[0] and takes its
 * options apart itself, except --help. */
struct cli_extra {
	const char *name;
	int (*run)(int argc, char **argv);
};

/*
 * All of a run: returns the exit status. That of the workload where there is one, 128 + n where
 * signal n ended it, 127 for a program that was not found, 126 for one that is not executable, 125
 * where nacre itself failed.
 */
int cli_main(int argc, char **argv, const struct cli_extra *extras, size_t n_extras);

#endif
