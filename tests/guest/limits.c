/* SPDX-License-Identifier: Apache-2.0 */

/* What isolate/cgroup/limits.h promises, measured; memory has a program of its own. */

#include "isolate/cgroup/limits.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/time/clock.h"
#include "groups.h"

/* ---- every file ---- */

static void reads_back(void)
{
	static const struct limit_hugetlb huge[] = { { "2MB", 4 * MIB } };
	static const struct limit_file unified[] = { { "memory.high", "25165824" },
						     { "cgroup.max.depth", "3" } };
	struct isolate_limits l = {
		.memory_max = LIMIT(32 * MIB),
		.memory_high = LIMIT(16 * MIB),
		.memory_low = LIMIT(4096),
		.memory_min = LIMIT(8192),
		.memory_swap_max = LIMIT(64 * MIB),
		.memory_oom_group = LIMIT(1),
		.cpu_weight = LIMIT(59),
		.cpu_quota = LIMIT(50000),
		.cpu_period = LIMIT(200000),
		.cpu_burst = LIMIT(10000),
		.cpuset_cpus = "0",
		.cpuset_mems = "0",
		.pids_max = LIMIT(64),
		.hugetlb = huge,
		.n_hugetlb = ARRAY_SIZE(huge),
		.unified = unified,
		.n_unified = ARRAY_SIZE(unified),
	};
	int fd = limited("all", &l);

	CHECK(holds(fd, "memory.max", "33554432\n"));
	CHECK(holds(fd, "memory.high", "25165824\n"));
	CHECK(holds(fd, "memory.low", "4096\n"));
	CHECK(holds(fd, "memory.min", "8192\n"));
	CHECK(holds(fd, "memory.swap.max", "67108864\n"));
	CHECK(holds(fd, "memory.oom.group", "1\n"));
	CHECK(holds(fd, "cpu.weight", "59\n"));
	CHECK(holds(fd, "cpu.max", "50000 200000\n"));
	CHECK(holds(fd, "cpu.max.burst", "10000\n"));
	CHECK(holds(fd, "cpuset.cpus", "0\n"));
	CHECK(holds(fd, "cpuset.mems", "0\n"));
	CHECK(holds(fd, "pids.max", "64\n"));
	CHECK(holds(fd, "hugetlb.2MB.max", "4194304\n"));
	CHECK(holds(fd, "hugetlb.2MB.rsvd.max", "4194304\n"));
	CHECK(holds(fd, "cgroup.max.depth", "3\n"));

	/* No weight and no quota any more; a smaller quota below the old burst. */
	l = (struct isolate_limits){ .cpu_quota = LIMIT(5000),
				     .cpu_burst = LIMIT(5000),
				     .memory_max = LIMIT(LIMIT_MAX),
				     .pids_max = LIMIT(LIMIT_MAX) };
	CHECK_INT(limits_apply(fd, &l, NULL), 0);
	CHECK(holds(fd, "cpu.max", "5000 200000\n"));
	CHECK(holds(fd, "cpu.max.burst", "5000\n"));
	CHECK(holds(fd, "memory.max", "max\n"));
	CHECK(holds(fd, "pids.max", "max\n"));
	l = (struct isolate_limits){ .cpu_idle = LIMIT(1) };
	CHECK_INT(limits_apply(fd, &l, NULL), 0);
	CHECK(holds(fd, "cpu.idle", "1\n"));
	remove_group(fd, "all");
}

