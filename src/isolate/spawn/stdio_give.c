/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/stdio_give.h"

#include <errno.h>
#include <linux/major.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The kernel has eight of them, for slaves of pseudoterminals. */
#define STDIO_PTY_MAJORS 8

static bool stdio_is_pty(const struct stat *st)
{
	unsigned number = major(st->st_rdev);

	return S_ISCHR(st->st_mode) && number >= UNIX98_PTY_SLAVE_MAJOR &&
	       number < UNIX98_PTY_SLAVE_MAJOR + STDIO_PTY_MAJORS;
}

/* Without the privilege, with an owner or a user that is not mapped here, and on a file system that
 * is read-only. */
static bool stdio_owner_stays(int error)
{
	return error == EPERM || error == EINVAL || error == EOVERFLOW || error == EROFS;
}

static bool stdio_is_given(const struct stat *st, bool terminal)
{
	return S_ISFIFO(st->st_mode) || (terminal && stdio_is_pty(st));
}

bool stdio_has_any(const int fds[3], bool terminal)
{
	struct stat st;

	for (size_t i = 0; i < 3; i++)
		if (fds[i] >= 0 && fstat(fds[i], &st) == 0 && stdio_is_given(&st, terminal))
			return true;
	return false;
}

int stdio_give(const int fds[3], uid_t uid, bool terminal, struct error *err)
{
	struct stat st;

	for (size_t i = 0; i < 3; i++) {
		if (fds[i] < 0)
			continue;
		if (fstat(fds[i], &st) < 0)
			return error_set(err, -errno, "look at stream %zu", i);
		if (st.st_uid == uid || !stdio_is_given(&st, terminal))
			continue;
		if (fchown(fds[i], uid, (gid_t)-1) < 0 && !stdio_owner_stays(errno))
			return error_set(err, -errno, "change the owner of stream %zu", i);
	}
	return 0;
}
