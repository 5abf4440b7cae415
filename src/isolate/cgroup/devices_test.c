/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "unit.h"

#define RULE(a, t, maj, min, acc)                                                                  \
	{                                                                                          \
		.allow = (a), .type = (t), .major = (maj), .minor = (min), .access = (acc)         \
	}

/* The kernel itself is asked: a process in a group opens and makes devices (security.md A14). */
struct bed {
	int root_fd, group_fd;
	int dir_fd; /* a tmpfs that takes devices */
	char group[32];
	char dir[40];
};

static bool bed_open(struct bed *b)
{
	*b = (struct bed){ .root_fd = cgroup_open_root(NULL), .group_fd = -1, .dir_fd = -1 };
	if (geteuid() != 0 || b->root_fd < 0)
		return false;
	(void)str_printf(b->group, sizeof(b->group), "nacre-devices-%d", (int)getpid());
	(void)str_copy(b->dir, sizeof(b->dir), "/tmp/nacre-devices-XXXXXX");
	b->group_fd = cgroup_make(b->root_fd, b->group, NULL);
	CHECK(mkdtemp(b->dir) != NULL);
	CHECK(mount("tmpfs", b->dir, "tmpfs", 0, "size=64k") == 0);
	b->dir_fd = open(b->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return b->group_fd >= 0 && b->dir_fd >= 0;
}

static void bed_close(struct bed *b)
{
	(void)fd_close(b->dir_fd);
	if (*b->dir) {
		CHECK(umount2(b->dir, MNT_DETACH) == 0);
		CHECK(rmdir(b->dir) == 0);
	}
	(void)fd_close(b->group_fd);
	if (*b->group)
		CHECK_INT(cgroup_remove(b->root_fd, b->group), 0);
	(void)fd_close(b->root_fd);
}

/* Runs fn() as a process in the group. Its checks count here as one. */
static void bed_inside(const struct bed *b, void (*fn)(const struct bed *b))
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		unit_failures = 0;
		CHECK_INT(fd_write_file(b->group_fd, "cgroup.procs", "0"), 0);
		fn(b);
		(void)fflush(stdout);
		_exit(unit_failures ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

static void in_bed(void (*fn)(const struct bed *b))
{
	struct bed b;

	if (bed_open(&b))
		bed_inside(&b, fn);
	else
		unit_skipped = "needs root and a v2 hierarchy";
	bed_close(&b);
}

/* 0, or the errno with which the node cannot be made. */
static int make(const struct bed *b, mode_t type, unsigned major, unsigned minor)
{
	if (mknodat(b->dir_fd, "node", type | 0600, makedev(major, minor)) < 0)
		return errno;
	CHECK(unlinkat(b->dir_fd, "node", 0) == 0);
	return 0;
}

static int try_open(const struct bed *b, const char *name, int flags)
{
	_cleanup_fd_ int fd = openat(b->dir_fd, name, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? errno : 0;
}

static bool is_default(mode_t type, unsigned major, unsigned minor)
{
	/* 0:0 is a white-out of overlayfs, which is no device and needs no leave. */
	if (type != S_IFCHR)
		return false;
	return (major == 0 && minor == 0) || major == 136 || (major == 5 && minor <= 2) ||
	       (major == 1 && (minor == 3 || minor == 5 || minor == 7 || minor == 8 || minor == 9));
}

static void default_inside(const struct bed *b)
{
	size_t wrong = 0;

	CHECK_INT(mknodat(b->dir_fd, "null", S_IFCHR | 0600, makedev(1, 3)), 0);
	CHECK_INT(mknodat(b->dir_fd, "mem", S_IFCHR | 0600, makedev(1, 1)), 0);
	CHECK_INT(mknodat(b->dir_fd, "fuse", S_IFCHR | 0600, makedev(10, 229)), 0);
	CHECK_INT(mknodat(b->dir_fd, "disk", S_IFBLK | 0600, makedev(7, 0)), 0);
	CHECK(try_open(b, "mem", O_RDONLY) != EPERM);
	CHECK_INT(
		devices_apply(b->group_fd, device_rules_default, device_rules_default_count, NULL),
		0);
	for (unsigned major = 0; major < 256; major++) {
		for (unsigned minor = 0; minor < 16; minor++) {
			wrong += make(b, S_IFCHR, major, minor) !=
				 (is_default(S_IFCHR, major, minor) ? 0 : EPERM);
			wrong += make(b, S_IFBLK, major, minor) !=
				 (is_default(S_IFBLK, major, minor) ? 0 : EPERM);
		}
	}
	CHECK_INT(wrong, 0);
	CHECK_INT(try_open(b, "null", O_RDWR), 0);
	CHECK_INT(try_open(b, "mem", O_RDONLY), EPERM);
	CHECK_INT(try_open(b, "fuse", O_RDWR), EPERM);
	CHECK_INT(try_open(b, "disk", O_RDONLY), EPERM);
	/* What is no device is nobody's business. */
	CHECK_INT(mknodat(b->dir_fd, "fifo", S_IFIFO | 0600, 0), 0);
	CHECK_INT(try_open(b, "fifo", O_RDONLY), 0);
}

static void only_the_default_set(void)
{
	in_bed(default_inside);
}

static const struct {
	unsigned major, minor;
	const char *name;
} nodes[] = { { 1, 3, "null" }, { 1, 5, "zero" }, { 1, 7, "full" }, { 1, 9, "urandom" } };

/* What the rules mean, said in another way: each kind of access is answered by the last rule that
 * speaks of it. */
static bool model(const struct device_rule *rules, size_t n, char type, unsigned major,
		  unsigned minor, unsigned access)
{
	for (unsigned bit = 1; bit <= DEVICE_MKNOD; bit <<= 1) {
		bool allowed = false;

		if (!(access & bit))
			continue;
		for (size_t i = 0; i < n; i++)
			if ((rules[i].type == 'a' || rules[i].type == type) &&
			    (rules[i].major == DEVICE_ANY || rules[i].major == major) &&
			    (rules[i].minor == DEVICE_ANY || rules[i].minor == minor) &&
			    rules[i].access & bit)
				allowed = rules[i].allow;
		if (!allowed)
			return false;
	}
	return true;
}

static struct device_rule random_rule(unsigned *seed)
{
	static const char types[] = { 'a', 'b', 'c', 'c' };
	static const int64_t majors[] = { 1, 1, DEVICE_ANY, 5 };
	static const int64_t minors[] = { 3, 5, 7, 9, DEVICE_ANY };
	struct device_rule rule = { .allow = rand_r(seed) % 3 > 0,
				    .type = types[rand_r(seed) % 4],
				    .major = majors[rand_r(seed) % 4],
				    .minor = minors[rand_r(seed) % 5],
				    .access = 1 + (unsigned)rand_r(seed) % 7 };

	/* What has a short form. */
	if (rand_r(seed) % 2)
		rule.access = DEVICE_ALL;
	if (rule.type == 'a')
		rule.major = rule.minor = DEVICE_ANY;
	return rule;
}

static void probe(const struct bed *b, const struct device_rule *rules, size_t n)
{
	static const struct {
		int flags;
		unsigned access;
	} modes[] = { { O_RDONLY, DEVICE_READ },
		      { O_WRONLY, DEVICE_WRITE },
		      { O_RDWR, DEVICE_READ | DEVICE_WRITE } };

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		unsigned major = nodes[i].major, minor = nodes[i].minor;

		for (size_t m = 0; m < ARRAY_SIZE(modes); m++)
			CHECK_INT(try_open(b, nodes[i].name, modes[m].flags),
				  model(rules, n, 'c', major, minor, modes[m].access) ? 0 : EPERM);
		CHECK_INT(make(b, S_IFCHR, major, minor),
			  model(rules, n, 'c', major, minor, DEVICE_MKNOD) ? 0 : EPERM);
		CHECK_INT(make(b, S_IFBLK, major, minor),
			  model(rules, n, 'b', major, minor, DEVICE_MKNOD) ? 0 : EPERM);
	}
}

static void order_inside(const struct bed *b)
{
	unsigned seed = 1;

	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
		CHECK_INT(mknodat(b->dir_fd, nodes[i].name, S_IFCHR | 0600,
				  makedev(nodes[i].major, nodes[i].minor)),
			  0);
	for (int round = 0; round < 200; round++) {
		struct device_rule rules[8];
		size_t n = (size_t)rand_r(&seed) % (ARRAY_SIZE(rules) + 1);

		for (size_t i = 0; i < n; i++)
			rules[i] = random_rule(&seed);
		CHECK_INT(devices_apply(b->group_fd, rules, n, NULL), 0);
		probe(b, rules, n);
	}
}

/* Numbers that no device has are not taken for others that look the same once they are cut. */
static void beyond_inside(const struct bed *b)
{
	static const struct device_rule rules[] = {
		RULE(true, 'c', 0x1001, 3, DEVICE_ALL),
		RULE(true, 'c', 0, 0x100003, DEVICE_ALL),
		RULE(true, 'c', DEVICE_ANY, 0x100003, DEVICE_ALL),
		RULE(true, 'c', 0x1001, DEVICE_ANY, DEVICE_ALL),
		RULE(true, 'c', 1, 5, DEVICE_ALL),
	};

	CHECK_INT(devices_apply(b->group_fd, rules, ARRAY_SIZE(rules), NULL), 0);
	CHECK_INT(make(b, S_IFCHR, 1, 3), EPERM);
	CHECK_INT(make(b, S_IFCHR, 1, 5), 0);
	CHECK_INT(make(b, S_IFCHR, 0xfff, 0xfffff), EPERM);
}

static void no_device_has_such_numbers(void)
{
	in_bed(beyond_inside);
}

static void the_last_rule_counts(void)
{
	in_bed(order_inside);
}

static unsigned attached(int group_fd)
{
	union bpf_attr attr = { .query = { .target_fd = (unsigned)group_fd,
					   .attach_type = BPF_CGROUP_DEVICE } };

	return syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr)) < 0 ? ~0U
									 : attr.query.prog_cnt;
}

