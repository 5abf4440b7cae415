/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

#define DEEP 1500

static char top[64];
static int top_fd;

static void begin(void)
{
	(void)str_copy(top, sizeof(top), "/tmp/nacre-measure-XXXXXX");
	if (!mkdtemp(top))
		abort();
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(top_fd >= 0);
}

static void end(void)
{
	top_fd = fd_close(top_fd);
	CHECK_INT(scratch_remove(top), 0);
}

static void write_file(int dir_fd, const char *name, size_t n)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char zeros[65536];

	CHECK(fd >= 0);
	for (; n > 0; n -= sizeof(zeros))
		CHECK_INT(write(fd, zeros, sizeof(zeros)), (long)sizeof(zeros));
}

static uint64_t blocks(int dir_fd, const char *name)
{
	struct stat st = { .st_blocks = 0 };

	CHECK_INT(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* Hard links count once, links themselves, and nothing is followed. */
static void counts_blocks(void)
{
	static const char *const names[] = { "t", "t/d", "t/big", "t/d/small", "t/link" };
	struct measure m = { .bytes = 0 };
	uint64_t expected = 0;
	int r;

	begin();
	CHECK_INT(mkdirat(top_fd, "t", 0700), 0);
	CHECK_INT(mkdirat(top_fd, "t/d", 0700), 0);
	write_file(top_fd, "t/big", 65536 * 20);
	write_file(top_fd, "t/d/small", 65536);
	CHECK_INT(linkat(top_fd, "t/big", top_fd, "t/d/again", 0), 0);
	CHECK_INT(symlinkat("/", top_fd, "t/link"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expected += blocks(top_fd, names[i]);
	r = measure_tree(&m, top_fd, "t");
	CHECK_INT(r, 0);
	if (r == 0) {
		CHECK(m.bytes == expected && m.bytes > 65536UL * 20);
		CHECK_INT(m.n_inodes, ARRAY_SIZE(names));
		CHECK(!m.incomplete);
		CHECK(m.changed > 0);
	}
	/* A file alone, and what is not there. */
	m = (struct measure){ .bytes = 0 };
	CHECK_INT(measure_tree(&m, top_fd, "t/big"), 0);
	CHECK(m.bytes == blocks(top_fd, "t/big"));
	CHECK_INT(measure_tree(&m, top_fd, "nowhere"), -ENOENT);
	end();
}

/* Deeper than any path, and with many names: two descriptors are enough. */
static void goes_deep(void)
{
	struct measure m = { .bytes = 0 };
	int fd, r;

	begin();
	fd = fd_copy(top_fd);
	for (int i = 0; i < DEEP; i++) {
		int next;

		CHECK_INT(mkdirat(fd, "directory", 0700), 0);
		next = openat(fd, "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)fd_close(fd);
		fd = next;
	}
	(void)fd_close(fd);
	r = measure_tree(&m, top_fd, "directory");
	CHECK_INT(r, 0);
	if (r == 0) {
		CHECK_INT(m.n_inodes, DEEP);
		CHECK(!m.incomplete);
	}
	end();
}

UNIT_MAIN({ "counts blocks", counts_blocks }, { "goes deep", goes_deep })
