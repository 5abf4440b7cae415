/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/ext4_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "unit.h"

static int make_file(void)
{
	int fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	return fd;
}

static void sizes_are_bounded(void)
{
	_cleanup_fd_ int fd = make_file();
	struct error err = ERROR_INIT;

	CHECK(ext4_file_make(fd, EXT4_FILE_MIN - 1, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK(ext4_file_make(fd, EXT4_FILE_MAX + 1, &err) < 0);
}

/* One group, a last group that is cut short, and one that is left out. */
static void is_filled_to_its_size(void)
{
	static const uint64_t sizes[] = { EXT4_FILE_MIN, (uint64_t)150 << 20, (uint64_t)129 << 20 };
	static const char data[1 << 16] = { 1 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_fd_ int fd = make_file(), fs_fd = -1, to_fd = -1;
		struct error err = ERROR_INIT;
		struct statvfs v;
		ssize_t n;

		CHECK_INT(ext4_file_make(fd, sizes[i], &err), 0);
		fs_fd = ext4_file_mount(fd, &err);
		if (fs_fd < 0 && err.kind == ERROR_PRECONDITION)
			SKIP("no loop devices");
		CHECK_STR(err.text, "");
		CHECK(fs_fd >= 0 && fstatvfs(fs_fd, &v) == 0);
		CHECK(v.f_bavail * v.f_frsize > sizes[i] / 10 * 8);
		to_fd = openat(fs_fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		CHECK(to_fd >= 0);
		do
			n = write(to_fd, data, sizeof(data));
		while (n > 0);
		CHECK(n < 0 && errno == ENOSPC);
		CHECK(fsync(to_fd) == 0);
	}
}

UNIT_MAIN({ "sizes are bounded", sizes_are_bounded },
	  { "it is filled to its size, then ENOSPC", is_filled_to_its_size });
