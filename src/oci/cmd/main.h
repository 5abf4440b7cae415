/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_MAIN_H
#define NACRE_OCI_MAIN_H

#include <stdbool.h>

/*
 * The engine behind the command line of OCI runtimes: `nacre oci COMMAND …`, or a program of the
 * name nacre-oci. It needs no daemon, starts no thread and initialises nothing of the rest of the
 * house. words: what to take apart, without the name of the program; argv: all of the process.
 */
int oci_main(int n_words, char **words, char **argv);

/* Whether a program of this name is the runtime. */
bool oci_is_name(const char *argv0);

#endif
