/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_HELP_H
#define NACRE_CLI_HELP_H

#include <stdbool.h>
#include <stdio.h>

/* The text of `nacre help`, from the table of commands. */

struct command;
struct command_table;

void help_overview(const struct command_table *all, FILE *to);
void help_command(const struct command *c, FILE *to);

/* The commands whose first of two words is `first`. Returns false, and writes nothing, for none. */
bool help_group(const struct command_table *all, const char *first, FILE *to);

#endif