/* The kernel refuses the last of them: everything is as before. */
static void takes_back(void)
{
	static const struct limit_file rubbish[] = { { "memory.high", "rubbish" } };
	struct isolate_limits l = { .memory_max = LIMIT(32 * MIB),
				    .cpu_quota = LIMIT(20000),
				    .cpu_period = LIMIT(100000),
				    .cpu_burst = LIMIT(10000),
				    .cpuset_cpus = "0-1",
				    .pids_max = LIMIT(5) };
	struct error err = ERROR_INIT;
	int fd = limited("undo", &l);
	_cleanup_fd_ int below = -1;

	l = (struct isolate_limits){ .memory_max = LIMIT(16 * MIB),
				     .cpu_quota = LIMIT(90000),
				     .cpu_burst = LIMIT(30000),
				     .cpuset_cpus = "1",
				     .cpuset_mems = "0",
				     .pids_max = LIMIT(7),
				     .unified = rubbish,
				     .n_unified = 1 };
	CHECK(limits_apply(fd, &l, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "memory.high: the kernel does not take \"rubbish\": Invalid argument");
	CHECK(holds(fd, "memory.max", "33554432\n"));
	CHECK(holds(fd, "cpu.max", "20000 100000\n"));
	CHECK(holds(fd, "cpu.max.burst", "10000\n"));
	CHECK(holds(fd, "cpuset.cpus", "0-1\n"));
	CHECK(holds(fd, "cpuset.mems", "\n"));
	CHECK(holds(fd, "pids.max", "5\n"));

	l = (struct isolate_limits){ .pids_max = LIMIT(9), .cpuset_cpus = "1-2" };
	CHECK(limits_apply(fd, &l, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "cpuset.cpus: of 1-2 only 0-1 are here");
	CHECK(holds(fd, "cpuset.cpus", "0-1\n"));
	CHECK(holds(fd, "pids.max", "5\n"));
	/* A processor that the machine has, and the group above does not. */
	l = (struct isolate_limits){ .cpuset_cpus = "0" };
	CHECK_INT(limits_apply(fd, &l, &err), 0);
	below = cgroup_make_path(fd, "below", 1U << CGROUP_CPUSET, 0, &err);
	l.cpuset_cpus = "0-1";
	CHECK(limits_apply(below, &l, &err) < 0);
	CHECK_STR(err.text, "cpuset.cpus: of 0-1 only 0 are here");
	CHECK(holds(below, "cpuset.cpus", "\n"));
	remove_group(fd, "undo");
}

/* ---- cpu ---- */

static void cpu_quota(void)
{
	struct isolate_limits l = { .cpu_quota = LIMIT(20000), .cpu_period = LIMIT(100000) };
	int fd = limited("quota", &l);
	struct usage first, last;

	(void)start(fd, spin);
	(void)start(fd, spin);
	while (used(fd).cpu_periods < 2)
		breathe();
	first = used(fd);
	do {
		breathe();
		last = used(fd);
	} while (last.cpu_periods < first.cpu_periods + 30);
	CHECK(last.cpu_periods_throttled > first.cpu_periods_throttled);
	CHECK(last.cpu_throttled_us > first.cpu_throttled_us);
	/* What one takes too much, when the machine stops for a while, it has less of later. */
	printf("# %llu us in %llu periods of 20000 us\n",
	       (unsigned long long)(last.cpu_total_us - first.cpu_total_us),
	       (unsigned long long)(last.cpu_periods - first.cpu_periods));
	CHECK(last.cpu_total_us - first.cpu_total_us <
	      (last.cpu_periods - first.cpu_periods) * 40000);
	remove_group(fd, "quota");
}

/* Two groups on one processor: ten times the weight is far more of the time. */
static void cpu_weight(void)
{
	struct isolate_limits heavy = { .cpu_weight = LIMIT(1000), .cpuset_cpus = "1" };
	struct isolate_limits light = { .cpu_weight = LIMIT(100), .cpuset_cpus = "1" };
	int heavy_fd = limited("heavy", &heavy), light_fd = limited("light", &light);
	struct usage h, l, h0, l0;

	(void)start(heavy_fd, spin);
	(void)start(light_fd, spin);
	while (used(light_fd).cpu_total_us == 0 || used(heavy_fd).cpu_total_us == 0)
		breathe();
	h0 = used(heavy_fd);
	l0 = used(light_fd);
	do {
		breathe();
		h = used(heavy_fd);
		l = used(light_fd);
	} while (h.cpu_total_us + l.cpu_total_us < h0.cpu_total_us + l0.cpu_total_us + 2000000);
	printf("# %llu us and %llu us\n", (unsigned long long)(h.cpu_total_us - h0.cpu_total_us),
	       (unsigned long long)(l.cpu_total_us - l0.cpu_total_us));
	CHECK(h.cpu_total_us - h0.cpu_total_us > 3 * (l.cpu_total_us - l0.cpu_total_us));
	remove_group(heavy_fd, "heavy");
	remove_group(light_fd, "light");
}

static int only_processor_1(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return CPU_COUNT(&set) == 1 && CPU_ISSET(1, &set) && sched_getcpu() == 1 ? 0 : 2;
}

static void cpuset(void)
{
	struct isolate_limits l = { .cpuset_cpus = "1", .cpuset_mems = "0" };
	int fd = limited("cpuset", &l);

	CHECK_INT(run(fd, only_processor_1), 0);
	CHECK(holds(fd, "cpuset.cpus.effective", "1\n"));
	remove_group(fd, "cpuset");
}

/* ---- io ---- */

static char *io_buffer(void)
{
	static char buffer[2 * MIB] __attribute__((aligned(4096)));

	return buffer;
}

static int write_4_mib(void)
{
	_cleanup_fd_ int fd = open("/dev/guest/raw", O_WRONLY | O_DIRECT | O_CLOEXEC);

	for (int i = 0; i < 32; i++)
		if (pwrite(fd, io_buffer(), 128 << 10, i * (128 << 10)) != 128 << 10)
			return 1;
	return 0;
}

static int read_40_blocks(void)
{
	_cleanup_fd_ int fd = open("/dev/guest/raw", O_RDONLY | O_DIRECT | O_CLOEXEC);

	for (int i = 0; i < 40; i++)
		if (pread(fd, io_buffer(), 4096, i * 4096) != 4096)
			return 1;
	return 0;
}

/* A part of a disk has no limit of its own. */
static struct limit_io raw_disk(void)
{
	struct stat st = { .st_rdev = 0 };

	CHECK(stat("/dev/guest/disk", &st) == 0);
	return (struct limit_io){ .major = major(st.st_rdev), .minor = minor(st.st_rdev) };
}

static nsec_t time_of(int fd, int (*fn)(void))
{
	nsec_t begin = clock_mono();

	CHECK_INT(run(fd, fn), 0);
	return clock_mono() - begin;
}

static void io_max(void)
{
	struct limit_io disk = raw_disk();
	struct isolate_limits l = { .io = &disk, .n_io = 1 };
	const struct usage_details *d;
	char text[100];
	int fd;

	disk.wbps = LIMIT(MIB);
	disk.riops = LIMIT(10);
	fd = limited("io", &l);
	(void)str_printf(text, sizeof(text), "%u:%u rbps=max wbps=1048576 riops=10 wiops=max\n",
			 disk.major, disk.minor);
	CHECK(holds(fd, "io.max", text));
	/* 4 MiB at 1 MiB/s, 40 reads at 10/s: four seconds each, and the kernel lends a little. */
	CHECK(time_of(fd, write_4_mib) > 2 * NSEC_PER_SEC);
	CHECK(time_of(fd, read_40_blocks) > 2 * NSEC_PER_SEC);
	d = details(fd);
	CHECK_INT(d->n_devices, 1);
	CHECK(d->devices[0].major == disk.major && d->devices[0].minor == disk.minor);
	CHECK_INT(d->devices[0].written_bytes, 4 * MIB);
	CHECK_INT(d->devices[0].writes, 32);
	CHECK_INT(d->devices[0].read_bytes, 40 * 4096);
	CHECK_INT(used(fd).written_bytes, 4 * MIB);
	CHECK(used(fd).has_io);
	CHECK(d->io.there && d->io.some.total_us > 0);

	disk.wbps = disk.riops = LIMIT(LIMIT_MAX);
	CHECK_INT(limits_apply(fd, &l, NULL), 0);
	CHECK(holds(fd, "io.max", ""));
	remove_group(fd, "io");
}

static void io_weight(void)
{
	struct isolate_limits l = { .blkio_weight = LIMIT(505) };
	struct isolate_limits none = { .pids_max = LIMIT(LIMIT_MAX) };
	int fd = limited("weight", &none);
	struct error err = ERROR_INIT;
	int r = limits_apply(fd, &l, &err);

	if (faccessat(fd, "io.bfq.weight", F_OK, 0) == 0) {
		CHECK_INT(r, 0);
		CHECK(holds(fd, "io.bfq.weight", "default 505\n"));
	} else if (faccessat(fd, "io.weight", F_OK, 0) == 0) {
		CHECK_INT(r, 0);
		CHECK(holds(fd, "io.weight", "default 5000\n"));
	} else {
		CHECK(r < 0);
		CHECK_STR(err.text,
			  "io.weight: this kernel's cgroup controller io does not have that");
	}
	remove_group(fd, "weight");
}

/* ---- pids, huge pages ---- */

static int fork_until_refused(void)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0)
			return wait_for_end();
		if (pid < 0)
			return errno == EAGAIN ? i : 200;
	}
	return 201;
}

