/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "base/text/str.h"

/*
 * The program holds in r5 which kinds of access no rule has answered yet, and looks at the rules
 * from the last to the first. A rule that forbids any of them ends it with 0; one that allows takes
 * its kinds away, and with none left the answer is 1. Behind the first rule the answer is 0.
 *
 * The kernel takes a microsecond for each instruction when it checks a program, so what most rules
 * are is shorter: one that allows every kind needs no look at them, several of the same type in a
 * row look at it once, and both numbers of a device are compared at once, as the kernel's dev_t
 * (r7). Behind a rule for all that there is nothing is reached.
 */

#define DEVICES_NAME "nacre_devices" /* BPF_OBJ_NAME_LEN holds 15 bytes */
#define DEVICES_FRAME_INSNS 14
#define DEVICES_RULE_INSNS 13
#define DEVICES_ATTACHED_MAX 64 /* BPF_CGROUP_MAX_PROGS */
#define DEVICES_ATTACH_ROUNDS 8
#define DEVICES_DEPTH_MAX 4 /* directories, of one that is given */
/* dev_t inside the kernel: 12 bits and 20. No device has other numbers. */
#define DEVICES_MINOR_BITS 20
#define DEVICES_MAJOR_MAX 0xfff
#define DEVICES_MINOR_MAX 0xfffff
/* Where to, until it is known: to the end that allows. */
#define DEVICES_TO_ALLOW INT16_MIN

#define RULE(t, maj, min)                                                                          \
	{                                                                                          \
		.allow = true, .type = (t), .major = (maj), .minor = (min), .access = DEVICE_ALL   \
	}

const struct device_rule device_rules_default[] = {
	RULE('c', 1, 3),            /* null */
	RULE('c', 1, 5),            /* zero */
	RULE('c', 1, 7),            /* full */
	RULE('c', 1, 8),            /* random */
	RULE('c', 1, 9),            /* urandom */
	RULE('c', 5, 0),            /* tty */
	RULE('c', 5, 1),            /* console */
	RULE('c', 5, 2),            /* ptmx */
	RULE('c', 136, DEVICE_ANY), /* pts */
};
const size_t device_rules_default_count = ARRAY_SIZE(device_rules_default);

struct devices_code {
	struct bpf_insn *insns;
	size_t n;
};

static void devices_code_done(struct devices_code *c)
{
	free(c->insns);
}

static bool device_number_is_good(int64_t n)
{
	return n == DEVICE_ANY || (n >= 0 && n <= DEVICE_NUMBER_MAX);
}

int devices_check(const struct device_rule *rules, size_t n, struct error *err)
{
	if (n > DEVICE_RULES_MAX)
		return error_refuse(err, ERROR_INVALID, "more than %d rules for devices",
				    DEVICE_RULES_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct device_rule *r = &rules[i];

		if (r->type != 'a' && r->type != 'b' && r->type != 'c')
			return error_refuse(err, ERROR_INVALID,
					    "[%zu]: a device's type is a, b or c", i);
		if (!device_number_is_good(r->major) || !device_number_is_good(r->minor))
			return error_refuse(err, ERROR_INVALID, "[%zu]: not the number of a device",
					    i);
		if (!r->access || r->access & ~DEVICE_ALL)
			return error_refuse(err, ERROR_INVALID,
					    "[%zu]: access to a device is made of r, w and m", i);
		if (r->type == 'a' && (r->major != DEVICE_ANY || r->minor != DEVICE_ANY))
			return error_refuse(err, ERROR_INVALID,
					    "[%zu]: devices of type a have no numbers", i);
	}
	return 0;
}

static void devices_add(struct devices_code *c, uint8_t code, unsigned dst, unsigned src,
			int16_t off, int32_t imm)
{
	c->insns[c->n++] = (struct bpf_insn){
		.code = code, .dst_reg = dst & 15U, .src_reg = src & 15U, .off = off, .imm = imm
	};
}

/* A jump over the rest of this rule unless the number is `value`; devices_rule() fills in where to.
 * By way of r6, since the kernel's check of a program follows each value that it knows of a
 * register through all that comes behind: long lists would be too much for it. */