/* Somebody else's program, which allows all. */
static void attach_another(int group_fd)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
				.insns = (uintptr_t)code,
				.insn_cnt = ARRAY_SIZE(code),
				.license = (uintptr_t) "none",
				.prog_name = "another" };
	_cleanup_fd_ int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	union bpf_attr attach = { .target_fd = (unsigned)group_fd,
				  .attach_bpf_fd = (unsigned)fd,
				  .attach_type = BPF_CGROUP_DEVICE,
				  .attach_flags = BPF_F_ALLOW_MULTI };

	CHECK(fd >= 0);
	CHECK(syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)) == 0);
}

static void update_inside(const struct bed *b)
{
	static const struct device_rule all[] = { RULE(true, 'a', DEVICE_ANY, DEVICE_ANY,
						       DEVICE_ALL) };
	struct error err = ERROR_INIT;
	_cleanup_fd_ int program = -1;

	attach_another(b->group_fd);
	CHECK_INT(devices_apply(b->group_fd, all, 1, &err), 0);
	CHECK_INT(attached(b->group_fd), 2);
	CHECK_INT(make(b, S_IFBLK, 7, 0), 0);
	/* No rule at all: nothing is allowed, whatever the other one says. */
	CHECK_INT(devices_apply(b->group_fd, NULL, 0, &err), 0);
	CHECK_INT(attached(b->group_fd), 2);
	CHECK_INT(make(b, S_IFCHR, 1, 3), EPERM);
	/* One program, more than once: it is there once. */
	program = devices_load(all, 1, &err);
	CHECK(program >= 0);
	CHECK_INT(devices_attach(b->group_fd, program, &err), 0);
	CHECK_INT(devices_attach(b->group_fd, program, &err), 0);
	CHECK_INT(attached(b->group_fd), 2);
	CHECK_INT(make(b, S_IFCHR, 1, 3), 0);
}

