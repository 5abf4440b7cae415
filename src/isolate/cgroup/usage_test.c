/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "unit.h"

/* Files of a group of Linux 6.1 that had run for a while. */
static const struct file {
	const char *name, *text;
} recorded[] = {
	{ "memory.current", "4096000\n" },
	{ "memory.peak", "5000000\n" },
	{ "memory.max", "max\n" },
	{ "memory.events", "low 0\nhigh 4\nmax 11\noom 9\noom_kill 2\noom_group_kill 1\n" },
	{ "memory.stat", "anon 1019904\nfile 2097152\nkernel 53248\nkernel_stack 16384\n"
			 "inactive_anon 0\ninactive_file 1048576\nactive_file 4096\n" },
	{ "memory.swap.current", "8192\n" },
	{ "memory.swap.max", "65536\n" },
	{ "pids.current", "3\n" },
	{ "pids.max", "100\n" },
	{ "io.stat", "8:0 rbytes=100 wbytes=1 rios=2 wios=3 dbytes=0 dios=0\n254:16 \n"
		     "8:16 rbytes=11 wbytes=20 rios=30 wios=40 dbytes=512 dios=7\n" },
	{ "cpu.pressure", "some avg10=1.20 avg60=0.05 avg300=12.00 total=4711\n"
			  "full avg10=0.00 avg60=0.00 avg300=0.01 total=12\n" },
	{ "memory.pressure", "some avg10=99.99 avg60=0.00 avg300=0.00 total=1\n" },
	{ "hugetlb.2MB.current", "2097152\n" },
	{ "hugetlb.2MB.max", "4194304\n" },
	{ "hugetlb.2MB.events", "max 5\n" },
	{ "hugetlb.2MB.rsvd.current", "6291456\n" },
	{ "hugetlb.1GB.current", "0\n" },
	{ "hugetlb.1GB.max", "max\n" },
};

static void put(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

static int fake_group(char *path)
{
	CHECK(mkdtemp(path) != NULL);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void fake_group_done(int fd, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++)
		(void)unlinkat(fd, recorded[i].name, 0);
	(void)unlinkat(fd, "cpu.stat", 0);
	CHECK_INT(rmdir(path), 0);
}

static void group(void)
{
	char path[] = "/tmp/nacre-usage-test-XXXXXX";
	_cleanup_fd_ int fd = fake_group(path);
	struct usage u;

	CHECK_INT(usage_read(fd, "none", &u), -ENOENT);
	CHECK_INT(usage_read(fd, ".", &u), -ENOENT);

	put(fd, "cpu.stat", "usage_usec 120\nuser_usec 100\nsystem_usec 20\n");
	CHECK_INT(usage_read(fd, ".", &u), 0);
	CHECK_INT(u.cpu_total_us, 120);
	CHECK_INT(u.cpu_user_us, 100);
	CHECK_INT(u.cpu_system_us, 20);
	CHECK_INT(u.cpu_periods, 0);
	CHECK(!u.has_memory && !u.has_swap && !u.has_pids && !u.has_io);

	put(fd, "cpu.stat",
	    "usage_usec 120\nuser_usec 100\nsystem_usec 20\nnr_periods 7\nnr_throttled 5\n"
	    "throttled_usec 33\n");
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++)
		put(fd, recorded[i].name, recorded[i].text);
	CHECK_INT(usage_read(fd, ".", &u), 0);
	CHECK_INT(u.cpu_periods, 7);
	CHECK_INT(u.cpu_periods_throttled, 5);
	CHECK_INT(u.cpu_throttled_us, 33);
	CHECK(u.has_memory && u.has_swap && u.has_pids && u.has_io);
	CHECK_INT(u.memory_current, 4096000);
	CHECK_INT(u.memory_peak, 5000000);
	CHECK_INT(u.memory_limit, 0);
	CHECK_INT(u.memory_anon, 1019904);
	CHECK_INT(u.memory_file, 2097152);
	CHECK_INT(u.memory_kernel, 53248);
	CHECK_INT(u.memory_inactive_file, 1048576);
	CHECK_INT(u.memory_max_hits, 11);
	CHECK_INT(u.oom_kills, 2);
	CHECK_INT(u.swap_current, 8192);
	CHECK_INT(u.swap_limit, 65536);
	CHECK_INT(u.pids_current, 3);
	CHECK_INT(u.pids_limit, 100);
	CHECK_INT(u.read_bytes, 111);
	CHECK_INT(u.written_bytes, 21);
	CHECK_INT(u.reads, 32);
	CHECK_INT(u.writes, 43);
	fake_group_done(fd, path);
}

