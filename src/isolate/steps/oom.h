/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_OOM_H
#define NACRE_ISOLATE_OOM_H

#include <stdbool.h>

#include "base/log/error.h"

struct isolate_notes;

/*
 * Sets the OOM score of a task ("self", or a number in this /proc) and sees it taken; where the
 * kernel refuses to lower it (without CAP_SYS_RESOURCE), comes as low as 0 or leaves it, and notes
 * that (notes: or NULL). Private to this area. proc_fd: a private mount, and no /proc that a
 * container could have mounted something in (security.md A19).
 */
int oom_score_set(int proc_fd, const char *task, int want, struct isolate_notes *notes,
		  struct error *err);

/* The own score, to be read again and again, or a negative errno. */
int oom_score_open(int proc_fd);
/* Whether it is that; false too where it cannot be read. */
bool oom_score_is(int fd, int want);

#endif