static void an_update_replaces(void)
{
	in_bed(update_inside);
}

static void refuses_rules(void)
{
	static const struct {
		struct device_rule rule;
		const char *text;
	} wrong[] = {
		{ RULE(true, 'x', 1, 1, 1), "[0]: a device's type is a, b or c" },
		{ RULE(true, 'c', -2, 1, 1), "[0]: not the number of a device" },
		{ RULE(true, 'c', 1, 1LL << 32, 1), "[0]: not the number of a device" },
		{ RULE(true, 'c', 1, 1, 0), "[0]: access to a device is made of r, w and m" },
		{ RULE(true, 'c', 1, 1, 8), "[0]: access to a device is made of r, w and m" },
		{ RULE(true, 'a', 1, DEVICE_ANY, 7), "[0]: devices of type a have no numbers" },
	};
	struct device_rule *many = calloc(DEVICE_RULES_MAX + 1, sizeof(*many));
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECK_INT(devices_check(&wrong[i].rule, 1, &err), -EINVAL);
		CHECK_STR(err.text, wrong[i].text);
		CHECK_INT(devices_load(&wrong[i].rule, 1, &err), -EINVAL);
	}
	for (size_t i = 0; many && i <= DEVICE_RULES_MAX; i++)
		many[i] = (struct device_rule)RULE(i % 3 > 0, i % 2 ? 'b' : 'c', (int64_t)i,
						   DEVICE_NUMBER_MAX - (int64_t)i % 7,
						   1 + (unsigned)i % 7);
	if (many) {
		CHECK_INT(devices_check(many, DEVICE_RULES_MAX, &err), 0);
		CHECK_INT(devices_check(many, DEVICE_RULES_MAX + 1, &err), -EINVAL);
	}
	if (many && geteuid() == 0) {
		_cleanup_fd_ int fd = devices_load(many, DEVICE_RULES_MAX, &err);

		CHECK(fd >= 0);
		CHECK_STR(fd < 0 ? err.text : "", "");
	}
	/* The longest list of what has a short form. */
	for (size_t i = 0; many && i <= DEVICE_RULES_MAX; i++)
		many[i] = (struct device_rule)RULE(true, 'c', (int64_t)i, 3, DEVICE_ALL);
	if (many && geteuid() == 0) {
		_cleanup_fd_ int fd = devices_load(many, DEVICE_RULES_MAX, &err);

		CHECK(fd >= 0);
	}
	free(many);
}

