/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/scratch_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "unit.h"

static mode_t mode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_mode;
}

static void made_once(void)
{
	char path[] = "/tmp/nacre-scratch-XXXXXX";
	struct error err = ERROR_INIT;
	_cleanup_fd_ int own_fd = -1, dir_fd = -1, same_fd = -1, file_fd = -1;
	struct stat a, b;

	CHECK(mkdtemp(path) != NULL);
	own_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir_fd = scratch_dir_open(own_fd, "s1", false, &err);
	same_fd = scratch_dir_open(own_fd, "s1", false, &err);
	file_fd = scratch_dir_open(own_fd, "f1", true, &err);
	CHECK(dir_fd >= 0 && same_fd >= 0 && file_fd >= 0);
	CHECK(mode_of(dir_fd) == (S_IFDIR | 0777) && mode_of(file_fd) == (S_IFREG | 0666));
	CHECK(fstat(dir_fd, &a) == 0 && fstat(same_fd, &b) == 0 && a.st_ino == b.st_ino);
	/* What its users did to it stays. */
	CHECK_INT(fchmodat(own_fd, "scratch.s1", 0700, 0), 0);
	(void)fd_close(same_fd);
	same_fd = scratch_dir_open(own_fd, "s1", false, &err);
	CHECK(mode_of(same_fd) == (S_IFDIR | 0700));
	CHECK(scratch_dir_open(own_fd, "../x", false, &err) == -EINVAL);
	CHECK(scratch_dir_open(own_fd, "", true, &err) == -EINVAL);
	CHECK_INT(unlinkat(own_fd, "scratch.s1", AT_REMOVEDIR), 0);
	CHECK_INT(unlinkat(own_fd, "scratch.f1", 0), 0);
	CHECK_INT(rmdir(path), 0);
}

UNIT_MAIN({ "made once", made_once })
