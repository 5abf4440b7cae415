/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_LOG_H
#define NACRE_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * The log of a process: a constant message and fields, one line each, to one descriptor (stderr
 * unless told otherwise). Floors 0 to 4 only use log_debug(). No function here fails or ends the
 * process.
 *
 *   log_warn("cannot remove the cgroup", LOG_STR("pod", name), LOG_ERR(err));
 *   2026-01-31T10:00:00.000000000Z warn cannot remove the cgroup pod=web err="rmdir web: Device
 * busy"
 *
 * In the JSON form the same line is {"time":...,"level":"warn","msg":...,"pod":"web","err":...}.
 * Values with blanks, quotes or control bytes are quoted and escaped, so a line is always one line.
 */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_COUNT };
enum log_form { LOG_FORM_TEXT, LOG_FORM_JSON };

struct log_field {
	const char *name;
	const char *text; /* NULL: the number */
	int64_t number;
};

static inline const char *log_text_or_empty(const char *text)
{
	return text ? text : "";
}

#define LOG_STR(n, v) ((struct log_field){ .name = (n), .text = log_text_or_empty(v) })
#define LOG_INT(n, v) ((struct log_field){ .name = (n), .number = (int64_t)(v) })
#define LOG_ERR(e) ((struct log_field){ .name = "err", .text = error_text(e) })

void log_configure(int fd, enum log_level least, enum log_form form);
/* The level for a word ("debug", "info", "warn", "error"), or -1. */
int log_level_parse(const char *word);

/* Called with each line that was written, without its end; by whatever thread. NULL: nobody is. */
void log_set_tap(void (*tap)(enum log_level level, const char *line, size_t len));

void log_write(enum log_level level, const char *message, const struct log_field *fields, size_t n);

#define log_at(level, message, ...)                                                                \
	log_write(level, message, (const struct log_field[]){ { .name = NULL }, ##__VA_ARGS__ },   \
		  sizeof((const struct log_field[]){ { .name = NULL }, ##__VA_ARGS__ }) /          \
			  sizeof(struct log_field))

#define log_debug(message, ...) log_at(LOG_DEBUG, message, ##__VA_ARGS__)
#define log_info(message, ...) log_at(LOG_INFO, message, ##__VA_ARGS__)
#define log_warn(message, ...) log_at(LOG_WARN, message, ##__VA_ARGS__)
#define log_error(message, ...) log_at(LOG_ERROR, message, ##__VA_ARGS__)

#endif
