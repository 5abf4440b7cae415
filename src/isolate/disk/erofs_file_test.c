/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/erofs_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/disk/disk_bed_test.h"
#include "unit.h"

static char dir[64];

static int begin(void)
{
	int fd;

	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	(void)str_copy(dir, sizeof(dir), "/tmp/nacre-erofs-file-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void check_empty(int dir_fd)
{
	_cleanup_strv_ char **names = NULL;

	CHECK_INT(fd_list_dir(dir_fd, &names), 0);
	CHECK_INT(strv_len(names), 0);
}

static void is_tried(void)
{
	_cleanup_fd_ int fd = begin();
	struct error err = ERROR_INIT;
	int r = erofs_file_try(fd, &err);

	check_empty(fd);
	CHECK(rmdir(dir) == 0);
	if (r < 0 && err.kind == ERROR_PRECONDITION)
		SKIP("the kernel mounts no file");
	CHECK_STR(err.text, "");
	CHECK_INT(r, 0);
}

static void says_why_not(void)
{
	_cleanup_fd_ int below_fd = begin(), fd = -1;
	struct error err = ERROR_INIT;

	CHECK(below_fd >= 0 && mount("none", dir, "tmpfs", 0, NULL) == 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(erofs_file_try(fd, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(str_has_prefix(err.text, "the kernel "));
	check_empty(fd);
	fd = fd_close(fd);
	CHECK(umount(dir) == 0);
	CHECK(rmdir(dir) == 0);
	err = (struct error)ERROR_INIT;
	CHECK(erofs_file_try(STDIN_FILENO, &err) < 0);
	CHECK(str_has_prefix(err.text, "make a file to try EROFS with: "));
}

static void mounts_what_mkfs_has_made(void)
{
	_cleanup_fd_ int fd = begin(), file_fd = -1, mount_fd = -1;
	struct error err = ERROR_INIT;
	char tree[80], image[80];
	struct stat st;
	bool is_made;

	(void)str_printf(tree, sizeof(tree), "%s/tree", dir);
	(void)str_printf(image, sizeof(image), "%s/image", dir);
	CHECK(mkdir(tree, 0700) == 0 && mkdirat(fd, "tree/below", 0751) == 0);
	is_made = erofs_file_try(fd, &err) == 0 && disk_bed_mkfs(image, tree);
	if (is_made) {
		file_fd = open(image, O_RDONLY | O_CLOEXEC);
		/* Neither its name nor anybody else's descriptor is needed. */
		CHECK(unlink(image) == 0);
		mount_fd = erofs_file_mount(file_fd, &err);
		CHECK_STR(err.text, "");
		file_fd = fd_close(file_fd);
		CHECK(fstatat(mount_fd, "below", &st, 0) == 0 && st.st_mode == (S_IFDIR | 0751));
		CHECK(mkdirat(mount_fd, "other", 0700) < 0 && errno == EROFS);
	}
	CHECK(unlinkat(fd, "tree/below", AT_REMOVEDIR) == 0 && rmdir(tree) == 0);
	CHECK(rmdir(dir) == 0);
	if (!is_made)
		SKIP("the kernel mounts no file, or no mkfs.erofs");
}

static void refuses_what_is_none(void)
{
	_cleanup_fd_ int fd = begin(), file_fd = -1;
	struct error err = ERROR_INIT;

	file_fd = openat(fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	CHECK(file_fd >= 0 && ftruncate(file_fd, 8192) == 0);
	CHECK(erofs_file_mount(file_fd, &err) < 0);
	CHECK(err.text[0] != '\0');
	CHECK(rmdir(dir) == 0);
}

UNIT_MAIN({ "it is tried, and nothing is left", is_tried }, { "it says why not", says_why_not },
	  { "it mounts what mkfs.erofs has made", mounts_what_mkfs_has_made },
	  { "it refuses what is none", refuses_what_is_none })
