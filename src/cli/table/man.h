/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_MAN_H
#define NACRE_CLI_MAN_H

#include <stdio.h>

struct command_table;

/* nacre(1) in roff, from the table of commands. */
void man_write(const struct command_table *all, FILE *to);

#endif
