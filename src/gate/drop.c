/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/drop.h"

#include <assert.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"

/* Streams have two each (gate/node.h); the rest is a handful. */
#define DROP_FILES 512
/* Of a front: two for each visitor, one for each handshake (gate/front.h); of the metadata
 * services: two for each pod, one for each connection (gates/metadata_port.h). */
#define DROP_FILES_FRONT 2304

struct drop {
	enum drop_role role;
	uid_t uid;
	gid_t gid;
};

/*
 * Should: leave nothing to be named by a path. Must not: touch a mount of another namespace.
 */
static int drop_root(const struct drop *d, struct error *err)
{
	(void)d;
	if (syscall(SYS_unshare, CLONE_NEWNS) < 0)
		return error_set(err, -errno, "leave the mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, -errno, "make the mounts private");
	/* /proc is the one directory that every machine has and nobody needs here. */
	if (mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=4k,nr_inodes=2,mode=500") < 0)
		return error_set(err, -errno, "mount an empty root");
	if (chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return error_set(err, -errno, "change to the empty root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return error_set(err, -errno, "leave the old root");
	if (mount(NULL, "/", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return error_set(err, -errno, "make the empty root read-only");
	return 0;
}

/*
 * Should: bound descriptors, and write no file and no core. Must not: bound memory by the address
 * space, of which a sanitizer needs more than there is; buffers have limits of their own.
 */
static int drop_limits(const struct drop *d, struct error *err)
{
	static const struct {
		__rlimit_resource_t what;
		rlim_t value;
	} limits[] = { { RLIMIT_CORE, 0 }, { RLIMIT_NOFILE, DROP_FILES }, { RLIMIT_FSIZE, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		bool has_many = d->role == DROP_FRONT || d->role == DROP_METADATA;
		rlim_t value = limits[i].what == RLIMIT_NOFILE && has_many ? DROP_FILES_FRONT
									   : limits[i].value;
		const struct rlimit l = { .rlim_cur = value, .rlim_max = value };

		if (setrlimit(limits[i].what, &l) < 0)
			return error_set(err, -errno, "set a limit");
	}
	return 0;
}

/*
 * Should: take every capability out of the bounding set. Must not: come after the change of the
 * user, which takes CAP_SETPCAP away.
 */
static int drop_bounding(const struct drop *d, struct error *err)
{
	(void)d;
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return error_set(err, -errno, "drop capability %d", cap);
	return 0;
}

/*
 * Should: become a user that nobody else is, without groups. Must not: leave a way back.
 */
static int drop_user(const struct drop *d, struct error *err)
{
	if (d->uid == 0 || d->gid == 0)
		return error_refuse(err, ERROR_INVALID, "the user of a gate is not root");
	if (syscall(SYS_setgroups, 0, NULL) < 0)
		return error_set(err, -errno, "leave all groups");
	if (syscall(SYS_setresgid, d->gid, d->gid, d->gid) < 0)
		return error_set(err, -errno, "become group %u", d->gid);
	if (syscall(SYS_setresuid, d->uid, d->uid, d->uid) < 0)
		return error_set(err, -errno, "become user %u", d->uid);
	return 0;
}

/*
 * Should: have no capability in any set, gain none by executing anything, and be looked into by no
 * process of the same user. Must not: rely on the change of the user.
 */
static int drop_capabilities(const struct drop *d, struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };

	(void)d;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return error_set(err, -errno, "clear the ambient capabilities");
	if (syscall(SYS_capset, &header, none) < 0)
		return error_set(err, -errno, "set the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, -errno, "set no_new_privs");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, -errno, "be not dumpable");
	return 0;
}

/*
 * Should: forbid each access to a file of the guest, whose root is not empty. Must not: be needed:
 * a small kernel may have no Landlock, and the filter that follows knows no call that opens.
 */
static int drop_files(const struct drop *d, struct error *err)
{
	const struct landlock_ruleset_attr attr = { .handled_access_fs =
							    LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1 };
	_cleanup_fd_ int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	(void)d;
	if (fd >= 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return error_set(err, -errno, "enter a Landlock ruleset");
	return 0;
}

/* What all do: bytes over what is open, memory, time, random bytes, the end. */
static const int drop_calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendto),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg),
	SCMP_SYS(close),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(sched_yield),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(tgkill),
	SCMP_SYS(restart_syscall),
};

/* What those do besides that serve connections. */
static const int drop_calls_serving[] = {
	SCMP_SYS(accept4),    SCMP_SYS(shutdown),       SCMP_SYS(setsockopt),
	SCMP_SYS(getsockopt), SCMP_SYS(fcntl),          SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),  SCMP_SYS(epoll_wait),     SCMP_SYS(epoll_pwait),
	SCMP_SYS(eventfd2),   SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
};

static int drop_allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* Negative: this machine has no such call. */
		int r = calls[i] < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The calls that depend on what they are asked. */
static int drop_allow_some(scmp_filter_ctx filter, enum drop_role role)
{
	int domain = role == DROP_NODE ? AF_INET : AF_UNIX;
	int r;

	r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
			     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r < 0 || role == DROP_CA || role == DROP_RELAY || role == DROP_METADATA)
		return r;
	/* It connects to nobody: neither a socket that it has accepted, nor one of a pair, which
	 * as a datagram socket could be led anywhere. */
	if (role == DROP_FRONT)
		return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 2,
					SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
					SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM));
	r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(connect), 0);
	if (r < 0)
		return r;
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				SCMP_A0(SCMP_CMP_EQ, (unsigned)domain));
}

/*
 * Should: leave a list of calls without one that opens, executes, mounts or looks at another
 * process. Must not: end the process for a call that is not in it.
 */
static int drop_calls_of(const struct drop *d, struct error *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return error_set(err, -ENOMEM, "make a seccomp filter");
	r = drop_allow(filter, drop_calls, ARRAY_SIZE(drop_calls));
	if (r == 0 && d->role != DROP_CA)
		r = drop_allow(filter, drop_calls_serving, ARRAY_SIZE(drop_calls_serving));
	if (r == 0)
		r = drop_allow_some(filter, d->role);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? error_set(err, r, "load a seccomp filter") : 0;
}

#define PRIVILEGED                                                                                 \
	(1U << DROP_CA | 1U << DROP_NODE | 1U << DROP_RELAY | 1U << DROP_FRONT |                   \
	 1U << DROP_METADATA)
#define ALL_ROLES (PRIVILEGED | 1U << DROP_GUEST)

static const struct {
	const char *name;
	unsigned roles;
	int (*run)(const struct drop *d, struct error *err);
} drop_steps[] = {
	{ "root", PRIVILEGED, drop_root },
	{ "limits", ALL_ROLES, drop_limits },
	{ "bounding set", PRIVILEGED, drop_bounding },
	{ "user", PRIVILEGED, drop_user },
	{ "capabilities", ALL_ROLES, drop_capabilities },
	{ "files", 1U << DROP_GUEST, drop_files },
	{ "system calls", ALL_ROLES, drop_calls_of },
};

int drop_privilege(enum drop_role role, uid_t uid, gid_t gid, struct error *err)
{
	const struct drop d = { .role = role, .uid = uid, .gid = gid };

	for (size_t i = 0; i < ARRAY_SIZE(drop_steps); i++) {
		int r = 0;

		if (drop_steps[i].roles & 1U << role)
			r = drop_steps[i].run(&d, err);
		if (r < 0)
			return error_wrap(err, r, "drop privilege: %s", drop_steps[i].name);
	}
	return 0;
}