static size_t devices_skip_unless(struct devices_code *c, unsigned reg, int64_t value)
{
	devices_add(c, BPF_ALU | BPF_MOV | BPF_K, BPF_REG_6, 0, 0, (int32_t)(uint32_t)value);
	devices_add(c, BPF_ALU | BPF_XOR | BPF_X, BPF_REG_6, reg, 0, 0);
	devices_add(c, BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_6, 0, 0, 0);
	return c->n - 1;
}

static int32_t devices_access(unsigned access)
{
	return (access & DEVICE_READ ? BPF_DEVCG_ACC_READ : 0) |
	       (access & DEVICE_WRITE ? BPF_DEVCG_ACC_WRITE : 0) |
	       (access & DEVICE_MKNOD ? BPF_DEVCG_ACC_MKNOD : 0);
}

/* r2: type, r3: major, r4: minor, r5: access that is open. */
static void devices_rule(struct devices_code *c, const struct device_rule *rule)
{
	size_t skips[3];
	size_t n_skips = 0;

	if (rule->type != 'a')
		skips[n_skips++] = devices_skip_unless(
			c, BPF_REG_2, rule->type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);
	if (rule->major != DEVICE_ANY)
		skips[n_skips++] = devices_skip_unless(c, BPF_REG_3, rule->major);
	if (rule->minor != DEVICE_ANY)
		skips[n_skips++] = devices_skip_unless(c, BPF_REG_4, rule->minor);
	if (rule->allow) {
		devices_add(c, BPF_ALU | BPF_AND | BPF_K, BPF_REG_5, 0, 0,
			    ~devices_access(rule->access));
		devices_add(c, BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_5, 0, 2, 0);
	} else {
		devices_add(c, BPF_JMP32 | BPF_JSET | BPF_K, BPF_REG_5, 0, 1,
			    devices_access(rule->access));
		devices_add(c, BPF_JMP | BPF_JA, 0, 0, 2, 0);
	}
	devices_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, rule->allow ? 1 : 0);
	devices_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (size_t i = 0; i < n_skips; i++)
		c->insns[skips[i]].off = (int16_t)(c->n - skips[i] - 1);
}

static bool devices_is_for_all(const struct device_rule *rule)
{
	return rule->access == DEVICE_ALL && rule->type == 'a';
}

static bool devices_is_quick(const struct device_rule *rule)
{
	return rule->allow && rule->access == DEVICE_ALL;
}

static void devices_allow_if(struct devices_code *c, unsigned reg, int64_t value)
{
	devices_add(c, BPF_JMP32 | BPF_JEQ | BPF_K, reg, 0, DEVICES_TO_ALLOW,
		    (int32_t)(uint32_t)value);
}

/* Of the type that was looked at. */
static void devices_quick_rule(struct devices_code *c, const struct device_rule *rule)
{
	if (rule->major == DEVICE_ANY && rule->minor == DEVICE_ANY)
		devices_add(c, BPF_JMP | BPF_JA, 0, 0, DEVICES_TO_ALLOW, 0);
	else if (rule->minor == DEVICE_ANY)
		devices_allow_if(c, BPF_REG_3, rule->major);
	else if (rule->major == DEVICE_ANY)
		devices_allow_if(c, BPF_REG_4, rule->minor);
	else if (rule->major <= DEVICES_MAJOR_MAX && rule->minor <= DEVICES_MINOR_MAX)
		devices_allow_if(c, BPF_REG_7, rule->major << DEVICES_MINOR_BITS | rule->minor);
}

/* The quick rules of one type that end at rules[n - 1]; how many are left before them. */
static size_t devices_quick_rules(struct devices_code *c, const struct device_rule *rules, size_t n)
{
	char type = rules[n - 1].type;
	size_t skip = devices_skip_unless(c, BPF_REG_2,
					  type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR);

	while (n > 0 && rules[n - 1].type == type && devices_is_quick(&rules[n - 1])) {
		n--;
		devices_quick_rule(c, &rules[n]);
		/* The rest of them would not be reached. */
		if (rules[n].major == DEVICE_ANY && rules[n].minor == DEVICE_ANY)
			break;
	}
	c->insns[skip].off = (int16_t)(c->n - skip - 1);
	return n;
}

static void devices_answer(struct devices_code *c, bool allow)
{
	devices_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, allow);
	devices_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* The lower half of access_type is the type of device, the upper one the access. */
