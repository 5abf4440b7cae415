/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macros.h"

#define SANDBOX_CPU_SECONDS 600
#define SANDBOX_FILES 64

/* LANDLOCK_ACCESS_FS_TRUNCATE of Linux 6.2, which the headers of Debian 12 do not know. */
#define SANDBOX_LANDLOCK_TRUNCATE (UINT64_C(1) << 14)

#define CAP(name) (UINT64_C(1) << (name))

static const struct {
	uint64_t caps;
	uint64_t landlock; /* what is allowed below the directory */
} sandbox_jobs[] = {
	/* A directory as the source may hold files of other owners. */
	[SANDBOX_READ] = { CAP(CAP_DAC_READ_SEARCH),
			   LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				   LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |
				   SANDBOX_LANDLOCK_TRUNCATE },
	/* A whiteout, the character device 0:0, needs no CAP_MKNOD (since 5.8); other devices do,
	 * so this process cannot make one. */
	[SANDBOX_UNPACK] = { CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) |
				     CAP(CAP_FSETID) | CAP(CAP_SETFCAP),
			     LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				     LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
				     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE |
				     LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REFER |
				     SANDBOX_LANDLOCK_TRUNCATE },
};

/*
 * Should: leave nothing to be named by a path. Must not: touch a mount outside this namespace.
 */
static int sandbox_empty_root(struct error *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, -errno, "make the mounts private");
	/* /proc is the one directory that every machine has and nobody needs here. */
	if (mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "size=4k,nr_inodes=2,mode=500") < 0)
		return error_set(err, -errno, "mount an empty root");
	if (chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return error_set(err, -errno, "change to the empty root");
	if (umount2(".", MNT_DETACH) < 0)
		return error_set(err, -errno, "leave the old root");
	if (chdir("/") < 0)
		return error_set(err, -errno, "change to the empty root");
	if (mount(NULL, "/", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return error_set(err, -errno, "make the empty root read-only");
	return 0;
}

static int sandbox_limits(uint64_t max_file, struct error *err)
{
	const struct {
		__rlimit_resource_t what;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_CPU, SANDBOX_CPU_SECONDS },
		{ RLIMIT_NOFILE, SANDBOX_FILES },
		{ RLIMIT_FSIZE, max_file },
		{ RLIMIT_AS, NACRE_FETCH_ADDRESS_SPACE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct rlimit l = { .rlim_cur = limits[i].value,
					  .rlim_max = limits[i].value };

		if (setrlimit(limits[i].what, &l) < 0)
			return error_set(err, -errno, "set a limit");
	}
	return 0;
}

static int sandbox_landlock_rule(int ruleset_fd, int dir_fd, uint64_t access, struct error *err)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = access,
							 .parent_fd = dir_fd };

	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return error_set(err, -errno, "add a Landlock rule");
	return 0;
}

/*
 * Should: allow the access of the job below write_fd and reading below read_fd, and no other. Where
 * the kernel has no Landlock, or one that forbids every hard link across directories (before 5.19),
 * the empty root and the detached mounts that the core handed in stand alone.
 */
static int sandbox_landlock(enum sandbox_job job, int write_fd, int read_fd, struct error *err)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr attr = { .handled_access_fs =
						      LANDLOCK_ACCESS_FS_REFER * 2 - 1 };
	uint64_t read_access = LANDLOCK_ACCESS_FS_READ_FILE;
	_cleanup_fd_ int ruleset_fd = -1;
	struct stat st;
	int r;

	if (version < 2)
		return 0;
	if (version >= 3)
		attr.handled_access_fs |= SANDBOX_LANDLOCK_TRUNCATE;
	ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset_fd < 0)
		return error_set(err, -errno, "make a Landlock ruleset");
	r = sandbox_landlock_rule(ruleset_fd, write_fd,
				  sandbox_jobs[job].landlock & attr.handled_access_fs, err);
	if (r < 0)
		return r;
	if (fstat(read_fd, &st) < 0)
		return error_set(err, -errno, "look at the source");
	if (S_ISDIR(st.st_mode))
		r = sandbox_landlock_rule(ruleset_fd, read_fd, read_access, err);
	if (r < 0)
		return r;
	if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		return error_set(err, -errno, "enter the Landlock ruleset");
	return 0;
}

/*
 * Should: leave exactly these capabilities, also to a program that would be executed. Must not: be
 * reversible.
 */
static int sandbox_capabilities(uint64_t caps, struct error *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)caps, .permitted = (uint32_t)caps },
		{ .effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32) },
	};

	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return error_set(err, -errno, "drop capability %d", cap);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return error_set(err, -errno, "clear the ambient capabilities");
	if (syscall(SYS_capset, &header, data) < 0)
		return error_set(err, -errno, "set the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, -errno, "set no_new_privs");
	return 0;
}

/* What both jobs need: memory, descriptors that are open, files below them, the socket, the end. */
static const int sandbox_calls_common[] = {
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(openat),
	SCMP_SYS(openat2),
	SCMP_SYS(fcntl),
	SCMP_SYS(unlinkat),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(sendto),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg),
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

static const int sandbox_calls_unpack[] = {
	SCMP_SYS(mkdirat),   SCMP_SYS(mknodat),   SCMP_SYS(symlinkat),  SCMP_SYS(linkat),
	SCMP_SYS(fchown),    SCMP_SYS(fchownat),  SCMP_SYS(fchmod),     SCMP_SYS(fchmodat),
	SCMP_SYS(utimensat), SCMP_SYS(fsetxattr), SCMP_SYS(getdents64), SCMP_SYS(syncfs),
};

static int sandbox_allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		/* Negative: this machine has no such call. */
		if (calls[i] < 0)
			continue;
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int sandbox_seccomp(enum sandbox_job job, struct error *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r;

	if (!filter)
		return error_set(err, -ENOMEM, "make a seccomp filter");
	r = sandbox_allow(filter, sandbox_calls_common, ARRAY_SIZE(sandbox_calls_common));
	if (r == 0 && job == SANDBOX_UNPACK)
		r = sandbox_allow(filter, sandbox_calls_unpack, ARRAY_SIZE(sandbox_calls_unpack));
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? error_set(err, r, "load a seccomp filter") : 0;
}

int sandbox_enter(enum sandbox_job job, int write_fd, int read_fd, uint64_t max_file,
		  struct error *err)
{
	int r;

	r = sandbox_empty_root(err);
	if (r == 0)
		r = sandbox_limits(max_file, err);
	/* Both of the next two need no_new_privs or CAP_SYS_ADMIN: Landlock has the one still. */
	if (r == 0)
		r = sandbox_landlock(job, write_fd, read_fd, err);
	if (r == 0)
		r = sandbox_capabilities(sandbox_jobs[job].caps, err);
	if (r == 0)
		r = sandbox_seccomp(job, err);
	return r < 0 ? error_wrap(err, r, "close the sandbox") : 0;
}
