/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *alloc_checked(void *p)
{
	if (!p) {
		(void)fputs("nacre: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
	return alloc_checked(reallocarray(p, n ? n : 1, size));
}

char *xstrdup(const char *s)
{
	return alloc_checked(strdup(s));
}

char *xformat(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return alloc_checked(n < 0 ? NULL : text);
}
