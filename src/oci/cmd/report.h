/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_REPORT_H
#define NACRE_OCI_REPORT_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Messages of the runtime to its caller: to standard error for people, and to the file of --log for
 * callers, who take the last line with the level "error" from it. A line is
 *
 *   {"level":"error","msg":"...","time":"2026-01-31T10:00:00Z"}
 *   time="2026-01-31T10:00:00Z" level=error msg="..."
 *
 * as the runtimes of the field write them.
 */

/* path: NULL for none. format: "text" or "json". The file is made where it is missing. */
int report_open(const char *path, const char *format, bool debug, struct error *err);
void report_close(void);

void report_error(const struct error *err);
void report_warning(const char *fmt, ...) _printf_(1, 2);
/* Only with --debug, and only to the file. */
void report_debug(const char *fmt, ...) _printf_(1, 2);

#endif
