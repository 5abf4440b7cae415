/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_FORMAT_H
#define NACRE_CLI_FORMAT_H

#include <stdio.h>

#include "base/log/error.h"
#include "base/text/json.h"

/*
 * The language of --format: text, in which {PATH} stands for a value of the command's JSON.
 *
 *   PATH     names parted by '.', each with any number of [N] behind it: {containers[0].pid}.
 *            {} is all of it.
 *   [*]      every element; the values stand behind one another, parted by commas
 *   {{ }}    a brace
 *   \n \t \\ line feed, tabulator, backslash
 *
 * A string is written as it is, without quotes, null as "", an object or an array as JSON.
 */

/* Whether it is one. ERROR_INVALID names the position, counted in bytes from 1. */
int format_check(const char *format, struct error *err);
/* Writes it with the values of `json`, one document as json.h writes it. ERROR_INVALID with the
 * position for a name that is not there; nothing is written then. */
int format_write(const char *format, const char *json, FILE *to, struct error *err);
/* The same with the JSON that `view` writes of `what`, on standard output. */
typedef void (*format_view_fn)(struct json *j, const void *what);
int format_show(const char *format, format_view_fn view, const void *what, struct error *err);

#endif