static void check_stall(const struct usage_stall *s, unsigned avg10, unsigned avg60,
			unsigned avg300, unsigned total)
{
	CHECK_INT(s->avg10, avg10);
	CHECK_INT(s->avg60, avg60);
	CHECK_INT(s->avg300, avg300);
	CHECK_INT(s->total_us, total);
}

static void details(void)
{
	char path[] = "/tmp/nacre-usage-test-XXXXXX";
	_cleanup_fd_ int fd = fake_group(path);
	struct usage_details u;

	CHECK_INT(usage_read_details(fd, ".", &u), -ENOENT);
	put(fd, "cpu.stat", "usage_usec 1\n");
	CHECK_INT(usage_read_details(fd, ".", &u), 0);
	CHECK(u.n_devices == 0 && u.n_hugetlb == 0 && !u.cpu.there && !u.io.there);

	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++)
		put(fd, recorded[i].name, recorded[i].text);
	CHECK_INT(usage_read_details(fd, ".", &u), 0);
	CHECK_INT(u.n_devices, 2);
	CHECK(u.devices[0].major == 8 && u.devices[0].minor == 0);
	CHECK(u.devices[1].major == 8 && u.devices[1].minor == 16);
	CHECK_INT(u.devices[0].written_bytes, 1);
	CHECK_INT(u.devices[1].reads, 30);
	CHECK_INT(u.devices[1].discarded_bytes, 512);
	CHECK_INT(u.devices[1].discards, 7);
	CHECK_INT(u.n_hugetlb, 2);
	for (size_t i = 0; i < u.n_hugetlb; i++) {
		bool small = strcmp(u.hugetlb[i].size, "2MB") == 0;

		CHECK_STR(u.hugetlb[i].size, small ? "2MB" : "1GB");
		CHECK_INT(u.hugetlb[i].current, small ? 2097152 : 0);
		CHECK_INT(u.hugetlb[i].limit, small ? 4194304 : 0);
		CHECK_INT(u.hugetlb[i].failures, small ? 5 : 0);
	}
	CHECK(u.cpu.there && u.memory.there && !u.io.there);
	check_stall(&u.cpu.some, 120, 5, 1200, 4711);
	check_stall(&u.cpu.full, 0, 0, 1, 12);
	check_stall(&u.memory.some, 9999, 0, 0, 1);
	check_stall(&u.memory.full, 0, 0, 0, 0);
	fake_group_done(fd, path);
}

/* A group of this machine: what it has is read, and once it is gone that is told. */
static void gone(void)
{
	_cleanup_fd_ int root_fd = cgroup_open_root(NULL);
	_cleanup_fd_ int fd = -1;
	struct usage_details d;
	struct usage u;
	char name[32];

	if (geteuid() != 0 || root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	(void)str_printf(name, sizeof(name), "nacre-usage-%d", (int)getpid());
	fd = cgroup_make(root_fd, name, NULL);
	CHECK_INT(usage_read(root_fd, name, &u), 0);
	CHECK_INT(u.cpu_total_us, 0);
	CHECK_INT(usage_read_details(fd, ".", &d), 0);
	CHECK_INT(cgroup_remove(root_fd, name), 0);
	CHECK_INT(usage_read(fd, ".", &u), -ENOENT);
	CHECK_INT(usage_read_details(fd, ".", &d), -ENOENT);
	CHECK_INT(usage_read(root_fd, name, &u), -ENOENT);
}

UNIT_MAIN({ "group", group }, { "details", details }, { "a group that is gone", gone })
