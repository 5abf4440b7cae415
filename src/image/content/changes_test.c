/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static char top[64];
static int top_fd;

static void begin(void)
{
	(void)str_copy(top, sizeof(top), "/tmp/nacre-changes-XXXXXX");
	if (!mkdtemp(top))
		abort();
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(top_fd >= 0);
	CHECK_INT(mkdirat(top_fd, "upper", 0755), 0);
	CHECK_INT(mkdirat(top_fd, "image", 0755), 0);
}

static void end(void)
{
	top_fd = fd_close(top_fd);
	CHECK_INT(scratch_remove(top), 0);
}

static void dir(const char *path)
{
	CHECK_INT(mkdirat(top_fd, path, 0755), 0);
}

static void file(const char *path)
{
	_cleanup_fd_ int fd = openat(top_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
}

static void finds(const char *wanted)
{
	_cleanup_fd_ int upper_fd = openat(top_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int image_fd = openat(top_fd, "image", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf told = BUF_INIT;
	struct changes c = { .n = 0 };
	struct error err = ERROR_INIT;

	CHECK_INT(changes_find(&c, upper_fd, image_fd, &err), 0);
	for (size_t i = 0; i < c.n; i++)
		CHECK_INT(buf_addf(&told, "%s\n", c.list[i]), 0);
	CHECK_INT(buf_add(&told, "", 1), 0);
	CHECK_STR((const char *)buf_data(&told), wanted);
	changes_done(&c);
}

static void tells_nothing_and_everything(void)
{
	begin();
	finds("");
	dir("image/etc");
	dir("image/a");
	dir("image/a/b");
	file("image/a/b/same");
	file("image/a/b/written");
	dir("upper/etc");
	file("upper/etc/hosts");
	dir("upper/proc");
	dir("upper/dev");
	finds("");
	dir("upper/a");
	dir("upper/a/b");
	file("upper/a/b/written");
	dir("upper/a/b/new");
	file("upper/a/b/new/x");
	file("upper/a-b");
	finds("C/a\nC/a/b\nA/a/b/new\nA/a/b/new/x\nC/a/b/written\nA/a-b\n");
	CHECK_INT(fchmodat(top_fd, "upper/a", 0700, 0), 0);
	finds("C/a\nC/a/b\nA/a/b/new\nA/a/b/new/x\nC/a/b/written\nA/a-b\n");
	end();
}

static void tells_what_is_gone(void)
{
	begin();
	dir("image/d");
	file("image/d/x");
	file("image/d/y");
	file("image/f");
	dir("upper/d");
	if (mknodat(top_fd, "upper/f", S_IFCHR, makedev(0, 0)) < 0 && errno == EPERM) {
		end();
		return;
	}
	CHECK_INT(mknodat(top_fd, "upper/never", S_IFCHR, makedev(0, 0)), 0);
	finds("D/f\n");
	file("upper/d/y");
	{
		_cleanup_fd_ int fd = openat(top_fd, "upper/d", O_RDONLY | O_CLOEXEC);

		if (fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) == 0)
			finds("C/d\nD/d/x\nC/d/y\nD/f\n");
	}
	end();
}

/* A link is what it is; nobody goes where it leads. */
static void follows_nothing(void)
{
	begin();
	dir("image/d");
	file("image/d/x");
	dir("image/was");
	CHECK_INT(symlinkat("/etc", top_fd, "upper/d"), 0);
	CHECK_INT(symlinkat("d", top_fd, "image/link"), 0);
	dir("upper/link");
	file("upper/link/x");
	file("upper/was");
	finds("C/d\nC/link\nA/link/x\nC/was\n");
	end();
}

static void has_limits(void)
{
	struct changes c = { .n = 0 };
	struct error err = ERROR_INIT;
	char name[201];
	int fd, upper_fd, image_fd;

	begin();
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	upper_fd = openat(top_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	image_fd = openat(top_fd, "image", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = fd_copy(upper_fd);
	for (int i = 0; i < 22; i++) {
		int next;

		CHECK_INT(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)fd_close(fd);
		fd = next;
	}
	CHECK(changes_find(&c, upper_fd, image_fd, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	(void)fd_close(fd);
	(void)fd_close(upper_fd);
	(void)fd_close(image_fd);
	end();
}

UNIT_MAIN({ "tells_nothing_and_everything", tells_nothing_and_everything },
	  { "tells_what_is_gone", tells_what_is_gone }, { "follows_nothing", follows_nothing },
	  { "has_limits", has_limits })
