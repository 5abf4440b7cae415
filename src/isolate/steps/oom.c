/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "isolate/plan/notes.h"

static int oom_read(int fd, int *ret)
{
	char text[16];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	*ret = (int)strtol(text, NULL, 10);
	return 0;
}

static int oom_write(int fd, int value)
{
	char text[16];
	int len = str_printf(text, sizeof(text), "%d", value);

	return len < 0 || pwrite(fd, text, (size_t)len, 0) < 0 ? -errno : 0;
}

int oom_score_open(int proc_fd)
{
	return rootfd_open_beneath(proc_fd, "self/oom_score_adj", O_RDONLY);
}

bool oom_score_is(int fd, int want)
{
	int now = 0;

	return oom_read(fd, &now) == 0 && now == want;
}

/* As near as the kernel allows; *want becomes what it is then. */
static int oom_write_near(int fd, int now, int *want)
{
	int r = oom_write(fd, *want);

	if (r == -EACCES && now > 0 && *want < 0) {
		*want = 0;
		r = oom_write(fd, 0);
	}
	if (r != -EACCES)
		return r;
	*want = now;
	return 0;
}

int oom_score_set(int proc_fd, const char *task, int want, struct isolate_notes *notes,
		  struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char name[48];
	int now = 0, near = want;
	int r;

	r = str_printf(name, sizeof(name), "%s/oom_score_adj", task);
	fd = r < 0 ? r : rootfd_open_beneath(proc_fd, name, O_RDWR);
	if (fd < 0)
		return error_set(err, fd, "open oom_score_adj");
	r = oom_read(fd, &now);
	if (r < 0)
		return error_set(err, r, "read oom_score_adj");
	if (now == want)
		return 0;

	r = oom_write_near(fd, now, &near);
	if (r < 0)
		return error_set(err, r, "write oom_score_adj");
	r = oom_read(fd, &now);
	if (r < 0 || now != near)
		return error_set(err, r < 0 ? r : -EIO, "read oom_score_adj back");
	if (now != want)
		notes_add(notes, ISOLATE_NOTE_OOM_SCORE,
			  "%d is lower than the kernel allows without CAP_SYS_RESOURCE, %d is set",
			  want, now);
	return 0;
}
