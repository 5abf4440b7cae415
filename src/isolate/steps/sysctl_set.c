/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/sysctl_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "isolate/plan/sysctl.h"

/* Whether two texts say the same: word by word, as numbers where both are. The kernel may know more
 * words than were written. */
static bool sysctl_same(const char *want, const char *have)
{
	static const char blank[] = " \t\n";

	for (;;) {
		char *want_end, *have_end;
		size_t want_len, have_len;

		want += strspn(want, blank);
		have += strspn(have, blank);
		want_len = strcspn(want, blank);
		have_len = strcspn(have, blank);
		if (want_len == 0)
			return true;
		if (strtoll(want, &want_end, 0) != strtoll(have, &have_end, 0) ||
		    want_end != want + want_len || have_end != have + have_len)
			if (want_len != have_len || memcmp(want, have, want_len) != 0)
				return false;
		want += want_len;
		have += have_len;
	}
}

static int sysctl_read_back(int proc_fd, const char *path, const char *value, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open_beneath(proc_fd, path, O_RDONLY);
	char text[SYSCTL_VALUE_MAX + 1];
	ssize_t n;

	if (fd == -EACCES) /* one that can only be written */
		return 0;
	if (fd < 0)
		return error_set(err, fd, "open it");
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return error_set(err, -errno, "read it back");
	text[n] = '\0';
	if (!sysctl_same(value, text))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the kernel has made something else of %s", value);
	return 0;
}

int isolate_sysctl_set(int proc_fd, const struct isolate_sysctl *sysctl, struct error *err)
{
	char path[sizeof("sys/") + SYSCTL_NAME_MAX] = "sys/";
	_cleanup_fd_ int fd = -1;
	size_t len = strlen(sysctl->value);
	int r;

	r = sysctl_path(path + strlen(path), sizeof(path) - strlen(path), sysctl->name);
	if (r < 0)
		return error_set(err, r, "no such name");
	fd = rootfd_open_beneath(proc_fd, path, O_WRONLY);
	if (fd == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION, "the kernel has no such sysctl");
	if (fd < 0)
		return error_set(err, fd, "open it");
	if (pwrite(fd, sysctl->value, len, 0) != (ssize_t)len) {
		if (errno == EINVAL || errno == ERANGE)
			return error_refuse(err, ERROR_INVALID, "the kernel does not take %s",
					    sysctl->value);
		return error_set(err, -errno, "write %s", sysctl->value);
	}
	return sysctl_read_back(proc_fd, path, sysctl->value, err);
}
