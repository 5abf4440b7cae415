/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit.h"

static void flat(void)
{
	static const char text[] = "usage_usec 120\nuser_usec 100\nsystem_usec 20\n";

	CHECK_INT(usage_flat_value(text, "usage_usec"), 120);
	CHECK_INT(usage_flat_value(text, "system_usec"), 20);
	CHECK_INT(usage_flat_value(text, "usec"), 0);
	CHECK_INT(usage_flat_value(text, "usage"), 0);
	CHECK_INT(usage_flat_value("", "usage"), 0);
	CHECK_INT(usage_flat_value("a 1", "a"), 1);
	CHECK_INT(usage_flat_value("a 18446744073709551615\n", "a") == UINT64_MAX, 1);
}

static void nested(void)
{
	static const char text[] = "8:0 rbytes=100 wbytes=1 rios=2 wios=3 dbytes=0 dios=0\n"
				   "8:16 rbytes=11 wbytes=20 rios=30 wios=40 dbytes=0 dios=0\n";

	CHECK_INT(usage_nested_sum(text, "rbytes"), 111);
	CHECK_INT(usage_nested_sum(text, "wios"), 43);
	CHECK_INT(usage_nested_sum(text, "bytes"), 0);
	CHECK_INT(usage_nested_sum("", "rbytes"), 0);
}

static void put(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

static void group(void)
{
	static const char *const names[] = { "cpu.stat",      "memory.current", "memory.max",
					     "memory.events", "pids.current",   "pids.max",
					     "io.stat" };
	char path[] = "/tmp/nacre-usage-test-XXXXXX";
	_cleanup_fd_ int fd = -1;
	struct usage u;

	CHECK(mkdtemp(path) != NULL);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(usage_read(fd, "none", &u), -ENOENT);
	CHECK_INT(usage_read(fd, ".", &u), -ENOENT);

	put(fd, "cpu.stat", "usage_usec 7\n");
	CHECK_INT(usage_read(fd, ".", &u), 0);
	CHECK_INT(u.cpu_total_us, 7);
	CHECK(!u.has_memory && !u.has_pids && !u.has_io);

	put(fd, "memory.current", "4096\n");
	put(fd, "memory.max", "max\n");
	put(fd, "memory.events", "low 0\noom 9\noom_kill 2\n");
	put(fd, "pids.current", "3\n");
	put(fd, "pids.max", "100\n");
	put(fd, "io.stat", "");
	CHECK_INT(usage_read(fd, ".", &u), 0);
	CHECK(u.has_memory && u.has_pids && u.has_io);
	CHECK_INT(u.memory_current, 4096);
	CHECK_INT(u.memory_limit, 0);
	CHECK_INT(u.memory_peak, 0);
	CHECK_INT(u.oom_kills, 2);
	CHECK_INT(u.pids_current, 3);
	CHECK_INT(u.pids_limit, 100);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(fd, names[i], 0);
	CHECK_INT(rmdir(path), 0);
}

UNIT_MAIN({ "flat", flat }, { "nested", nested }, { "group", group })