/* A device, those in a directory, and what is none of both; from the house's own /dev. */
static void given_ones_get_rules(void)
{
	struct device_rule *rules = calloc(DEVICE_RULES_MAX, sizeof(*rules));
	_cleanup_fd_ int null_fd = open("/dev/null", O_PATH | O_CLOEXEC);
	_cleanup_fd_ int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int file_fd = open("/proc/self/status", O_PATH | O_CLOEXEC);
	char empty[] = "/tmp/nacre-devices-XXXXXX";
	struct error err = ERROR_INIT;
	bool found = false;
	int empty_fd;
	size_t n = 0;

	CHECK(rules != NULL && mkdtemp(empty) != NULL);
	empty_fd = open(empty, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(devices_add_given(empty_fd, DEVICE_READ, rules, &n, &err), 0);
	CHECK_INT(n, 0);
	(void)fd_close(empty_fd);
	CHECK_INT(rmdir(empty), 0);
	CHECK_INT(devices_add_given(null_fd, DEVICE_READ, rules, &n, &err), 0);
	CHECK_INT(n, 1);
	CHECK(rules[0].allow && rules[0].type == 'c');
	CHECK_INT(rules[0].major, 1);
	CHECK_INT(rules[0].minor, 3);
	CHECK_INT(rules[0].access, DEVICE_READ);
	CHECK_INT(devices_add_given(file_fd, DEVICE_READ, rules, &n, &err), 0);
	CHECK_INT(n, 1);
	CHECK_INT(devices_add_given(dev_fd, DEVICE_WRITE, rules, &n, &err), 0);
	for (size_t i = 1; i < n; i++)
		found = found || (rules[i].type == 'c' && rules[i].major == 1 &&
				  rules[i].minor == 5 && rules[i].access == DEVICE_WRITE);
	CHECK(found);
	n = DEVICE_RULES_MAX;
	CHECK(devices_add_given(null_fd, DEVICE_READ, rules, &n, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	free(rules);
}

UNIT_MAIN({ "given devices get rules", given_ones_get_rules },
	  { "refuses rules that make no sense", refuses_rules },
	  { "a container has the default set and nothing else", only_the_default_set },
	  { "the last rule counts, for each kind of access", the_last_rule_counts },
	  { "no device has such numbers", no_device_has_such_numbers },
	  { "an update replaces the program, and no other", an_update_replaces })
