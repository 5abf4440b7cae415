/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "isolate/plan/plan.h"
#include "isolate/seccomp/seccomp_golden_test.h"
#include "isolate/seccomp/seccomp_profile.h"
#include "unit.h"

/*
 * Filters in the kernel, in children. Where each system call there is must be asked for, none is
 * carried out: a second filter hands those that the first one allows to a listener, and it answers
 * with an errno that nothing else has. A refusal weighs more than a listener.
 */

#define X32 0x40000000L
#define ANSWER 4000 /* of the listener: the filter allows it */
#define PATIENCE 60000

#define CAP(n) ((uint64_t)1 << (n))

/* The nine of a container; CAP_SYS_ADMIN; PTRACE, NICE, TIME and CHROOT; all. */
static const uint64_t golden_caps[] = { 0, CAP(21), CAP(19) | CAP(23) | CAP(25) | CAP(18),
					ISOLATE_CAPS_ALL };

enum entry { ENTRY_64, ENTRY_X32, ENTRY_I386, ENTRY_COUNT };

static long enter64(long number, uint64_t a, uint64_t b)
{
	register uint64_t r10 __asm__("r10") = b;
	register uint64_t r8 __asm__("r8") = b;
	register uint64_t r9 __asm__("r9") = b;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(b), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static long enter80(long number, uint64_t a, uint64_t b)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(number), "b"(a), "c"(b), "d"(b), "S"(b), "D"(b)
			 : "r8", "r9", "r10", "r11", "memory");
	return (int)ret;
}

static long enter(enum entry e, long number, uint64_t a, uint64_t b)
{
	if (e == ENTRY_I386)
		return enter80(number, a, b);
	return enter64(e == ENTRY_X32 ? number + X32 : number, a, b);
}

static void install(const struct sock_fprog *prog, unsigned flags)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog) < 0)
		_exit(100);
}

/* The child's wait status. */
static int run(const struct seccomp_filter *f, int (*child)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		install(&f->prog, f->flags);
		_exit(child());
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static int exits(const struct seccomp_filter *f, int (*child)(void))
{
	int status = run(f, child);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- one listener ---- */

/* What a listener's child and its parent see of each other. */
struct shared {
	int listener; /* its number in the child, plus one */
	short answers[ENTRY_COUNT][1024];
	short families[64];
	short by_socketcall;
};

static const struct sock_filter listen_insns[] = {
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
};

static void listen_to_all(volatile struct shared *s)
{
	const struct sock_fprog prog = { .len = ARRAY_SIZE(listen_insns),
					 .filter = (struct sock_filter *)(uintptr_t)listen_insns };
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			  &prog);

	s->listener = (int)fd + 1;
	if (fd < 0)
		_exit(101);
}

/* Answers until the child has ended. */
static void answer_all(int listener_fd)
{
	for (;;) {
		struct seccomp_notif req = { 0 };
		struct seccomp_notif_resp resp = { .error = -ANSWER };
		struct pollfd p = { .fd = listener_fd, .events = POLLIN };

		if (poll(&p, 1, PATIENCE) <= 0 || !(p.revents & POLLIN))
			return;
		if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &req) < 0)
			continue;
		resp.id = req.id;
		if (req.data.nr == SYS_exit_group && req.data.args[0] == 77) {
			resp.error = 0;
			resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		(void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
	}
}

/* The child's number for its listener is a promise; it waits in its first call by then. */
static int take_listener(pid_t pid, volatile struct shared *s)
{
	_cleanup_fd_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	for (int i = 0; i < PATIENCE && s->listener == 0; i++)
		(void)usleep(1000);
	return s->listener > 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, s->listener - 1, 0) : -1;
}

/* uretprobe and uprobe: since 6.14 no filter is asked about them, and SIGILL is the answer to who
 * calls them from elsewhere than the kernel's own page. */
static bool is_of_kernel(enum entry e, long number)
{
	return e == ENTRY_64 && (number == 335 || number == 336);
}

