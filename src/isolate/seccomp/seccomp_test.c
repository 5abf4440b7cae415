/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/macros.h"
#include "isolate/plan/plan.h"
#include "isolate/seccomp/bpf_test.h"
#include "unit.h"

#define CAP(n) ((uint64_t)1 << (n))

static uint32_t arch(void)
{
	return isolate_seccomp_default(0)->filter[1].k;
}

/* 0: allowed, a negative errno: refused with it. */
static int asked(uint64_t caps, uint32_t number, uint64_t arg)
{
	struct seccomp_data data = { .nr = (int)number, .arch = arch(), .args = { arg } };
	uint32_t r = bpf_test_run(isolate_seccomp_default(caps), &data);

	if (r == SECCOMP_RET_ALLOW)
		return 0;
	return (r & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO ? -(int)(r & SECCOMP_RET_DATA)
								  : 1;
}

static const struct {
	long number;
	uint64_t arg;
	int without, with_admin;
} calls[] = {
	{ SYS_read, 0, 0, 0 },
	{ SYS_openat2, 0, 0, 0 },
	{ SYS_exit_group, 0, 0, 0 },
	{ SYS_ptrace, 0, 0, 0 },
	{ SYS_seccomp, 0, 0, 0 },
	{ SYS_close_range, 0, 0, 0 },
	{ 452, 0, 0, 0 }, /* fchmodat2 */
	{ SYS_mount, 0, -EPERM, 0 },
	{ SYS_umount2, 0, -EPERM, 0 },
	{ SYS_setns, 0, -EPERM, 0 },
	{ SYS_unshare, 0, -EPERM, 0 },
	{ SYS_move_mount, 0, -EPERM, 0 },
	{ SYS_mount_setattr, 0, -EPERM, 0 },
	{ SYS_bpf, 0, -EPERM, 0 },
	{ SYS_perf_event_open, 0, -EPERM, 0 },
	{ SYS_syslog, 0, -EPERM, 0 },
	{ SYS_clone3, 0, -ENOSYS, 0 },
	{ SYS_clone, SIGCHLD, 0, 0 },
	{ SYS_clone, 0x3d0f00, 0, 0 }, /* pthread_create */
	{ SYS_clone, CLONE_NEWUSER, -EPERM, 0 },
	{ SYS_clone, CLONE_NEWNS, -EPERM, 0 },
	{ SYS_clone, CLONE_NEWCGROUP, -EPERM, 0 },
	{ SYS_clone, CLONE_NEWNET | SIGCHLD, -EPERM, 0 },
	{ SYS_clone, UINT64_C(1) << 32 | SIGCHLD, 0, 0 },
	{ SYS_socket, AF_UNIX, 0, 0 },
	{ SYS_socket, AF_INET, 0, 0 },
	{ SYS_socket, AF_NETLINK, 0, 0 },
	{ SYS_socket, 37, 0, 0 },
	{ SYS_socket, 39, 0, 0 },
	{ SYS_socket, 41, 0, 0 },
	{ SYS_socket, AF_ALG, -EPERM, -EPERM },
	{ SYS_socket, UINT64_C(1) << 32 | AF_ALG, -EPERM, -EPERM }, /* the kernel takes an int */
	{ SYS_socket, AF_VSOCK, -EPERM, -EPERM },
	{ SYS_personality, 0, 0, 0 },
	{ SYS_personality, 8, 0, 0 },
	{ SYS_personality, 0x20000, 0, 0 },
	{ SYS_personality, 0x20008, 0, 0 },
	{ SYS_personality, UINT32_MAX, 0, 0 },
	{ SYS_personality, ADDR_NO_RANDOMIZE, -EPERM, -EPERM },
	{ SYS_keyctl, 0, -EPERM, -EPERM },
	{ SYS_pivot_root, 0, -EPERM, -EPERM },
	{ SYS_kexec_load, 0, -EPERM, -EPERM },
	{ SYS_io_uring_setup, 0, -EPERM, -EPERM },
	{ SYS_userfaultfd, 0, -EPERM, -EPERM },
	{ SYS_open_by_handle_at, 0, -EPERM, -EPERM },
	{ SYS_reboot, 0, -EPERM, -EPERM },
	{ SYS_init_module, 0, -EPERM, -EPERM },
	{ SYS_chroot, 0, -EPERM, -EPERM },
	{ 335, 0, -ENOSYS, -ENOSYS },
	{ 600, 0, -ENOSYS, -ENOSYS },
	{ 1023, 0, -ENOSYS, -ENOSYS },
	{ 1024, 0, -ENOSYS, -ENOSYS },
	{ 0x40000000 + 39, 0, -ENOSYS, -ENOSYS }, /* x32 */
	{ 0x40000000, 0, -ENOSYS, -ENOSYS },
	{ -1, 0, -ENOSYS, -ENOSYS },
};

static void answers(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int without = asked(isolate_caps_default, (uint32_t)calls[i].number, calls[i].arg);
		int with = asked(CAP(CAP_SYS_ADMIN), (uint32_t)calls[i].number, calls[i].arg);

		CHECK_INT(without, calls[i].without);
		CHECK_INT(with, calls[i].with_admin);
		if (without != calls[i].without || with != calls[i].with_admin)
			printf("# call %ld with %llx\n", calls[i].number,
			       (unsigned long long)calls[i].arg);
	}
}

