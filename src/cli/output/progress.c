/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cli/output/output.h"
#include "cli/output/text.h"

#define PROGRESS_AFTER NSEC_PER_SEC
#define PROGRESS_PERIOD (100 * NSEC_PER_MSEC)
#define PROGRESS_LINE 512

void progress_init(struct progress *p)
{
	const char *term = getenv("TERM");

	*p = (struct progress){
		.wanted = isatty(STDERR_FILENO) && term && !str_eq(term, "dumb"),
		.due = clock_mono() + PROGRESS_AFTER,
	};
}

void progress_tell(struct progress *p, const char *fmt, ...)
{
	unsigned width = output_width(STDERR_FILENO);
	nsec_t now = p->wanted ? clock_mono() : 0;
	char line[PROGRESS_LINE];
	va_list ap;

	if (!p->wanted || now < p->due)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	str_clean(line);
	if (width > 1)
		line[text_prefix(line, width - 1)] = '\0';
	(void)fprintf(stderr, "\r%s\033[K", line);
	(void)fflush(stderr);
	p->drawn = true;
	p->due = now + PROGRESS_PERIOD;
}

void progress_done(struct progress *p)
{
	if (p->drawn)
		(void)fputs("\r\033[K", stderr);
	(void)fflush(stderr);
	p->drawn = false;
}
