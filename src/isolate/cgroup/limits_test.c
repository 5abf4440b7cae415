/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

/*
 * A directory with files of the right names stands in for a group, and this function for the
 * kernel: it writes down what it is told, and refuses the write number fake.refuse.
 */

static struct {
	char path[40];
	int fd;
	char log[8192];
	size_t len;
	int writes, refuse, refuse_with;
} fake;

int __real_fd_write_file(int dir_fd, const char *name, const char *text);
int __wrap_fd_write_file(int dir_fd, const char *name, const char *text);

static void put(const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(fake.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

int __wrap_fd_write_file(int dir_fd, const char *name, const char *text)
{
	int n;

	if (dir_fd != fake.fd)
		return __real_fd_write_file(dir_fd, name, text);
	fake.writes++;
	if (fake.writes == fake.refuse)
		return fake.refuse_with;
	n = snprintf(fake.log + fake.len, sizeof(fake.log) - fake.len, "%s=%s%s", name, text,
		     strcmp(text, "\n") ? "\n" : "");
	CHECK(n > 0 && (size_t)n < sizeof(fake.log) - fake.len);
	fake.len += (size_t)n;
	put(name, strcmp(text, "\n") ? text : "");
	return 0;
}

static const struct {
	const char *name, *text;
} files[] = {
	{ "cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n" },
	{ "cpuset.cpus", "" },
	{ "cpuset.cpus.effective", "0-3\n" },
	{ "cpuset.mems", "0" },
	{ "cpuset.mems.effective", "0\n" },
	{ "cpu.idle", "0" },
	{ "cpu.weight", "100" },
	{ "cpu.max", "max 100000" },
	{ "cpu.max.burst", "0" },
	{ "pids.max", "max" },
	{ "io.weight", "default 100\n8:0 50\n" },
	{ "io.max", "8:0 rbps=1 wbps=max riops=max wiops=max\n" },
	{ "hugetlb.2MB.max", "max" },
	{ "hugetlb.2MB.rsvd.max", "max" },
	{ "hugetlb.1GB.max", "max" },
	{ "rdma.max", "mlx4_0 hca_handle=max hca_object=max\n" },
	{ "misc.max", "res_a max\nres_b 3\n" },
	{ "memory.oom.group", "0" },
	{ "memory.min", "0" },
	{ "memory.low", "0" },
	{ "memory.high", "max" },
	{ "memory.swap.max", "max" },
	{ "memory.max", "max" },
	{ "memory.current", "8192\n" },
	{ "cgroup.max.depth", "max" },
};

#define LARGER_THAN_ANY (1 << 20)

/* A file of so many bytes that mean nothing. */
static void put_large(const char *name, off_t size)
{
	_cleanup_fd_ int fd = openat(fake.fd, name, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && ftruncate(fd, size) == 0);
}

static void fake_open(void)
{
	fake.len = 0;
	fake.log[0] = '\0';
	fake.writes = fake.refuse = 0;
	fake.refuse_with = -EINVAL;
	(void)str_copy(fake.path, sizeof(fake.path), "/tmp/nacre-limits-XXXXXX");
	CHECK(mkdtemp(fake.path) != NULL);
	fake.fd = open(fake.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put(files[i].name, files[i].text);
}

static void fake_close(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		(void)unlinkat(fake.fd, files[i].name, 0);
	(void)unlinkat(fake.fd, "io.bfq.weight", 0);
	fake.fd = fd_close(fake.fd);
	CHECK_INT(rmdir(fake.path), 0);
}

static bool file_is(const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	return fd_read_file(fake.fd, name, 4096, &b) == 0 && b.len == strlen(text) &&
	       (b.len == 0 || memcmp(buf_data(&b), text, b.len) == 0);
}

static const struct limit_io two_devices[] = {
	{ .major = 8, .minor = 0, .rbps = { true, 1048576 }, .wiops = { true, 100 } },
	{ .major = 8,
	  .minor = 16,
	  .weight = { true, 500 },
	  .wbps = { true, LIMIT_MAX },
	  .riops = { true, 7 } },
};
static const struct limit_hugetlb two_sizes[] = { { "2MB", 4194304 }, { "1GB", LIMIT_MAX } };
static const struct limit_rdma one_rdma[] = { { "mlx4_0", { true, 2 }, { true, LIMIT_MAX } } };
static const struct limit_misc one_misc[] = { { "res_a", 5 } };
static const struct limit_file two_files[] = {
	{ "memory.high", "65536" },
	{ "io.max", "8:0 rbps=3\n8:16 wbps=4\n" },
};

static struct isolate_limits everything(void)
{
	return (struct isolate_limits){
		.memory_max = LIMIT(1048576),
		.memory_high = LIMIT(524288),
		.memory_low = LIMIT(4096),
		.memory_min = LIMIT(0),
		.memory_swap_max = LIMIT(0),
		.memory_oom_group = LIMIT(1),
		.memory_check = true,
		.cpu_weight = LIMIT(10000),
		.cpu_idle = LIMIT(0),
		.cpu_quota = LIMIT(50000),
		.cpu_period = LIMIT(100000),
		.cpu_burst = LIMIT(20000),
		.cpuset_cpus = "0-1,3",
		.cpuset_mems = "0",
		.pids_max = LIMIT(64),
		.blkio_weight = LIMIT(10),
		.io = two_devices,
		.n_io = 2,
		.hugetlb = two_sizes,
		.n_hugetlb = 2,
		.rdma = one_rdma,
		.n_rdma = 1,
		.misc = one_misc,
		.n_misc = 1,
		.unified = two_files,
		.n_unified = 2,
	};
}

static void writes_everything(void)
{
	struct isolate_limits l = everything();
	struct error err = ERROR_INIT;

	fake_open();
	CHECK_INT(limits_apply(fake.fd, &l, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_STR(fake.log, "cpuset.cpus=0-1,3\n"
			    "cpuset.mems=0\n"
			    "cpu.idle=0\n"
			    "cpu.weight=10000\n"
			    "cpu.max.burst=0\n"
			    "cpu.max=50000 100000\n"
			    "cpu.max.burst=20000\n"
			    "pids.max=64\n"
			    "io.weight=default 1\n"
			    "io.max=8:0 rbps=1048576 wiops=100\n"
			    "io.weight=8:16 4950\n"
			    "io.max=8:16 wbps=max riops=7\n"
			    "hugetlb.2MB.rsvd.max=4194304\n"
			    "hugetlb.2MB.max=4194304\n"
			    "hugetlb.1GB.max=max\n"
			    "rdma.max=mlx4_0 hca_handle=2 hca_object=max\n"
			    "misc.max=res_a 5\n"
			    "memory.oom.group=1\n"
			    "memory.min=0\n"
			    "memory.low=4096\n"
			    "memory.high=524288\n"
			    "memory.swap.max=0\n"
			    "memory.max=1048576\n"
			    "memory.high=65536\n"
			    "io.max=8:0 rbps=3\n"
			    "io.max=8:16 wbps=4\n");
	fake_close();
}

static void writes_nothing(void)
{
	struct isolate_limits l = { .memory_check = true };

	fake_open();
	CHECK_INT(limits_apply(fake.fd, &l, NULL), 0);
	CHECK_INT(limits_controllers(&l), 0);
	CHECK_STR(fake.log, "");
	fake_close();
}

/* BFQ takes blkio's numbers as they are; a period alone leaves the quota; a burst alone is one
 * write. */
static void writes_in_other_forms(void)
{
	struct isolate_limits l = { .blkio_weight = LIMIT(300), .cpu_period = LIMIT(200000) };

	fake_open();
	put("io.bfq.weight", "default 100\n");
	put("cpu.max", "30000 100000\n");
	CHECK_INT(limits_apply(fake.fd, &l, NULL), 0);
	CHECK_STR(fake.log, "cpu.max=30000 200000\nio.bfq.weight=default 300\n");
	fake.len = 0;
	l = (struct isolate_limits){ .cpu_quota = LIMIT(LIMIT_MAX), .cpu_burst = LIMIT(0) };
	CHECK_INT(limits_apply(fake.fd, &l, NULL), 0);
	CHECK_STR(fake.log, "cpu.max.burst=0\ncpu.max=max\n");
	fake.len = 0;
	l = (struct isolate_limits){ .cpu_burst = LIMIT(9) };
	CHECK_INT(limits_apply(fake.fd, &l, NULL), 0);
	CHECK_STR(fake.log, "cpu.max.burst=9\n");
	/* A quota that cannot be read is not taken for none. */
	fake.len = 0;
	fake.log[0] = '\0';
	l = (struct isolate_limits){ .cpu_period = LIMIT(200000) };
	put_large("cpu.max", LARGER_THAN_ANY);
	CHECK_INT(limits_apply(fake.fd, &l, NULL), -EFBIG);
	CHECK_STR(fake.log, "");
	fake_close();
}

/* Whatever write the kernel refuses: each file holds what it held before. */
static void takes_all_back(void)
{
	struct isolate_limits l = everything();

	for (int k = 1; k <= 26; k++) {
		struct error err = ERROR_INIT;

		fake_open();
		fake.refuse = k;
		CHECK_INT(limits_apply(fake.fd, &l, &err), -EBUSY);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(strstr(err.text, ": the kernel does not take \"") != NULL && err.field[0]);
		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			if (strncmp(files[i].name, "io.", 3) && strncmp(files[i].name, "rdma", 4) &&
			    strncmp(files[i].name, "misc", 4))
				CHECK(file_is(files[i].name, files[i].text));
		fake_close();
	}
}

static void tells_a_fault_from_a_refusal(void)
{
	struct isolate_limits l = everything();
	struct error err = ERROR_INIT;

	fake_open();
	fake.refuse = 1;
	fake.refuse_with = -EIO;
	CHECK_INT(limits_apply(fake.fd, &l, &err), -EIO);
	CHECK_INT(err.kind, ERROR_FAULT);
	CHECK(err.field[0] && strstr(err.text, ": write \"") != NULL);
	fake_close();
}

/* Files with a line for each device or resource. */
static void takes_lines_back(void)
{
	struct isolate_limits l = everything();
	struct error err = ERROR_INIT;
	const char *undo;

	fake_open();
	fake.refuse = 18; /* memory.oom.group */
	CHECK_INT(limits_apply(fake.fd, &l, &err), -EBUSY);
	CHECK_STR(err.text, "memory.oom.group: the kernel does not take \"1\": Invalid argument");
	CHECK_STR(err.field, "memory.oom.group");
	undo = strstr(fake.log, "misc.max=res_a 5\n");
	CHECK(undo != NULL);
	CHECK_STR(undo ? undo : "", "misc.max=res_a 5\n"
				    "misc.max=res_a max\n"
				    "rdma.max=mlx4_0 hca_handle=max hca_object=max\n"
				    "hugetlb.1GB.max=max\n"
				    "hugetlb.2MB.max=max\n"
				    "hugetlb.2MB.rsvd.max=max\n"
				    "io.max=8:16 rbps=max wbps=max riops=max wiops=max\n"
				    "io.weight=8:16 default\n"
				    "io.max=8:0 rbps=1 wbps=max riops=max wiops=max\n"
				    "io.weight=default 100\n"
				    "pids.max=max\n"
				    "cpu.max.burst=0\n"
				    "cpu.max=max 100000\n"
				    "cpu.max.burst=0\n"
				    "cpu.weight=100\n"
				    "cpu.idle=0\n"
				    "cpuset.mems=0\n"
				    "cpuset.cpus=\n");
	fake_close();
}

/* Before anything is written. */
static void refuses_what_is_missing(void)
{
	static const char *const missing[] = { "cpuset.cpus", "cpu.weight", "cpu.max.burst",
					       "pids.max",    "io.max",     "hugetlb.2MB.max",
					       "rdma.max",    "misc.max",   "memory.max" };

	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		struct isolate_limits l = everything();
		struct error err = ERROR_INIT;
		char text[200];

		fake_open();
		CHECK_INT(unlinkat(fake.fd, missing[i], 0), 0);
		CHECK(limits_apply(fake.fd, &l, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK_STR(err.field, missing[i]);
		(void)str_printf(text, sizeof(text),
				 "%s: this kernel's cgroup controller %.*s does not have that",
				 missing[i], (int)strcspn(missing[i], "."), missing[i]);
		CHECK_STR(err.text, text);
		CHECK_INT(fake.writes, 0);
		/* Nor has the group the controller at all. */
		put("cgroup.controllers", "\n");
		CHECK(limits_apply(fake.fd, &l, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(strstr(err.text, " in version 1 (boot with cgroup_no_v1=") ||
		      strstr(err.text, " is not there: this kernel lacks it, or no group above "
				       "hands it on"));
		CHECK_INT(fake.writes, 0);
		fake_close();
	}
}

static void no_limit_needs_nobody(void)
{
	static const struct limit_hugetlb huge[] = { { "64KB", LIMIT_MAX } };
	struct isolate_limits l = { .memory_max = LIMIT(LIMIT_MAX),
				    .memory_swap_max = LIMIT(LIMIT_MAX),
				    .cpu_quota = LIMIT(LIMIT_MAX),
				    .pids_max = LIMIT(LIMIT_MAX),
				    .hugetlb = huge,
				    .n_hugetlb = 1 };

	fake_open();
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		CHECK_INT(unlinkat(fake.fd, files[i].name, 0), 0);
	CHECK_INT(limits_apply(fake.fd, &l, NULL), 0);
	CHECK_STR(fake.log, "");
	fake_close();
}

static void refuses_processors_that_are_not_there(void)
{
	struct isolate_limits l = { .pids_max = LIMIT(5), .cpuset_cpus = "2-5" };
	struct error err = ERROR_INIT;

	fake_open();
	CHECK(limits_apply(fake.fd, &l, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "cpuset.cpus: of 2-5 only 0-3 are here");
	CHECK_STR(fake.log, "cpuset.cpus=2-5\ncpuset.cpus=\n");
	/* Numbers that the machine cannot have at all are refused by the kernel. */
	fake.refuse = fake.writes + 1;
	fake.refuse_with = -ERANGE;
	CHECK(limits_apply(fake.fd, &l, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "cpuset.cpus: of 2-5 only 0-3 are here");
	fake_close();
}

static void looks_before_it_lowers(void)
{
	struct isolate_limits l = { .memory_max = LIMIT(8191), .memory_check = true };
	struct error err = ERROR_INIT;

	fake_open();
	CHECK(limits_apply(fake.fd, &l, &err) < 0);
	CHECK_STR(err.text, "memory.max: the group uses 8192 bytes already");
	CHECK_INT(fake.writes, 0);
	l.memory_max.value = 8192;
	CHECK_INT(limits_apply(fake.fd, &l, &err), 0);
	l.memory_max.value = 1;
	l.memory_check = false;
	CHECK_INT(limits_apply(fake.fd, &l, &err), 0);
	fake_close();
}

static void check_refused(struct isolate_limits l, const char *text)
{
	struct error err = ERROR_INIT;

	CHECK_INT(limits_check(&l, &err), -EINVAL);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_STR(err.text, text);
}

#define REFUSED(text, ...) check_refused((struct isolate_limits){ __VA_ARGS__ }, (text))
#define TAKEN(...) CHECK_INT(limits_check(&(struct isolate_limits){ __VA_ARGS__ }, NULL), 0)

static void numbers_have_ranges(void)
{
	TAKEN(.cpu_weight = LIMIT(1));
	TAKEN(.cpu_weight = LIMIT(10000));
	REFUSED("cpu.weight: 0 is not within 1 and 10000", .cpu_weight = LIMIT(0));
	REFUSED("cpu.weight: 10001 is not within 1 and 10000", .cpu_weight = LIMIT(10001));
	TAKEN(.cpu_quota = LIMIT(1000));
	TAKEN(.cpu_quota = LIMIT(LIMIT_MAX));
	REFUSED("cpu.max: 999 is not within 1000 and 9223372036854775807", .cpu_quota = LIMIT(999));
	TAKEN(.cpu_period = LIMIT(1000000));
	REFUSED("cpu.max: 1000001 is not within 1000 and 1000000", .cpu_period = LIMIT(1000001));
	REFUSED("cpu.max: 18446744073709551615 is not within 1000 and 1000000",
		.cpu_period = LIMIT(LIMIT_MAX));
	TAKEN(.cpu_quota = LIMIT(5000), .cpu_burst = LIMIT(5000));
	REFUSED("cpu.max.burst: more than the quota of a period", .cpu_quota = LIMIT(5000),
		.cpu_burst = LIMIT(5001));
	REFUSED("cpu.weight: an idle group (cpu.idle) has no weight", .cpu_idle = LIMIT(1),
		.cpu_weight = LIMIT(1));
	REFUSED("cpu.idle: 2 is not within 0 and 1", .cpu_idle = LIMIT(2));
	REFUSED("memory.oom.group: 2 is not within 0 and 1", .memory_oom_group = LIMIT(2));
	TAKEN(.pids_max = LIMIT(2147483647));
	REFUSED("pids.max: 2147483648 is not within 0 and 2147483647",
		.pids_max = LIMIT(2147483648));
	REFUSED("memory.max: 9223372036854775808 is not within 0 and 9223372036854775807",
		.memory_max = LIMIT(1ULL << 63));
	TAKEN(.blkio_weight = LIMIT(1000));
	REFUSED("io.weight: 1001 is not within 1 and 1000", .blkio_weight = LIMIT(1001));
}

static void texts_have_forms(void)
{
	static const struct limit_io stopped = { .rbps = { true, 0 } };
	static const struct limit_hugetlb huge[] = { { "2MiB", 1 }, { "MB", 1 }, { "2TB", 1 } };
	static const struct limit_rdma rdma = { .device = "a b" };
	static const struct limit_misc misc = { .name = "" };
	static const struct limit_file f[] = {
		{ "memory/high", "1" },
		{ "../memory.high", "1" },
		{ "cgroup.procs", "1" },
		{ "cgroup.freeze", "1" },
		{ "memory", "1" },
		{ "devices.allow", "a" },
		{ "", "1" },
	};
	static const struct limit_file good = { "cgroup.max.depth", "3" };
	static const struct limit_file empty = { "cpu.weight", NULL };

	TAKEN(.cpuset_cpus = "0-3,7");
	REFUSED("cpuset.cpus: \"0-\" is no list such as 0-3,7", .cpuset_cpus = "0-");
	REFUSED("cpuset.mems: \"\" is no list such as 0-3,7", .cpuset_mems = "");
	REFUSED("io.max: 0 is not within 1 and 9223372036854775807", .io = &stopped, .n_io = 1);
	for (size_t i = 0; i < ARRAY_SIZE(huge); i++)
		REFUSED("hugetlb: a size of pages is written as 64KB, 2MB or 1GB",
			.hugetlb = &huge[i], .n_hugetlb = 1);
	REFUSED("rdma.max: this cannot be the name of a device", .rdma = &rdma, .n_rdma = 1);
	REFUSED("misc.max: this cannot be the name of a resource", .misc = &misc, .n_misc = 1);
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		char text[100];

		(void)str_printf(text, sizeof(text), "unified: \"%s\" is no file of a controller",
				 f[i].file);
		REFUSED(text, .unified = &f[i], .n_unified = 1);
	}
	TAKEN(.unified = &good, .n_unified = 1);
	REFUSED("cpu.weight: the value is longer than 4096 bytes", .unified = &empty,
		.n_unified = 1);
}

static void lists_have_lengths(void)
{
	static struct limit_io io[LIMITS_IO_MAX + 1];
	static struct limit_hugetlb huge[LIMITS_HUGETLB_MAX + 1];
	static struct limit_rdma rdma[LIMITS_RDMA_MAX + 1];
	static struct limit_misc misc[LIMITS_MISC_MAX + 1];
	static struct limit_file f[LIMITS_UNIFIED_MAX + 1];
	static char text[LIMITS_TEXT_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(huge); i++)
		huge[i].size = "2MB";
	for (size_t i = 0; i < ARRAY_SIZE(rdma); i++)
		rdma[i].device = "d";
	for (size_t i = 0; i < ARRAY_SIZE(misc); i++)
		misc[i].name = "m";
	for (size_t i = 0; i < ARRAY_SIZE(f); i++)
		f[i] = (struct limit_file){ "pids.max", "1" };
	TAKEN(.io = io, .n_io = LIMITS_IO_MAX);
	REFUSED("io.max: more than 128 entries", .io = io, .n_io = LIMITS_IO_MAX + 1);
	TAKEN(.hugetlb = huge, .n_hugetlb = LIMITS_HUGETLB_MAX);
	REFUSED("hugetlb: more than 16 entries", .hugetlb = huge,
		.n_hugetlb = LIMITS_HUGETLB_MAX + 1);
	TAKEN(.rdma = rdma, .n_rdma = LIMITS_RDMA_MAX);
	REFUSED("rdma.max: more than 64 entries", .rdma = rdma, .n_rdma = LIMITS_RDMA_MAX + 1);
	TAKEN(.misc = misc, .n_misc = LIMITS_MISC_MAX);
	REFUSED("misc.max: more than 64 entries", .misc = misc, .n_misc = LIMITS_MISC_MAX + 1);
	TAKEN(.unified = f, .n_unified = LIMITS_UNIFIED_MAX);
	REFUSED("unified: more than 128 entries", .unified = f,
		.n_unified = LIMITS_UNIFIED_MAX + 1);
	memset(text, '1', LIMITS_TEXT_MAX);
	f[0].value = text;
	TAKEN(.unified = f, .n_unified = 1);
	text[LIMITS_TEXT_MAX] = '1';
	REFUSED("pids.max: the value is longer than 4096 bytes", .unified = f, .n_unified = 1);
}

static void words_of_version_1(void)
{
	struct error err = ERROR_INIT;
	struct limit l;

	CHECK_INT(limits_cpu_weight(0), 1);
	CHECK_INT(limits_cpu_weight(2), 1);
	CHECK_INT(limits_cpu_weight(512), 59);
	CHECK_INT(limits_cpu_weight(1024), 100);
	CHECK_INT(limits_cpu_weight(2048), 174);
	CHECK_INT(limits_cpu_weight(262144), 10000);
	CHECK_INT(limits_cpu_weight(1 << 20), 10000);
	CHECK_INT(limits_io_weight(1), 1);
	CHECK_INT(limits_io_weight(10), 1);
	CHECK_INT(limits_io_weight(1000), 10000);
	CHECK_INT(limits_io_weight(5000), 10000);

	CHECK_INT(limits_swap_max(&l, 1000, 1500, &err), 0);
	CHECK(l.set && l.value == 500);
	CHECK_INT(limits_swap_max(&l, 1000, 1000, &err), 0);
	CHECK(l.set && l.value == 0);
	CHECK_INT(limits_swap_max(&l, 1000, -1, &err), 0);
	CHECK(l.set && l.value == LIMIT_MAX);
	CHECK_INT(limits_swap_max(&l, -1, 0, &err), 0);
	CHECK(l.set && l.value == LIMIT_MAX);
	CHECK_INT(limits_swap_max(&l, 1000, 0, &err), 0);
	CHECK(!l.set);
	CHECK_INT(limits_swap_max(&l, 1000, 999, &err), -EINVAL);
	CHECK_STR(err.text, "memory.swap.max: less memory and swap together than memory alone");
	CHECK_INT(limits_swap_max(&l, 0, 999, &err), -EINVAL);
	CHECK_STR(err.text, "memory.swap.max: memory and swap are limited together, memory is not");
}

UNIT_MAIN({ "every knob, byte by byte and in order", writes_everything },
	  { "no limit, no write", writes_nothing },
	  { "BFQ's weight, a period alone, a burst alone", writes_in_other_forms },
	  { "whatever is refused, all is as before", takes_all_back },
	  { "a fault is no refusal", tells_a_fault_from_a_refusal },
	  { "also in files with many lines", takes_lines_back },
	  { "a file that is missing is told of before anything is written",
	    refuses_what_is_missing },
	  { "no limit needs nobody to enforce it", no_limit_needs_nobody },
	  { "processors that are not there", refuses_processors_that_are_not_there },
	  { "memory is not lowered below its use where that is asked", looks_before_it_lowers },
	  { "ranges of numbers", numbers_have_ranges }, { "forms of texts", texts_have_forms },
	  { "lengths of lists", lists_have_lengths }, { "words of version 1", words_of_version_1 })
