/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_DOCKER_H
#define NACRE_CLI_DOCKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"

/*
 * This program under the name of docker or podman: a command line of theirs becomes one of ours, by
 * the tables in docker.c. A feature that nacre does not have is refused, with the reason; words
 * that no table has stay as they are, and are nacre's own.
 */

/* Whether that is the name of one of them ("/usr/local/bin/docker"). */
bool docker_is_name(const char *argv0);

struct command_table;

struct docker_line {
	char **words; /* ends with NULL; the first is the program's name */
	size_t n;
};

/* ERROR_UNSUPPORTED and ERROR_INVALID say what cannot be done and why. docker_line_done() in any
 * case. */
int docker_line_init(struct docker_line *l, const struct command_table *all, int argc, char **argv,
		     struct error *err);
void docker_line_done(struct docker_line *l);

#endif