static void pids(void)
{
	struct isolate_limits l = { .pids_max = LIMIT(4) };
	int fd = limited("pids", &l);

	CHECK_INT(run(fd, fork_until_refused), 3);
	CHECK_INT(used(fd).pids_current, 3);
	CHECK_INT(used(fd).pids_limit, 4);
	CHECK(event(fd, "pids.events", "max") >= 1);
	remove_group(fd, "pids");
}

static bool map_huge(size_t n)
{
	char *p = mmap(NULL, n * 2 * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		return false;
	for (size_t i = 0; i < n; i++)
		p[i * 2 * MIB] = 1;
	return true;
}

static int two_huge_pages(void)
{
	if (!map_huge(2))
		return 1;
	/* mmap() itself refuses the third: reservations are limited too. */
	if (map_huge(1))
		return 2;
	return wait_for_end();
}

static void huge_pages(void)
{
	static const struct limit_hugetlb huge[] = { { "2MB", 4 * MIB } };
	struct isolate_limits l = { .hugetlb = huge, .n_hugetlb = 1 };
	int fd = limited("huge", &l);
	const struct usage_details *d;
	size_t at = USAGE_HUGETLB_MAX;
	pid_t pid = start(fd, two_huge_pages);

	while (event(fd, "hugetlb.2MB.events", "max") == 0 && waitpid(pid, NULL, WNOHANG) == 0)
		breathe();
	CHECK_INT(cgroup_populated(fd), 1);
	d = details(fd);
	for (size_t i = 0; i < d->n_hugetlb; i++)
		if (strcmp(d->hugetlb[i].size, "2MB") == 0)
			at = i;
	CHECK(at < d->n_hugetlb);
	if (at < d->n_hugetlb) {
		CHECK_INT(d->hugetlb[at].current, 4 * MIB);
		CHECK_INT(d->hugetlb[at].limit, 4 * MIB);
		CHECK(d->hugetlb[at].failures >= 1);
	}
	remove_group(fd, "huge");
}

/* ---- freezing, pressure ---- */

static void freezes(void)
{
	struct isolate_limits none = { .memory_check = false };
	int fd = limited("freeze", &none);
	struct error err = ERROR_INIT;
	uint64_t at;

	(void)start(fd, spin);
	while (used(fd).cpu_total_us < 50000)
		breathe();
	CHECK_INT(cgroup_freeze(fd, WAIT_MS, &err), 0);
	CHECK_INT(cgroup_frozen(fd), 1);
	/* The kernel says so when the task has entered its trap, a moment before that gives up the
	 * processor (cgroup_enter_frozen()). */
	do {
		at = used(fd).cpu_total_us;
		breathe();
	} while (used(fd).cpu_total_us != at);
	for (int i = 0; i < 20; i++)
		breathe();
	CHECK_INT(used(fd).cpu_total_us, at);
	CHECK_INT(cgroup_thaw(fd, WAIT_MS, &err), 0);
	while (used(fd).cpu_total_us < at + 50000)
		breathe();
	/* A frozen one is killed as any. */
	CHECK_INT(cgroup_freeze(fd, WAIT_MS, &err), 0);
	remove_group(fd, "freeze");
}

static void pressure_of_the_processor(void)
{
	struct isolate_limits cpu = { .cpuset_cpus = "0" };
	int fd = limited("busy", &cpu);

	(void)start(fd, spin);
	(void)start(fd, spin);
	while (details(fd)->cpu.there && details(fd)->cpu.some.total_us < 100000)
		breathe();
	CHECK(details(fd)->cpu.there);
	remove_group(fd, "busy");
}

/* ---- delegation, threads ---- */

static void delegation(void)
{
	unsigned all = 1U << CGROUP_CPU | 1U << CGROUP_MEMORY | 1U << CGROUP_PIDS |
		       1U << CGROUP_IO | 1U << CGROUP_CPUSET | 1U << CGROUP_HUGETLB;
	struct isolate_limits none = { .memory_check = false };
	int fd = limited("hand", &none);
	_cleanup_fd_ int deep = cgroup_make_path(fd, "a/b/c", all, 0, NULL);
	_cleanup_fd_ int busy = -1;
	struct error err = ERROR_INIT;

	CHECK(deep >= 0);
	CHECK_INT(cgroup_controllers(deep) & all, all);
	/* One that holds a process hands nothing on, and nothing is made below it. */
	busy = cgroup_make_path(fd, "busy", 0, 0, NULL);
	(void)start(busy, wait_for_end);
	CHECK_INT(cgroup_wait(busy, "cgroup.events", "populated", 1, WAIT_MS), 0);
	CHECK(cgroup_make_path(fd, "busy/below", 1U << CGROUP_MEMORY, 0, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "the cgroup holds processes itself, so that it cannot hand "
			    "controllers on to groups below it");
	CHECK_INT(cgroup_open_path(fd, "busy/below"), -ENOENT);
	/* What is only wished for may be missing. */
	(void)fd_close(deep);
	deep = cgroup_make_path(fd, "busy/below", 0, all, &err);
	CHECK(deep >= 0);
	CHECK_INT(cgroup_controllers(deep) & 1U << CGROUP_MEMORY, 0);
	CHECK(limits_apply(deep, &(struct isolate_limits){ .memory_max = LIMIT(4096) }, &err) < 0);
	CHECK_STR(err.text, "memory.max: the cgroup controller memory is not there: this kernel "
			    "lacks it, or no group above hands it on");
	remove_group(fd, "hand");
}

/* Moves itself, a thread of a process, into the group of the descriptor. */
static void *thread_of_its_own(void *fd)
{
	return (void *)(uintptr_t)(fd_write_file(*(int *)fd, "cgroup.threads", "0") == 0 &&
				   only_processor_1() == 0);
}

static int threaded_fd;

static int one_thread_elsewhere(void)
{
	void *result = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_of_its_own, &threaded_fd) != 0 ||
	    pthread_join(thread, &result) != 0)
		return 1;
	return result && only_processor_1() == 2 ? 0 : 2;
}

