/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_USAGE_H
#define NACRE_DAEMON_USAGE_H

#include <stdbool.h>

/* How `nacre daemon` is called. */
struct daemon_options {
	const char *config, *root, *run, *socket;
	bool config_given, replace;
};

/* Sets what is given. -1 to go on, else the exit status: what was wrong, or asked for, was told. */
int daemon_options_parse(struct daemon_options *o, int argc, char **argv);

#endif
