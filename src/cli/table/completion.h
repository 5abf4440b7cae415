/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_COMPLETION_H
#define NACRE_CLI_COMPLETION_H

#include <stdio.h>

struct command_table;

/* A script for a shell ("bash", "zsh", "fish") that completes commands and options, from the table
 * of commands. -EINVAL for another shell. */
int completion_write(const struct command_table *all, const char *shell, FILE *to);
/* The i-th of these shells; NULL behind the last. */
const char *completion_shell(size_t i);

#endif
