/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_WORDS_H
#define NACRE_RUNTIME_WORDS_H

#include "base/log/error.h"

/*
 * Splits a command line into words, as systemd's ExecStart= does: blanks separate, '…' and "…" keep
 * them, '\' takes the next byte as it is (not within '…'). No variables, no globs, no shell. *ret
 * is a strv; an unfinished quote or escape is ERROR_INVALID.
 */
int words_split(const char *line, char ***ret, struct error *err);

#endif