static void threads(void)
{
	struct isolate_limits none = { .memory_check = false };
	struct isolate_limits one = { .cpuset_cpus = "1", .cpu_weight = LIMIT(10) };
	struct error err = ERROR_INIT;
	int fd = limited("threads", &none);
	_cleanup_fd_ int seed = cgroup_make_path(fd, "seed", 0, 0, NULL);

	CHECK_INT(fd_write_file(seed, "cgroup.type", "threaded"), 0);
	threaded_fd = cgroup_make_path(fd, "one", 1U << CGROUP_CPU | 1U << CGROUP_CPUSET, 0, &err);
	CHECK(threaded_fd >= 0);
	CHECK(holds(threaded_fd, "cgroup.type", "threaded\n"));
	CHECK_INT(limits_apply(threaded_fd, &one, &err), 0);
	CHECK_INT(run(fd, one_thread_elsewhere), 0);
	CHECK(cgroup_make_path(fd, "one/below", 1U << CGROUP_MEMORY, 0, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	threaded_fd = fd_close(threaded_fd);
	remove_group(fd, "threads");
}

UNIT_MAIN({ "moves aside", moves_aside }, { "every file holds what was said", reads_back },
	  { "a refused update leaves all as before", takes_back }, { "cpu.max", cpu_quota },
	  { "cpu.weight", cpu_weight }, { "cpuset", cpuset }, { "io.max", io_max },
	  { "io.weight", io_weight }, { "pids.max", pids }, { "huge pages", huge_pages },
	  { "freezing", freezes }, { "pressure of the processor", pressure_of_the_processor },
	  { "controllers are handed on", delegation }, { "threads", threads }, { "leaves", leaves })
