/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PROMPT_H
#define NACRE_CLI_PROMPT_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Asks the user for one line, of which nothing is shown where it is secret: on standard error, and
 * at the terminal that standard input is. The text is the caller's. ERROR_PRECONDITION: it is none;
 * ERROR_CANCELLED: the user has typed ^C or ^D, or the terminal has gone.
 */
int prompt_line(char **ret, const char *question, bool secret, struct error *err);

#endif
