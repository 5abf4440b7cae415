/* SPDX-License-Identifier: Apache-2.0 */

/* What every other program here builds upon: the guest is the system that init.c describes. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static const char *system_read(const char *path)
{
	static char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void has_cgroup_v2_alone(void)
{
	char path[sizeof("/proc/self/cgroup")] = "/proc/self/cgroup";

	CHECK_STR(system_read(path), "0::/system\n");
	CHECK(strstr(system_read("/proc/mounts"), " cgroup2 ") != NULL);
	CHECK(strstr(system_read("/proc/mounts"), " cgroup ") == NULL);
}

static void has_every_controller(void)
{
	static const char *const names[] = { "cpuset",  "cpu",  "io",   "memory",
					     "hugetlb", "pids", "rdma", "misc" };
	const char *have = system_read("/sys/fs/cgroup/system/cgroup.controllers");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strstr(have, names[i]))
			printf("# no controller %s\n", names[i]);
		CHECK(strstr(have, names[i]) != NULL);
	}
}

static void has_swap(void)
{
	CHECK(strstr(system_read("/proc/swaps"), "partition") != NULL);
	CHECK(access("/sys/fs/cgroup/system/memory.swap.max", F_OK) == 0);
}

static void has_huge_pages(void)
{
	CHECK(strtol(system_read("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), NULL,
		     10) >= 8);
	CHECK(access("/sys/fs/cgroup/system/hugetlb.2MB.max", F_OK) == 0);
}

static void has_two_processors(void)
{
	CHECK_INT(sysconf(_SC_NPROCESSORS_ONLN), 2);
}

static void has_a_disk_for_limits(void)
{
	struct stat st;

	CHECK_INT(stat("/dev/guest/raw", &st), 0);
	CHECK(S_ISBLK(st.st_mode));
}

static void has_pressure(void)
{
	CHECK(access("/sys/fs/cgroup/system/memory.pressure", F_OK) == 0);
	CHECK(access("/sys/fs/cgroup/system/cpu.pressure", F_OK) == 0);
	CHECK(access("/sys/fs/cgroup/system/io.pressure", F_OK) == 0);
}

UNIT_MAIN({ "has cgroup v2 alone", has_cgroup_v2_alone },
	  { "has every controller", has_every_controller }, { "has swap", has_swap },
	  { "has huge pages", has_huge_pages }, { "has two processors", has_two_processors },
	  { "has a disk for limits", has_a_disk_for_limits }, { "has pressure", has_pressure })