static void devices_read(struct devices_code *c)
{
	devices_add(c, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, BPF_REG_1,
		    offsetof(struct bpf_cgroup_dev_ctx, access_type), 0);
	devices_add(c, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_5, BPF_REG_2, 0, 0);
	devices_add(c, BPF_ALU | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 0xffff);
	devices_add(c, BPF_ALU | BPF_RSH | BPF_K, BPF_REG_5, 0, 0, 16);
	devices_add(c, BPF_ALU | BPF_AND | BPF_K, BPF_REG_5, 0, 0, devices_access(DEVICE_ALL));
	devices_add(c, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_3, BPF_REG_1,
		    offsetof(struct bpf_cgroup_dev_ctx, major), 0);
	devices_add(c, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_4, BPF_REG_1,
		    offsetof(struct bpf_cgroup_dev_ctx, minor), 0);
	devices_add(c, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_3, 0, 0);
	devices_add(c, BPF_ALU | BPF_LSH | BPF_K, BPF_REG_7, 0, 0, DEVICES_MINOR_BITS);
	devices_add(c, BPF_ALU | BPF_OR | BPF_X, BPF_REG_7, BPF_REG_4, 0, 0);
}

/* The answer where no rule has one, and the one that quick rules jump to, if any does. */
static void devices_end(struct devices_code *c, bool otherwise)
{
	size_t allow = otherwise ? c->n : c->n + 2;
	bool jumped = false;

	devices_answer(c, otherwise);
	for (size_t i = 0; i + 2 < c->n; i++) {
		if (c->insns[i].off != DEVICES_TO_ALLOW)
			continue;
		c->insns[i].off = (int16_t)(allow - i - 1);
		jumped = true;
	}
	if (jumped && !otherwise)
		devices_answer(c, true);
}

static int devices_compile(struct devices_code *c, const struct device_rule *rules, size_t n)
{
	size_t left = n;

	*c = (struct devices_code){ .insns = calloc(DEVICES_FRAME_INSNS + n * DEVICES_RULE_INSNS,
						    sizeof(*c->insns)) };
	if (!c->insns)
		return -ENOMEM;
	devices_read(c);
	while (left > 0 && !devices_is_for_all(&rules[left - 1])) {
		if (devices_is_quick(&rules[left - 1]))
			left = devices_quick_rules(c, rules, left);
		else
			devices_rule(c, &rules[--left]);
	}
	/* What no rule names is forbidden. */
	devices_end(c, left > 0 && rules[left - 1].allow);
	return 0;
}

static int devices_bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

static int devices_refused(struct error *err, int r, const char *what)
{
	if (r == -EPERM || r == -ENOSYS)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: this host does not let us (it needs CAP_SYS_ADMIN and "
				    "CONFIG_CGROUP_BPF)",
				    what);
	return error_set(err, r, "%s", what);
}

int devices_load(const struct device_rule *rules, size_t n, struct error *err)
{
	_cleanup_(devices_code_done) struct devices_code code = { .insns = NULL };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_CGROUP_DEVICE };
	int r = devices_check(rules, n, err);

	if (r < 0)
		return r;
	r = devices_compile(&code, rules, n);
	if (r < 0)
		return error_set(err, r, "rules for devices");
	attr.insns = (uintptr_t)code.insns;
	attr.insn_cnt = (uint32_t)code.n;
	attr.license = (uintptr_t) "Apache-2.0";
	(void)str_copy(attr.prog_name, sizeof(attr.prog_name), DEVICES_NAME);
	/* EAGAIN: a signal came while the kernel checked the program. */
	do
		r = devices_bpf(BPF_PROG_LOAD, &attr);
	while (r == -EAGAIN);
	return r < 0 ? devices_refused(err, r, "load the rules for devices") : r;
}

/* A descriptor of the program with this number if it is one of ours, else -ENOENT. */
static int devices_open_ours(uint32_t id)
{
	union bpf_attr attr = { .prog_id = id };
	struct bpf_prog_info info = { .type = 0 };
	_cleanup_fd_ int fd = devices_bpf(BPF_PROG_GET_FD_BY_ID, &attr);
	int r;

	if (fd < 0)
		return fd;
	attr = (union bpf_attr){ .info = { .bpf_fd = (uint32_t)fd,
					   .info_len = sizeof(info),
					   .info = (uintptr_t)&info } };
	r = devices_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
	if (r < 0)
		return r;
	return strncmp(info.name, DEVICES_NAME, sizeof(info.name)) == 0 ? TAKE_FD(fd) : -ENOENT;
}