/* Whose quota a file counts for is not left to its owner. */
static void projects(void)
{
	static const struct {
		unsigned long command;
		int answer;
	} asks[] = { { FS_IOC_FSGETXATTR, 0 },
		     { FS_IOC_GETFLAGS, 0 },
		     { FIONREAD, 0 },
		     { TIOCSWINSZ, 0 },
		     { FS_IOC_FSSETXATTR, -EPERM },
		     { FS_IOC_SETFLAGS, -EPERM },
		     { FS_IOC32_SETFLAGS, -EPERM },
		     { 1UL << 32 | FS_IOC_SETFLAGS, -EPERM } };

	for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
		struct seccomp_data data = { .nr = SYS_ioctl,
					     .arch = arch(),
					     .args = { 0, asks[i].command } };
		uint32_t plain = bpf_test_run(isolate_seccomp_default(isolate_caps_default), &data);
		uint32_t admin = bpf_test_run(isolate_seccomp_default(CAP(CAP_SYS_ADMIN)), &data);

		CHECK(plain == (asks[i].answer ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_ALLOW));
		CHECK(admin == plain);
		CHECK(bpf_test_run(isolate_seccomp_default(CAP(CAP_LINUX_IMMUTABLE)), &data) ==
		      SECCOMP_RET_ALLOW);
	}
}

static const struct {
	int cap;
	long number;
} unlocked[] = {
	{ CAP_DAC_READ_SEARCH, SYS_open_by_handle_at },
	{ CAP_SYS_BOOT, SYS_reboot },
	{ CAP_SYS_CHROOT, SYS_chroot },
	{ CAP_SYS_MODULE, SYS_finit_module },
	{ CAP_SYS_NICE, SYS_mbind },
	{ CAP_SYS_PACCT, SYS_acct },
	{ CAP_SYS_PTRACE, SYS_pidfd_getfd },
	{ CAP_SYS_TIME, SYS_clock_settime },
	{ CAP_SYS_TTY_CONFIG, SYS_vhangup },
	{ CAP_SYSLOG, SYS_syslog },
	{ CAP_BPF, SYS_bpf },
	{ CAP_PERFMON, SYS_perf_event_open },
};

static void capabilities(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(unlocked); i++) {
		CHECK_INT(asked(0, (uint32_t)unlocked[i].number, 0), -EPERM);
		CHECK_INT(asked(CAP(unlocked[i].cap), (uint32_t)unlocked[i].number, 0), 0);
		CHECK_INT(asked(CAP(unlocked[i].cap), SYS_mount, 0), -EPERM);
	}
	/* Two at once unlock what each unlocks. */
	CHECK_INT(asked(CAP(CAP_SYS_CHROOT) | CAP(CAP_SYS_PTRACE), SYS_chroot, 0), 0);
	CHECK_INT(asked(CAP(CAP_SYS_CHROOT) | CAP(CAP_SYS_PTRACE), SYS_kcmp, 0), 0);
	CHECK_INT(asked(CAP(CAP_SYS_CHROOT) | CAP(CAP_SYS_PTRACE), SYS_bpf, 0), -EPERM);
	/* Capabilities that unlock nothing share one filter, and all of them are a set like others.
	 */
	CHECK(isolate_seccomp_default(isolate_caps_default) == isolate_seccomp_default(0));
	CHECK_INT(asked(ISOLATE_CAPS_ALL, SYS_chroot, 0), 0);
	CHECK_INT(asked(ISOLATE_CAPS_ALL, SYS_keyctl, 0), -EPERM);
}

static void other_abis(void)
{
	static const uint32_t archs[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_PPC64LE, 0,
					  UINT32_MAX };
	struct seccomp_data data = { .nr = SYS_read };

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		data.arch = archs[i];
		CHECK(bpf_test_run(isolate_seccomp_default(0), &data) ==
		      (SECCOMP_RET_ERRNO | ENOSYS));
		CHECK(bpf_test_run(isolate_seccomp_default(ISOLATE_CAPS_ALL), &data) ==
		      (SECCOMP_RET_ERRNO | ENOSYS));
	}
}

/* Every number ends in one of the three answers, whatever its arguments, and never runs off the
 * end. */
static void total(void)
{
	static const uint64_t sets[] = { 0, CAP(CAP_SYS_ADMIN), ISOLATE_CAPS_ALL };
	int n_allowed[ARRAY_SIZE(sets)] = { 0 };

	for (size_t s = 0; s < ARRAY_SIZE(sets); s++)
		for (uint32_t number = 0; number < 2048; number++) {
			int r = asked(sets[s], number, 0);

			CHECK(r == 0 || r == -EPERM || r == -ENOSYS);
			n_allowed[s] += r == 0;
			CHECK(s == 0 || asked(0, number, 0) != 0 || r == 0);
		}
	CHECK(n_allowed[0] > 250 && n_allowed[0] < n_allowed[1] && n_allowed[1] < n_allowed[2]);
}

/* Past the limit of sets the answer is the strictest filter. Must be the last. */
static void limit(void)
{
	const struct sock_fprog *last = NULL;

	for (uint64_t i = 0; i < 200; i++) {
		last = isolate_seccomp_default(i << 16);
		CHECK(last && last->len > 0);
	}
	CHECK(last == isolate_seccomp_default(0));
}

UNIT_MAIN({ "answers of the filter", answers }, { "capabilities unlock calls", capabilities },
	  { "projects of files stay", projects }, { "other ABIs are refused", other_abis },
	  { "every number has an answer", total }, { "the limit of sets closes", limit })
