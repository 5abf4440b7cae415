/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"

#define SANDBOX_CPU_SECONDS 600
#define SANDBOX_FILES 64
#define SANDBOX_UNPACK_MEMORY (48 << 20)

/* Of a job with a network: two files for each of its downloads, and the sockets. */
#define SANDBOX_NETWORK_CPU_SECONDS 7200
#define SANDBOX_NETWORK_FILES 2048
#define SANDBOX_NETWORK_USER 65534
#define SANDBOX_NAMES_MAX (256 << 10)

/* LANDLOCK_ACCESS_FS_TRUNCATE of Linux 6.2, which the headers of Debian 12 do not know. */
#define SANDBOX_LANDLOCK_TRUNCATE (UINT64_C(1) << 14)

#define CAP(name) (UINT64_C(1) << (name))

static const struct {
	rlim_t memory; /* bytes of its own, the stacks of threads with them */
	uint64_t caps;
	uint64_t landlock; /* what is allowed below the directory */
} sandbox_jobs[] = {
	/* A directory as the source may hold files of other owners. */
	[SANDBOX_READ] = { RLIM_INFINITY, CAP(CAP_DAC_READ_SEARCH),
			   LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				   LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |
				   SANDBOX_LANDLOCK_TRUNCATE },
	/* A whiteout, the character device 0:0, needs no CAP_MKNOD (since 5.8); other devices do,
	 * so this process cannot make one. */
	[SANDBOX_UNPACK] = { SANDBOX_UNPACK_MEMORY,
			     CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) |
				     CAP(CAP_FSETID) | CAP(CAP_SETFCAP),
			     LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				     LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |
				     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE |
				     LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REFER |
				     SANDBOX_LANDLOCK_TRUNCATE },
	[SANDBOX_EXPORT] = { RLIM_INFINITY, CAP(CAP_DAC_READ_SEARCH), 0 },
	/* Blobs are written to descriptors that the core has opened. */
	[SANDBOX_NETWORK] = { RLIM_INFINITY, 0,
			      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				      LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |
				      SANDBOX_LANDLOCK_TRUNCATE },
};

/* What looking up names needs of the machine. */
static const char *const sandbox_files[] = { "resolv.conf", "hosts", "nsswitch.conf" };

struct sandbox_names {
	struct buf files[ARRAY_SIZE(sandbox_files)];
};

static void sandbox_names_done(struct sandbox_names *n)
{
	for (size_t i = 0; i < ARRAY_SIZE(n->files); i++)
		buf_done(&n->files[i]);
}