int devices_present(int cgroup_fd)
{
	uint32_t ids[DEVICES_ATTACHED_MAX];
	union bpf_attr attr = { .query = { .target_fd = (uint32_t)cgroup_fd,
					   .attach_type = BPF_CGROUP_DEVICE,
					   .prog_ids = (uintptr_t)ids,
					   .prog_cnt = ARRAY_SIZE(ids) } };
	int r = devices_bpf(BPF_PROG_QUERY, &attr);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < attr.query.prog_cnt; i++) {
		r = devices_open_ours(ids[i]);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int devices_detach(int cgroup_fd, int program_fd)
{
	union bpf_attr attr = { .target_fd = (uint32_t)cgroup_fd,
				.attach_bpf_fd = (uint32_t)program_fd,
				.attach_type = BPF_CGROUP_DEVICE };

	return devices_bpf(BPF_PROG_DETACH, &attr);
}

static int devices_attach_once(int cgroup_fd, int program_fd)
{
	_cleanup_fd_ int old = devices_present(cgroup_fd);
	union bpf_attr attr = { .target_fd = (uint32_t)cgroup_fd,
				.attach_bpf_fd = (uint32_t)program_fd,
				.attach_type = BPF_CGROUP_DEVICE,
				.attach_flags = BPF_F_ALLOW_MULTI };

	if (old < 0 && old != -ENOENT)
		return old;
	if (old >= 0) {
		attr.attach_flags |= BPF_F_REPLACE;
		attr.replace_bpf_fd = (uint32_t)old;
	}
	return devices_bpf(BPF_PROG_ATTACH, &attr);
}

int devices_attach(int cgroup_fd, int program_fd, struct error *err)
{
	int r = -ENOENT;

	/* ENOENT: somebody else replaced the one that was found. */
	for (int i = 0; i < DEVICES_ATTACH_ROUNDS && r == -ENOENT; i++)
		r = devices_attach_once(cgroup_fd, program_fd);
	return r < 0 ? devices_refused(err, r, "put the rules for devices on the cgroup") : 0;
}

/* ---- what is given ---- */

static int devices_add_one(const struct stat *st, unsigned access,
			   struct device_rule rules[DEVICE_RULES_MAX], size_t *n, struct error *err)
{
	if (*n == DEVICE_RULES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "more than %d rules for devices",
				    DEVICE_RULES_MAX);
	rules[(*n)++] = (struct device_rule){ .allow = true,
					      .type = S_ISBLK(st->st_mode) ? 'b' : 'c',
					      .major = major(st->st_rdev),
					      .minor = minor(st->st_rdev),
					      .access = access };
	return 0;
}

/* depth: of directories, one in the other, that are still looked into. */
static int devices_add_below(int fd, unsigned depth, unsigned access,
			     struct device_rule rules[DEVICE_RULES_MAX], size_t *n,
			     struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int dir_fd = -1;
	struct stat st;
	int r = 0;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at a device");
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		return devices_add_one(&st, access, rules, n, err);
	if (!S_ISDIR(st.st_mode) || depth == 0)
		return 0;
	dir_fd = rootfd_open_beneath(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = dir_fd < 0 ? dir_fd : fd_list_dir(dir_fd, &names);
	if (r < 0)
		return error_set(err, r, "look for devices");
	for (size_t i = 0; names && names[i] && r == 0; i++) {
		_cleanup_fd_ int next_fd = rootfd_point(dir_fd, names[i]);

		/* A link, or gone meanwhile. */
		if (next_fd >= 0)
			r = devices_add_below(next_fd, depth - 1, access, rules, n, err);
	}
	return r;
}

int devices_add_given(int fd, unsigned access, struct device_rule rules[DEVICE_RULES_MAX],
		      size_t *n, struct error *err)
{
	return devices_add_below(fd, DEVICES_DEPTH_MAX, access, rules, n, err);
}

int devices_apply(int cgroup_fd, const struct device_rule *rules, size_t n, struct error *err)
{
	_cleanup_fd_ int fd = devices_load(rules, n, err);

	return fd < 0 ? fd : devices_attach(cgroup_fd, fd, err);
}
