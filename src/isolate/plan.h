/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PLAN_H
#define NACRE_ISOLATE_PLAN_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * What a process shall be walled off with, as plain data: made and checked before anything happens
 * on the machine (isolate_plan_check() is pure), then carried out by isolate_spawn(). Everything
 * that a plan points to belongs to the caller and must live until isolate_spawn() has returned.
 */

enum isolate_ns {
	ISOLATE_NS_PID,
	ISOLATE_NS_MOUNT,
	ISOLATE_NS_NET,
	ISOLATE_NS_IPC,
	ISOLATE_NS_UTS,
	ISOLATE_NS_CGROUP,
	ISOLATE_NS_COUNT
};

enum isolate_ns_mode {
	ISOLATE_KEEP, /* that of the spawning process */
	ISOLATE_NEW,
	ISOLATE_JOIN, /* the one of ns_fd[] */
};

/* Which file system tree the process sees. */
enum isolate_root {
	/* That of the namespace which it keeps or joins: host processes, execs. */
	ISOLATE_ROOT_KEEP,
	/*
	 * root_fd, a detached mount, with what a container gets: /proc, /dev (tmpfs with the
	 * minimal devices, pts, shm, mqueue), /sys read-only, /sys/fs/cgroup read-only, masked and
	 * read-only paths (security.md 4.3). Needs new mount and pid namespaces.
	 */
	ISOLATE_ROOT_CONTAINER,
	/*
	 * A private tmpfs for a keeper: /proc, /dev (null, zero, full, random, urandom, shm as a
	 * mount of its own), an empty /run (mode 0700). Nothing of the spawner's tree stays
	 * reachable.
	 */
	ISOLATE_ROOT_KEEPER,
};

#define ISOLATE_GROUPS_MAX 64
#define ISOLATE_KEEP_FDS_MAX 8

/* CAP_CHOWN DAC_OVERRIDE FSETID FOWNER SETGID SETUID SETPCAP NET_BIND_SERVICE KILL: the nine of a
 * container (security.md 4.1). A bit for each capability number. */
extern const uint64_t isolate_caps_default;
#define ISOLATE_CAPS_ALL UINT64_MAX

struct isolate_plan {
	enum isolate_ns_mode ns[ISOLATE_NS_COUNT];
	int ns_fd[ISOLATE_NS_COUNT]; /* for ISOLATE_JOIN; -1 otherwise. Any nsfs descriptor */
	bool bring_up_loopback;      /* in a new net namespace */
	const char *hostname;        /* in a new uts namespace; NULL: as it is */

	int cgroup_fd; /* directory of the cgroup to be born in (CLONE_INTO_CGROUP); -1: the
			  spawner's */

	enum isolate_root root;
	int root_fd;         /* detached mount for ISOLATE_ROOT_CONTAINER */
	bool root_read_only; /* the mount of the root alone: /dev, /dev/shm, /proc stay as they are
			      */
	/* A detached mount of devpts for /dev/pts of a container (isolate/pty.h); -1: a new one. */
	int pts_fd;
	int shm_fd; /* a directory to bind on /dev/shm (shared by a cell); -1: a tmpfs of its own */

	/* The program. exec_fd >= 0 is executed itself (execveat, AT_EMPTY_PATH); else argv[0] is
	 * looked up in PATH of env as execvp() does, within the new root, with the new credentials.
	 */
	int exec_fd;
	char *const *argv;
	char *const *env;
	const char *cwd; /* "" or NULL: "/"; in a container it is made (owned by uid) where it is
			    missing */

	uid_t uid;
	gid_t gid;
	gid_t groups[ISOLATE_GROUPS_MAX]; /* all supplementary groups; gid is added where it is
					     missing */
	size_t n_groups;
	uint64_t caps; /* bounding, permitted, effective; for uid != 0 only the bounding set is kept
			*/
	bool no_new_privs;
	const struct sock_fprog
		*seccomp;     /* NULL: none; isolate_seccomp_default() is the container's */
	int oom_score_adj;    /* clamped where the kernel refuses to lower it */
	bool default_rlimits; /* NOFILE 1024/1048576, CORE 0, the rest as the kernel's init has it
			       */
	int death_signal;     /* PR_SET_PDEATHSIG, 0: none */
	bool new_session;
	/* stdio[0] is a terminal and becomes the controlling one of the new session; where it comes
	 * from pts_fd, number 0 in there, it is /dev/console too. */
	bool terminal;

	int stdio[3]; /* descriptors for 0, 1, 2; -1: /dev/null */
	/* Further descriptors that the program gets, from 3 on, in this order. All others are
	 * closed. */
	int keep_fds[ISOLATE_KEEP_FDS_MAX];
	size_t n_keep_fds;
};

/* All namespaces kept, no descriptor, full privilege: what a caller starts from. */
void isolate_plan_init(struct isolate_plan *plan);

/* Whether the plan makes sense (a root that needs a namespace, a join without a descriptor, ...).
 * Pure. ERROR_INVALID with the name of the member. */
int isolate_plan_check(const struct isolate_plan *plan, struct error *err);

/* The container's seccomp filter for these capabilities (security.md 4.2), compiled into the
 * program; lives for ever. Unknown system calls get ENOSYS, forbidden ones EPERM; other ABIs than
 * the native one are refused. A process meets at most 32 sets of capabilities that unlock calls;
 * past that it gets the filter that unlocks none. Not for several threads at once. */
const struct sock_fprog *isolate_seccomp_default(uint64_t caps);

#endif