/* A file that is not there is an empty one. */
static int sandbox_names_read(struct sandbox_names *n, struct error *err)
{
	_cleanup_fd_ int etc_fd =
		sysio_openat(AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (etc_fd < 0)
		return error_set(err, -errno, "open /etc");
	for (size_t i = 0; i < ARRAY_SIZE(n->files); i++) {
		int r = fd_read_file(etc_fd, sandbox_files[i], SANDBOX_NAMES_MAX, &n->files[i]);

		if (r < 0 && r != -ENOENT)
			return error_set(err, r, "read /etc/%s", sandbox_files[i]);
	}
	return 0;
}

static int sandbox_names_write(const struct sandbox_names *n, struct error *err)
{
	_cleanup_fd_ int etc_fd = -1;

	if (sysio_mkdirat(AT_FDCWD, "etc", 0755) < 0)
		return error_set(err, -errno, "make /etc");
	etc_fd = sysio_openat(AT_FDCWD, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	for (size_t i = 0; i < ARRAY_SIZE(n->files); i++) {
		_cleanup_fd_ int fd =
			sysio_openat(etc_fd, sandbox_files[i],
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
		int r = fd < 0 ? -errno : 0;

		if (r == 0 && n->files[i].len)
			r = fd_write_full(fd, buf_data(&n->files[i]), n->files[i].len);
		if (r < 0)
			return error_set(err, r, "write /etc/%s", sandbox_files[i]);
	}
	return 0;
}

/*
 * Should: leave nothing to be named by a path. Must not: touch a mount outside this namespace.
 */
static int sandbox_empty_root(const struct sandbox_names *names, struct error *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return error_set(err, -errno, "make the mounts private");
	/* /proc is the one directory that every machine has and nobody needs here. */
	if (mount("none", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  names ? "size=1m,nr_inodes=8,mode=555" : "size=4k,nr_inodes=2,mode=500") < 0)
		return error_set(err, -errno, "mount an empty root");
	if (chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return error_set(err, -errno, "change to the empty root");
	if (umount2(".", MNT_DETACH) < 0)
		return error_set(err, -errno, "leave the old root");
	if (chdir("/") < 0)
		return error_set(err, -errno, "change to the empty root");
	if (names && sandbox_names_write(names, err) < 0)
		return err ? err->code : -EIO;
	if (mount(NULL, "/", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return error_set(err, -errno, "make the empty root read-only");
	return 0;
}

static int sandbox_limits(enum sandbox_job job, uint64_t max_file, struct error *err)
{
	bool network = job == SANDBOX_NETWORK;
	const struct {
		__rlimit_resource_t what;
		rlim_t value;
	} limits[] = {
		{ RLIMIT_CORE, 0 },
		{ RLIMIT_CPU, network ? SANDBOX_NETWORK_CPU_SECONDS : SANDBOX_CPU_SECONDS },
		{ RLIMIT_NOFILE, network ? SANDBOX_NETWORK_FILES : SANDBOX_FILES },
		{ RLIMIT_FSIZE, max_file },
		{ RLIMIT_AS, NACRE_FETCH_ADDRESS_SPACE },
		{ RLIMIT_DATA, NACRE_FETCH_ADDRESS_SPACE == RLIM_INFINITY
				       ? RLIM_INFINITY
				       : sandbox_jobs[job].memory },
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
	r = write_fd < 0
		    ? 0
		    : sandbox_landlock_rule(ruleset_fd, write_fd,
					    sandbox_jobs[job].landlock & attr.handled_access_fs,
					    err);
	if (r < 0)
		return r;
	if (fstat(read_fd, &st) < 0)
		return error_set(err, -errno, "look at the source");
	/* Of a job with a network: its root, which has the three files. */
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
static int sandbox_capabilities(enum sandbox_job job, struct error *err)
{
	uint64_t caps = sandbox_jobs[job].caps;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)caps, .permitted = (uint32_t)caps },
		{ .effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32) },
	};

	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return error_set(err, -errno, "drop capability %d", cap);
	if (job == SANDBOX_NETWORK &&
	    (setgroups(0, NULL) < 0 ||
	     setresgid(SANDBOX_NETWORK_USER, SANDBOX_NETWORK_USER, SANDBOX_NETWORK_USER) < 0 ||
	     setresuid(SANDBOX_NETWORK_USER, SANDBOX_NETWORK_USER, SANDBOX_NETWORK_USER) < 0))
		return error_set(err, -errno, "become nobody");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return error_set(err, -errno, "clear the ambient capabilities");
	if (syscall(SYS_capset, &header, data) < 0)
		return error_set(err, -errno, "set the capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, -errno, "set no_new_privs");
	return 0;
}

/* What all jobs need: memory, descriptors that are open, files below them, the socket, the end. */
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
	SCMP_SYS(mkdirat),         SCMP_SYS(mknodat),   SCMP_SYS(symlinkat),
	SCMP_SYS(linkat),          SCMP_SYS(fchown),    SCMP_SYS(fchownat),
	SCMP_SYS(fchmod),          SCMP_SYS(fchmodat),  SCMP_SYS(utimensat),
	SCMP_SYS(sync_file_range), SCMP_SYS(fsetxattr), SCMP_SYS(getdents64),
	SCMP_SYS(fremovexattr),    SCMP_SYS(fgetxattr),
};

/* Of jobs that have threads; the last one is what sanitizers ask in each. */
static const int sandbox_calls_threads[] = {
	SCMP_SYS(eventfd2),        SCMP_SYS(poll),
	SCMP_SYS(ppoll),           SCMP_SYS(rseq),
	SCMP_SYS(set_robust_list), SCMP_SYS(sched_getaffinity),
};

/* libcurl, which looks names up on threads, and libc's resolver. */
static const int sandbox_calls_network[] = {
	SCMP_SYS(connect),         SCMP_SYS(bind),
	SCMP_SYS(getsockname),     SCMP_SYS(getpeername),
	SCMP_SYS(setsockopt),      SCMP_SYS(getsockopt),
	SCMP_SYS(shutdown),        SCMP_SYS(sendmmsg),
	SCMP_SYS(pipe2),           SCMP_SYS(uname),
	SCMP_SYS(getuid),          SCMP_SYS(geteuid),
	SCMP_SYS(getgid),          SCMP_SYS(getegid),
	SCMP_SYS(sysinfo),         SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
};

/* Sockets of the internet, and that which asks for the own addresses. */
static int sandbox_allow_network(scmp_filter_ctx filter)
{
	static const int domains[] = { AF_INET, AF_INET6, AF_NETLINK };
	static const unsigned long requests[] = { FIONREAD, FIONBIO };
	int r;

	r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
			     SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(domains); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)domains[i]));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(requests); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_EQ, requests[i]));
	return r;
}

