/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/cmd/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "oci/config/given.h"

#define REPORT_TEXT_MAX 2048

static struct {
	int fd;
	bool json, debug;
} report = { .fd = -1 };

int report_open(const char *path, const char *format, bool debug, struct error *err)
{
	if (!str_eq(format, "text") && !str_eq(format, "json"))
		return error_refuse(err, ERROR_INVALID, "--log-format is text or json, not %s",
				    format);
	report.json = str_eq(format, "json");
	report.debug = debug;
	if (str_empty(path))
		return 0;
	report.fd = given_open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	return report.fd < 0 ? error_set(err, report.fd, "open the log file %s", path) : 0;
}

void report_close(void)
{
	report.fd = fd_close(report.fd);
}

/* In one write, so that lines of several processes do not mix. */
static void report_log(const char *level, const char *text)
{
	_cleanup_str_ char *line = NULL;
	char now[CLOCK_TEXT_SIZE];
	size_t len = 0;
	FILE *to;

	if (report.fd < 0)
		return;
	to = open_memstream(&line, &len);
	if (!to)
		return;
	clock_format(now, clock_real());
	if (report.json) {
		struct json j = { .to = to, .compact = true };

		json_put_object(&j, NULL);
		json_put_string(&j, "level", level);
		json_put_string(&j, "msg", text);
		json_put_string(&j, "time", now);
		json_put_end(&j);
	} else {
		struct json j = { .to = to, .compact = true };

		(void)fprintf(to, "time=\"%s\" level=%s msg=", now, level);
		json_put_string(&j, NULL, text);
	}
	if (fclose(to) == 0)
		(void)fd_write_full(report.fd, line, len);
}

static void report_say(const char *level, const char *mark, const char *text)
{
	report_log(level, text);
	(void)fprintf(stderr, "nacre-oci: %s%s\n", mark, text);
}

void report_error(const struct error *err)
{
	report_say("error", "", error_text(err));
}

void report_warning(const char *fmt, ...)
{
	char text[REPORT_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	report_say("warning", "warning: ", text);
}

void report_debug(const char *fmt, ...)
{
	char text[REPORT_TEXT_MAX];
	va_list args;

	if (!report.debug)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	report_log("debug", text);
}
