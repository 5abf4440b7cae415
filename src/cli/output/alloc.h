/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_ALLOC_H
#define NACRE_CLI_ALLOC_H

#include <stddef.h>

#include "base/macros.h"

/* Memory of a program that lives for one command: without memory it says so and aborts. */

/* As reallocarray(3), never NULL. */
void *xrealloc(void *p, size_t n, size_t size) _must_check_;
char *xstrdup(const char *s) _must_check_;
char *xformat(const char *fmt, ...) _printf_(1, 2) _must_check_;

#endif