/* What pthread_create() asks clone() for: a thread, and nothing that is new. */
#define SANDBOX_CLONE_THREAD                                                                       \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

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

/* The flags of clone3() lie in memory, where no filter sees them: the library takes clone() then.
 */
static int sandbox_allow_threads(scmp_filter_ctx filter)
{
	int r;

	r = sandbox_allow(filter, sandbox_calls_threads, ARRAY_SIZE(sandbox_calls_threads));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_EQ, SANDBOX_CLONE_THREAD));
	return r;
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
	if (r == 0 && job == SANDBOX_NETWORK)
		r = sandbox_allow(filter, sandbox_calls_network, ARRAY_SIZE(sandbox_calls_network));
	if (r == 0 && job == SANDBOX_NETWORK)
		r = sandbox_allow_network(filter);
	if (r == 0 && job != SANDBOX_READ && job != SANDBOX_EXPORT)
		r = sandbox_allow_threads(filter);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? error_set(err, r, "load a seccomp filter") : 0;
}

static int sandbox_enter_root(enum sandbox_job job, int write_fd, struct error *err)
{
	_cleanup_(sandbox_names_done) struct sandbox_names names = { .files = { BUF_INIT } };
	int r;

	if (job != SANDBOX_NETWORK)
		return sandbox_empty_root(NULL, err);
	if (write_fd >= 0 && fchown(write_fd, SANDBOX_NETWORK_USER, SANDBOX_NETWORK_USER) < 0)
		return error_set(err, -errno, "hand the directory over");
	r = sandbox_names_read(&names, err);
	return r == 0 ? sandbox_empty_root(&names, err) : r;
}

/* Behind the root. */
static int sandbox_close(enum sandbox_job job, int write_fd, int read_fd, uint64_t max_file,
			 struct error *err)
{
	int r = sandbox_limits(job, max_file, err);

	/* Both of the next two need no_new_privs or CAP_SYS_ADMIN: Landlock has the one still. */
	if (r == 0)
		r = sandbox_landlock(job, write_fd, read_fd, err);
	if (r == 0)
		r = sandbox_capabilities(job, err);
	return r == 0 ? sandbox_seccomp(job, err) : r;
}

int sandbox_enter(enum sandbox_job job, int write_fd, int read_fd, uint64_t max_file,
		  struct error *err)
{
	_cleanup_fd_ int root_fd = -1;
	int r;

	r = sandbox_enter_root(job, write_fd, err);
	if (r == 0 && job == SANDBOX_NETWORK) {
		root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		read_fd = root_fd;
	}
	if (r == 0)
		r = sandbox_close(job, write_fd, read_fd, max_file, err);
	return r < 0 ? error_wrap(err, r, "close the sandbox") : 0;
}

/*
 * Should: leave nothing to be named by a path, and no descriptor of a namespace. Must not: be in
 * the core's mount namespace when it returns 0.
 */
static int sandbox_go(int ns_fd, struct error *err)
{
	int r = setns(ns_fd, CLONE_NEWNS) < 0 ? -errno : 0;

	(void)fd_close(ns_fd);
	return r < 0 ? error_set(err, r, "go to the empty root") : 0;
}

int sandbox_enter_apart(enum sandbox_job job, int ns_fd, int write_fd, int read_fd,
			uint64_t max_file, struct error *err)
{
	int r = sandbox_go(ns_fd, err);

	if (r == 0)
		r = sandbox_close(job, write_fd, read_fd, max_file, err);
	return r < 0 ? error_wrap(err, r, "close the sandbox") : 0;
}