static void ask_everything(volatile struct shared *s, bool has_i386)
{
	for (int e = 0; e < (has_i386 ? ENTRY_COUNT : ENTRY_I386); e++)
		for (long n = 0; n < 1024; n++)
			s->answers[e][n] =
				is_of_kernel((enum entry)e, n)
					? -ENOSYS
					: (short)enter((enum entry)e, n, UINT64_MAX, UINT64_MAX);
	for (uint64_t family = 0; family < ARRAY_SIZE(s->families); family++)
		s->families[family] = (short)enter64(SYS_socket, family, 0);
	s->by_socketcall = has_i386 ? (short)enter80(102, 1, 0) : -ENOSYS;
	(void)enter64(SYS_exit_group, 77, 0);
}

static int call_i386(void)
{
	return enter80(20, 0, 0) == -99 ? 7 : 8; /* getpid */
}

/* A kernel without the ABI ends whoever asks. */
static bool has_i386(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(enter80(20, 0, 0) > 0 ? 7 : 8);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 7;
}

static volatile struct shared *ask_kernel(uint64_t caps)
{
	volatile struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct sock_fprog *prog = isolate_seccomp_default(caps);
	bool i386 = has_i386();
	_cleanup_fd_ int listener_fd = -1;
	int status = -1;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		install(prog, 0);
		listen_to_all(s);
		ask_everything(s, i386);
		for (;;)
			(void)enter64(SYS_exit_group, 77, 0);
	}
	listener_fd = take_listener(pid, s);
	CHECK(listener_fd >= 0);
	if (listener_fd >= 0)
		answer_all(listener_fd);
	else
		(void)kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 77);
	return s;
}

/* ---- the container's filter ---- */

static int golden_class(size_t column, long number)
{
	for (size_t i = 0; i < ARRAY_SIZE(golden); i++)
		if (golden[i].number == number)
			return golden[i].classes[column] == 'a'   ? -ANSWER
			       : golden[i].classes[column] == 'p' ? -EPERM
								  : -ENOSYS;
	return -ENOSYS;
}

static void golden_compare(size_t column, const volatile struct shared *s)
{
	bool differs = false;

	for (long n = 0; n < 1024 && !differs; n++) {
		short i386 = s->answers[ENTRY_I386][n];

		CHECK_INT(s->answers[ENTRY_64][n], golden_class(column, n));
		CHECK_INT(s->answers[ENTRY_X32][n], -ENOSYS);
		CHECK(i386 == -ENOSYS || i386 == 0);
		differs = s->answers[ENTRY_64][n] != golden_class(column, n) ||
			  s->answers[ENTRY_X32][n] != -ENOSYS || (i386 != -ENOSYS && i386 != 0);
		if (differs)
			printf("# call %ld with set %zu\n", n, column);
	}
	/* security.md A38. */
	for (int i = 0; i < 47; i++)
		CHECK_INT(s->families[i], i == 38 || i == 40 ? -EPERM : -ANSWER);
	CHECK_INT(s->by_socketcall, -ENOSYS);
}

/* What the table would have to say: for a person who has changed seccomp.rules. */
static void golden_print(volatile struct shared *const *s)
{
	for (long n = 0; n < 1024; n++) {
		char classes[ARRAY_SIZE(golden_caps) + 1] = "";
		bool known = false;

		for (size_t i = 0; i < ARRAY_SIZE(golden_caps); i++) {
			short a = s[i]->answers[ENTRY_64][n];

			classes[i] = a == -ANSWER ? 'a' : a == -EPERM ? 'p' : 'n';
			known = known || classes[i] != 'n';
		}
		if (known)
			printf("\t{ %ld, \"\", \"%s\" },\n", n, classes);
	}
}

static void table(void)
{
	volatile struct shared *s[ARRAY_SIZE(golden_caps)];

	for (size_t i = 0; i < ARRAY_SIZE(golden_caps); i++) {
		s[i] = ask_kernel(golden_caps[i]);
		golden_compare(i, s[i]);
	}
	if (getenv("SECCOMP_GOLDEN"))
		golden_print(s);
	for (size_t i = 0; i < ARRAY_SIZE(golden_caps); i++)
		(void)munmap((void *)(uintptr_t)s[i], sizeof(*s[i]));
}

/* ---- users' profiles ---- */

