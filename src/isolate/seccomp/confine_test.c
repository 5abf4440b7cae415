/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/seccomp/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "unit.h"

#define CAP(n) ((uint64_t)1 << (n))

/* A child's word is a line that it prints; its exit status says whether all was well. */
static void in_child(void (*test)(void))
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		unit_failures = 0;
		test();
		(void)fflush(stdout);
		_exit(unit_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct sets {
	uint64_t effective, permitted, inheritable;
};

static struct sets sets_now(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	CHECK(syscall(SYS_capget, &head, d) == 0);
	return (struct sets){ d[0].effective | (uint64_t)d[1].effective << 32,
			      d[0].permitted | (uint64_t)d[1].permitted << 32,
			      d[0].inheritable | (uint64_t)d[1].inheritable << 32 };
}

/* As who started us may have left it. */
static void inherit_one(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	CHECK(syscall(SYS_capget, &head, d) == 0);
	d[0].inheritable = (uint32_t)CAP(CAP_CHOWN);
	CHECK(syscall(SYS_capset, &head, d) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0) == 0);
	CHECK_INT(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 1);
}

static uint64_t bounding_now(void)
{
	uint64_t set = 0;

	for (unsigned cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			set |= CAP(cap);
	return set;
}

/* ---- system calls ---- */

static const struct {
	long number;
	int answer;
} calls[] = {
	/* All arguments are -1, so what the filter lets through fails in the kernel. */
	{ SYS_kexec_load, EPERM },
	{ SYS_init_module, EPERM },
	{ SYS_finit_module, EPERM },
	{ SYS_delete_module, EPERM },
	{ SYS_reboot, EPERM },
	{ SYS_swapon, EPERM },
	{ SYS_acct, EPERM },
	{ SYS_syslog, EPERM },
	{ SYS_clock_settime, EPERM },
	{ SYS_perf_event_open, EPERM },
	{ SYS_open_by_handle_at, EPERM },
	{ SYS_userfaultfd, EPERM },
	{ SYS_io_uring_setup, EPERM },
	{ SYS_add_key, EPERM },
	{ 1000, ENOSYS },
	{ 0x40000000 + SYS_getpid, ENOSYS },
	{ SYS_setns, EBADF },
	{ SYS_umount2, EINVAL },
	{ SYS_pivot_root, EFAULT },
	{ SYS_clone3, EINVAL },
	{ SYS_bpf, E2BIG },
	{ SYS_unshare, EINVAL },
	{ SYS_fsmount, EINVAL },
	{ SYS_seccomp, EINVAL },
	{ SYS_ptrace, EIO },
};

static void calls_are_refused(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		long r;

		errno = 0;
		r = syscall(calls[i].number, -1, -1, -1, -1, -1, -1);
		CHECK_INT(r, -1);
		/* What the kernel has to say itself depends on the kernel. */
		if (calls[i].answer == EPERM || calls[i].answer == ENOSYS)
			CHECK_INT(errno, calls[i].answer);
		else
			CHECK(errno != EPERM && errno != ENOSYS);
		if (unit_failures)
			printf("# call %ld: %d\n", calls[i].number, errno);
	}
	CHECK(socket(38, SOCK_SEQPACKET, 0) < 0 && errno == EPERM);
	CHECK(unshare(CLONE_NEWNS | CLONE_NEWUTS) == 0);
}

static int go[2], thread_errno;

static void *thread_tries(void *arg)
{
	char byte;

	CHECK(read(go[0], &byte, 1) == 1);
	(void)syscall(SYS_init_module, -1, -1, -1);
	thread_errno = errno;
	return arg;
}

static void daemon_in_child(void)
{
	struct error err = ERROR_INIT;
	uint64_t before = bounding_now();
	struct sets had = sets_now(), now;
	pthread_t thread;

	inherit_one();
	CHECK(pipe2(go, 0) == 0);
	CHECK(pthread_create(&thread, NULL, thread_tries, NULL) == 0);
	CHECK_INT(confine_daemon(&err), 0);
	CHECK_STR(err.text, "");
	CHECK(write(go[1], "x", 1) == 1);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_INT(thread_errno, EPERM);

	now = sets_now();
	CHECK_INT(bounding_now(), before & confine_caps);
	CHECK_INT(now.permitted, had.permitted & confine_caps);
	CHECK_INT(now.effective, had.permitted & confine_caps);
	CHECK_INT(now.inheritable, 0);
	CHECK(!(now.permitted & (CAP(CAP_SYS_MODULE) | CAP(CAP_SYS_BOOT) | CAP(CAP_SYS_RAWIO) |
				 CAP(CAP_SYS_TIME) | CAP(CAP_MAC_ADMIN) | CAP(CAP_SYSLOG))));
	CHECK_INT(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 0);
	CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
	CHECK_INT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 2);
	calls_are_refused();
}

static void the_daemon(void)
{
	if (geteuid() != 0)
		SKIP("needs root");
	in_child(daemon_in_child);
}

/* ---- keepers ---- */

static void keeper_in_child(void)
{
	struct error err = ERROR_INIT;
	uint64_t before = bounding_now();
	struct sets had = sets_now();

	CHECK_INT(confine_keeper(true, &err), 0);
	CHECK_INT(bounding_now(), before);
	CHECK_INT(sets_now().permitted, had.permitted);
	CHECK_INT(sets_now().effective, had.permitted & confine_caps);

	inherit_one();
	CHECK_INT(confine_keeper(false, &err), 0);
	CHECK_INT(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 0);
	CHECK_INT(confine_keeper(false, &err), 0);
	CHECK_INT(bounding_now(), before & confine_caps);
	CHECK_INT(sets_now().permitted, had.permitted & confine_caps);
	CHECK_INT(sets_now().inheritable, 0);
	/* What is inherited from the daemon is not made a second time. */
	CHECK_INT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
}

static void a_keeper(void)
{
	if (geteuid() != 0)
		SKIP("needs root");
	in_child(keeper_in_child);
}

/* ---- memory ---- */

/* 0, or the errno of making written memory executable. */
static int write_then_execute(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? errno : 0;

	(void)munmap(p, 4096);
	return r;
}

static void a_child_may(void)
{
	CHECK_INT(write_then_execute(), 0);
}

static void memory_in_child(void)
{
	/* PR_GET_MDWE: the kernel knows it, and with NO_INHERIT. */
	bool known = prctl(66, 0, 0, 0, 0) >= 0;

	CHECK_INT(write_then_execute(), 0);
	confine_memory();
	CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	if (known && prctl(66, 0, 0, 0, 0) == 3)
		CHECK_INT(write_then_execute(), EACCES);
	in_child(a_child_may);
}

static void memory(void)
{
	in_child(memory_in_child);
}

UNIT_MAIN({ "the daemon", the_daemon }, { "a keeper", a_keeper }, { "memory", memory })