static struct seccomp_filter *compile(const char *action, const char *name)
{
	static const char *const archs[] = { "SCMP_ARCH_X32", "SCMP_ARCH_X86" };
	const struct seccomp_profile_rule rule = {
		.names = &name,
		.n_names = 1,
		.action = action,
		.has_errno = strcmp(action, "SCMP_ACT_ERRNO") == 0,
		.errno_value = 99,
	};
	const struct seccomp_profile p = { .default_action = "SCMP_ACT_ALLOW",
					   .archs = archs,
					   .n_archs = ARRAY_SIZE(archs),
					   .listener_path = "/",
					   .rules = &rule,
					   .n_rules = 1 };
	struct seccomp_filter *f = NULL;
	struct error err = ERROR_INIT;
	int r = seccomp_profile_compile(&f, &p, &err);

	CHECK(r == 0 || r == -ENOMEM);
	return f;
}

static int call_getppid(void)
{
	long r = enter64(SYS_getppid, 0, 0);

	return r > 0 ? 7 : r == -99 ? 8 : r == -ENOSYS ? 9 : 10;
}

static int trapped;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig == SIGSYS && info->si_syscall == SYS_getppid)
		trapped = 1;
}

static int call_trapped(void)
{
	const struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	(void)sigaction(SIGSYS, &action, NULL);
	(void)enter64(SYS_getppid, 0, 0);
	return trapped ? 7 : 8;
}

static int call_x32(void)
{
	return enter64(SYS_getpid + X32, 0, 0) == -99 ? 7 : 8;
}

static const struct {
	const char *action, *name;
	int (*child)(void);
	int ends;
} profiles[] = {
	{ "SCMP_ACT_ALLOW", "getppid", call_getppid, 7 },
	{ "SCMP_ACT_LOG", "getppid", call_getppid, 7 },
	{ "SCMP_ACT_ERRNO", "getppid", call_getppid, 8 },
	{ "SCMP_ACT_ERRNO", "getpid", call_getppid, 7 },
	/* There is no tracer. */
	{ "SCMP_ACT_TRACE", "getppid", call_getppid, 9 },
	{ "SCMP_ACT_KILL_PROCESS", "getppid", call_getppid, 128 + SIGSYS },
	{ "SCMP_ACT_KILL", "getppid", call_getppid, 128 + SIGSYS },
	{ "SCMP_ACT_TRAP", "getppid", call_trapped, 7 },
	{ "SCMP_ACT_ERRNO", "getpid", call_x32, 7 },
};

static void actions(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		_cleanup_(seccomp_filter_freep) struct seccomp_filter *f =
			compile(profiles[i].action, profiles[i].name);

		if (!f)
			return;
		CHECK_INT(exits(f, profiles[i].child), profiles[i].ends);
	}
}

static void i386(void)
{
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *f = NULL;

	if (!has_i386())
		SKIP("the kernel executes no 32-bit programs");
	f = compile("SCMP_ACT_ERRNO", "getpid");
	if (f)
		CHECK_INT(exits(f, call_i386), 7);
}

/* An ABI that the profile does not list. */
static void unlisted(void)
{
	const struct seccomp_profile p = { .default_action = "SCMP_ACT_ALLOW" };
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *f = NULL;

	if (seccomp_profile_compile(&f, &p, NULL) < 0)
		return;
	CHECK_INT(exits(f, call_getppid), 7);
	CHECK_INT(exits(f, call_x32), 128 + SIGSYS);
	if (has_i386())
		CHECK_INT(exits(f, call_i386), 128 + SIGSYS);
}

static void notifies(void)
{
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *f =
		compile("SCMP_ACT_NOTIFY", "getppid");
	volatile struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_cleanup_fd_ int listener_fd = -1;
	int status = -1;
	pid_t pid;

	if (!f)
		return;
	CHECK(f->notify);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		s->listener =
			1 + (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					 f->flags | SECCOMP_FILTER_FLAG_NEW_LISTENER, &f->prog);
		_exit(enter64(SYS_getppid, 0, 0) == -ANSWER ? 7 : 8);
	}
	listener_fd = take_listener(pid, s);
	CHECK(listener_fd >= 0);
	answer_all(listener_fd);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	(void)munmap((void *)(uintptr_t)s, sizeof(*s));
}

UNIT_MAIN({ "every number, by every entry", table },
	  { "what the kernel does for each action", actions }, { "i386", i386 },
	  { "an ABI that is not listed", unlisted }, { "a listener decides", notifies })
