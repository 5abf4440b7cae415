/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PLAN_H
#define NACRE_ISOLATE_PLAN_H

#include <linux/capability.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/ids.h"

/*
 * The plan for the isolation of a process, as plain data: made and checked before anything happens
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
	/* A new one is made by the clone and owns all others that are new. A joined one is entered
	 * first; what is new beside it belongs to it. */
	ISOLATE_NS_USER,
	ISOLATE_NS_TIME,
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
	 * read-only paths (security.md 4.3); and then what the lists say: mounts, devices,
	 * masked_paths, readonly_paths. Needs a new mount namespace; /proc shows the pid namespace
	 * that it is in.
	 */
	ISOLATE_ROOT_CONTAINER,
	/*
	 * A private tmpfs for a keeper: /proc, /dev (null, zero, full, random, urandom, shm as a
	 * mount of its own), an empty /run (mode 0700). Nothing of the spawner's tree stays
	 * reachable.
	 */
	ISOLATE_ROOT_KEEPER,
	/*
	 * root_fd, a detached mount (an overlay, or a copy of a directory's mount), with just what
	 * the lists say: mounts, devices, masked_paths, readonly_paths; and, where the list puts a
	 * new file system on /dev, the links in there (fd, stdin, stdout, stderr, ptmx) unless
	 * their names are taken, and with pts_fd /dev/console. Works in a user namespace.
	 * In a mount namespace that is kept or joined nothing of it shows: the tree belongs to the
	 * processes whose root it is, and goes with the last one. It is made in a namespace that
	 * nobody stays in. That takes privilege over the other one, so no new user namespace, and
	 * nothing in it can be unbindable.
	 */
	ISOLATE_ROOT_TREE,
	/* root_fd, a directory (O_PATH), in a mount namespace that is kept or joined: the root of
	 * another process of a tree like that. */
	ISOLATE_ROOT_OTHER,
};

#define ISOLATE_HOME_SIZE 256
#define ISOLATE_GROUPS_MAX 64
#define ISOLATE_KEEP_FDS_MAX 16
#define ISOLATE_ID_MAPS_MAX 340 /* of the kernel */
#define ISOLATE_SYSCTLS_MAX 256
#define ISOLATE_MOUNTS_MAX 1024
#define ISOLATE_DEVICES_MAX 1024
#define ISOLATE_PATHS_MAX 1024 /* masked ones, and read-only ones */
#define ISOLATE_RLIMITS_MAX 16
#define ISOLATE_LABEL_MAX 1024
#define ISOLATE_MOUNT_OPTIONS_MAX 4095 /* of the kernel: a page */

/* A range of ids of a user namespace. */
struct isolate_id_map {
	uint32_t inside, outside, count;
};

/* The offset of a clock of a new time namespace from the host's; nsec counts upward, also where sec
 * is negative. */
struct isolate_time_offset {
	int64_t sec;
	uint32_t nsec;
	bool set;
};

/*
 * name: with slashes, or with dots (a slash then stands for a dot in a name), of a namespace that
 * the plan makes or joins: kernel.{msgmax,msgmnb,msgmni,sem,shmall,shmmax,shmmni,shm_rmid_forced}
 * and fs.mqueue.* of ipc, net.* of net, kernel.{hostname,domainname} of uts, user.* of user.
 */
struct isolate_sysctl {
	const char *name;
	const char *value;
};

/*
 * A mount in the tree. The target is resolved in the root: links of the image are followed inside
 * it, what is missing is made (a file where the source is one). It may not be the root itself, nor
 * on a procfs, except for the files that the field puts there (/proc/cpuinfo, meminfo, ...), and on
 * /proc itself goes only a procfs; in a container, nor in /dev and /sys, except for /dev/shm and a
 * name right in /dev that is not isolate_dev_has_name(). That is judged by the file that the target
 * leads to: ERROR_INVALID. The mount must be found at its
 * target afterwards.
 */
struct isolate_mount {
	const char *target; /* absolute, not "/" */
	/*
	 * Of a bind: a directory or file that the spawner has opened (O_PATH is enough) in its own
	 * mount namespace; or, with `detached`, a detached mount, which is used up. -1: a new file
	 * system.
	 */
	int source_fd;
	bool detached;
	bool recursive; /* with what is mounted below the source */
	bool is_system; /* counts as a system mount, wherever it goes (of a cgroup) */

	/* Of a new file system. "cgroup" means "cgroup2", and needs a cgroup namespace. */
	const char *fs;
	const char *source;  /* NULL: "none" */
	const char *options; /* of the file system, "size=64k,mode=755"; NULL: none */
	bool copy_up;        /* a tmpfs begins with what the target had; at most 64 levels */

	/* MOUNT_ATTR_*, of this mount; and of it with all below it. MOUNT_ATTR__ATIME in _clear
	 * alone means MOUNT_ATTR_RELATIME, which is 0. */
	uint64_t attr_set, attr_clear;
	uint64_t attr_set_below, attr_clear_below;
	/* MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE, and MS_REC; 0: MS_PRIVATE | MS_REC. */
	unsigned long propagation;
	int idmap_fd; /* of a bind: a user namespace (isolate/mount/idmap.h); -1: none */
	bool idmap_below;
};

/* Whether it is a system mount: one of proc, sysfs, cgroup, devpts or mqueue, or anything that goes
 * on /proc, /sys, /dev or /sys/fs/cgroup. Its target must be a directory of the root itself (or of
 * another system mount or tmpfs of the list): no link leads there, and it lies in no volume; else
 * ERROR_PRECONDITION. fs: NULL for a bind. */
bool isolate_mount_is_system(const char *fs, const char *target);

/* A mount with neutral values: .target is missing. */
#define ISOLATE_MOUNT_INIT                                                                         \
	{                                                                                          \
		.source_fd = -1, .idmap_fd = -1                                                    \
	}

/*
 * A device, FIFO or ('u': unbuffered) character device to be made at an absolute path of the root;
 * one that is there already stays if it is the same. fd: the host's node, opened by the spawner
 * (O_PATH): it is bound there, as needed in a user namespace, where nothing can be made; mode, uid
 * and gid are then the host's.
 */
struct isolate_device {
	const char *path;
	char type; /* 'c', 'u', 'b', 'p' */
	unsigned major, minor;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	int fd; /* -1: mknod */
};

/* A bit for each capability number. */
struct isolate_cap_sets {
	uint64_t bounding, effective, permitted, inheritable, ambient;
};

struct isolate_rlimit {
	int resource;        /* RLIMIT_* */
	uint64_t soft, hard; /* RLIM64_INFINITY: none */
};

struct isolate_sched {
	unsigned policy; /* SCHED_* */
	int nice;
	unsigned priority;
	uint64_t flags;                     /* SCHED_FLAG_* */
	uint64_t runtime, deadline, period; /* in nanoseconds, of SCHED_DEADLINE */
};

struct isolate_mempolicy {
	int mode;       /* MPOL_* */
	unsigned flags; /* MPOL_F_* */
	uint64_t nodes[16];
};

struct isolate_cpus {
	uint64_t bits[16];
};

/* Where a plan's `at` is called. */
enum isolate_point {
	/* In all namespaces, with ids mapped; the root is still the spawner's. */
	ISOLATE_POINT_NAMESPACES,
	/* All is mounted below the new root, which is mounted on "/" or on the plan's root_place;
	 * not yet pivoted. Only with ISOLATE_ROOT_TREE. */
	ISOLATE_POINT_MOUNTED,
	/* All but no_new_privs, the filter (that of a plan without no_new_privs is set) and the
	 * program is done; credentials and descriptors are the program's. All signals are blocked.
	 */
	ISOLATE_POINT_READY,
};

#define ISOLATE_PERSONALITY_KEEP 0xffffffffUL
/* The one byte that comes with the listener of seccomp_notify over at_fd. */
#define ISOLATE_AT_SECCOMP 'S'

/* CAP_CHOWN DAC_OVERRIDE FSETID FOWNER SETGID SETUID SETPCAP NET_BIND_SERVICE KILL: the nine of a
 * container (security.md 4.1). A bit for each capability number. */
extern const uint64_t isolate_caps_default;
#define ISOLATE_CAPS_ALL UINT64_MAX
/* With this bit a set is of what the spawner has: "all", or all but some. */
#define ISOLATE_CAPS_OF_SPAWNER (UINT64_C(1) << 63)

/* The argument of a plan's `at`. */
struct isolate_at {
	enum isolate_point point;
	int fd;     /* the plan's at_fd, wherever it is by now */
	void *data; /* the plan's at_data */
};

struct isolate_plan {
	enum isolate_ns_mode ns[ISOLATE_NS_COUNT];
	int ns_fd[ISOLATE_NS_COUNT]; /* for ISOLATE_JOIN; -1 otherwise. Any nsfs descriptor */
	/* Those that are joined were made for this process, and nobody is in them yet. */
	bool joins_new;
	bool bring_up_loopback; /* in a new net namespace */
	/* The mount namespace that is joined is copied: the copy follows what is mounted in it
	 * later, and has a procfs of the process's own pid namespace on /proc. With
	 * ISOLATE_ROOT_KEEP. */
	bool new_proc;
	const char *hostname;   /* in a new uts namespace; NULL: as it is */
	const char *domainname; /* the same */

	/*
	 * Of a new user namespace: written by the spawner right after the clone, read back, before
	 * the child does anything. Without deny_setgroups the spawner needs CAP_SETGID. All ids of
	 * the plan are those inside. Of a joined one: what it has, so that the program's user gets
	 * the pipes of its streams; deny_setgroups where it has that. Without them the spawner asks
	 * the kernel, by a process that enters the namespace.
	 */
	const struct isolate_id_map *uid_map, *gid_map;
	size_t n_uid_map, n_gid_map;
	bool deny_setgroups;
	struct isolate_time_offset monotonic, boottime; /* of a new time namespace */
	/* Written in the new namespaces through a private /proc, and read back. */
	const struct isolate_sysctl *sysctls;
	size_t n_sysctls;

	int cgroup_fd; /* directory of the cgroup to be born in (CLONE_INTO_CGROUP); -1: the
			  spawner's */

	enum isolate_root root;
	int root_fd;     /* detached mount for ISOLATE_ROOT_CONTAINER and _TREE, which is used
			  * up; directory for _OTHER */
	bool root_later; /* of a container, without root_fd, mounts and devices: the child
			  * makes all but the root and waits for isolate_child_give_root() */
	/* With root_later: the program, its user and its streams come with the root
	 * (isolate/plan/rest.h, isolate_child_give_rest()). argv and env are NULL then, and what
	 * else comes does not count; a stream that is not given is /dev/null. */
	bool rest_later;
	bool root_read_only; /* the mount of the root alone: /dev, /dev/shm, /proc stay as they are
			      */
	/* A detached mount of devpts for /dev/pts of a container (isolate/spawn/pty.h), and in a
	 * tree the mount of the first devpts of the list; -1: a new one. */
	int pts_fd;
	int shm_fd; /* a directory to bind on /dev/shm (shared by a cell); -1: a tmpfs of its own */
	/* The new mount namespace of a container: of a prepared set (isolate/spawn/prepared.h),
	 * with nothing in it but /dev and /sys, which become the container's, used up; -1: a copy
	 * of the spawner's, from which its tree is taken. Where isolate_plan_has_dev(), /dev is
	 * made anew; only then there is a shm_fd. */
	int prepared_ns_fd;

	/*
	 * Of a container: a user namespace with these ids, which its process enters once its root
	 * is complete, with a copy of its mount namespace and a cgroup namespace that belong to it.
	 * Objects that it makes before are made with the ids of root in there, but with the
	 * spawner's privilege: so it has all devices and file systems, and what is mounted cannot
	 * be taken apart from inside. uid, gid and groups are ids inside. -1: none.
	 */
	int user_fd;
	struct isolate_ids ids;
	/* Mounts go on in this order, devices and paths behind them; of ISOLATE_ROOT_CONTAINER and
	 * _TREE. */
	const struct isolate_mount *mounts;
	size_t n_mounts;
	const struct isolate_device *devices;
	size_t n_devices;
	char *const *masked_paths, *const *readonly_paths; /* NULL: none */
	/* Of a container: the two lists stand in the place of what it would have; and /sys can be
	 * written to, with the groups in it. Neither goes with a prepared set. */
	bool own_masks, writable_sys;
	/* Of a container: its own groups can be written to, and nothing else of /sys; refused where
	 * that would lift the limits of its group (places.h). Does not go with a prepared set. */
	bool writable_groups;
	/* As in struct isolate_mount, for the mount of root_fd. */
	unsigned long root_propagation;
	/* Of a tree: the directory of root_fd by its name in the mount namespace that is copied.
	 * The root lies there until `at` has returned from ISOLATE_POINT_MOUNTED, so that who acts
	 * at that point can mount below it by name. NULL: it lies on "/". */
	const char *root_place;
	bool no_pivot; /* chroot() instead: weaker, for a host whose root is a ramfs */

	/* The program. exec_fd >= 0 is executed itself (execveat, AT_EMPTY_PATH); else argv[0] is
	 * looked up in PATH of env as execvp() does, within the new root, with the new credentials.
	 */
	int exec_fd;
	char *const *argv;
	char *const *env;
	/* NULL, or room of ISOLATE_HOME_SIZE for the home of uid by /etc/passwd of the root that
	 * the program will have (isolate_user_home()): usually within a string of env. */
	char *home;
	const char *cwd; /* "" or NULL: "/"; in a container it is made (owned by uid) where it is
			    missing */

	uid_t uid;
	gid_t gid;
	gid_t groups[ISOLATE_GROUPS_MAX]; /* supplementary; set in this order, without doubles */
	size_t n_groups;
	bool groups_exact; /* gid is not added to them; else it comes first (security.md A34) */
	uint64_t caps; /* bounding, permitted, effective; for uid != 0 only the bounding set is kept
			*/
	const struct isolate_cap_sets *cap_sets; /* instead of caps, for any user; NULL: caps */
	/* Ids and capabilities stay the spawner's; uid, gid, groups and caps do not count. */
	bool keep_credentials;
	bool no_new_privs;
	const struct sock_fprog
		*seccomp;       /* NULL: none; isolate_seccomp_default() is the container's */
	unsigned seccomp_flags; /* SECCOMP_FILTER_FLAG_* */
	bool seccomp_notify;    /* the filter's listener goes home over at_fd with SCM_RIGHTS */
	/* Labels of the program; ERROR_PRECONDITION where the kernel has no such module. */
	const char *apparmor, *selinux;
	const char *selinux_mount; /* of new file systems that can have one */
	int oom_score_adj;         /* clamped where the kernel refuses to lower it (see notes) */
	bool keep_oom_score;
	bool default_rlimits; /* NOFILE 1024/1048576, CORE 0, the rest as the kernel's init has it
			       */
	/* Over the default ones; one that cannot be had is an error. */
	const struct isolate_rlimit *rlimits;
	size_t n_rlimits;
	int umask; /* -1: 0022 */
	const struct isolate_sched *sched;
	int io_priority; /* class << 13 | level; -1: as it is */
	const struct isolate_mempolicy *mempolicy;
	const struct isolate_cpus *cpus;
	unsigned long personality; /* or ISOLATE_PERSONALITY_KEEP */
	/* Where it is noted that the OOM score is higher than the plan's, or that processors or
	 * nodes of the plan are not here (isolate/plan/notes.h); NULL: nowhere. */
	struct isolate_notes *notes;
	int death_signal; /* PR_SET_PDEATHSIG, 0: none */
	bool new_session;
	bool keep_keyring; /* the session keyring stays the spawner's; else it is a new one */
	/* stdio[0] is a terminal and becomes the controlling one of the new session; where it comes
	 * from pts_fd, number 0 in there, it is /dev/console too. */
	bool terminal;

	int stdio[3]; /* descriptors for 0, 1, 2; -1: /dev/null */
	/*
	 * Of a container's program: uid becomes the owner of the pipes, of the FIFOs and, with
	 * `terminal`, of the terminal of stdio, so that it can open /dev/stdout again. What else a
	 * caller may pass (a file, a device, another terminal) keeps its owner. A stream on
	 * /dev/null is opened on the container's own /dev/null, where that is one.
	 */
	bool give_stdio;
	/* Further descriptors that the program gets, from 3 on, in this order. All others are
	 * closed. */
	int keep_fds[ISOLATE_KEEP_FDS_MAX];
	size_t n_keep_fds;

	/*
	 * Called in the child, on its way. May allocate and block if the spawner is
	 * single-threaded, and may call isolate_spawn() for a program in the same namespaces (at
	 * ISOLATE_POINT_READY: with keep_credentials and keep_oom_score). An error ends the child
	 * as that of a step. at_fd is the child's to use in there, at this number in
	 * struct isolate_at, and is closed by the exec. NULL and -1: none.
	 */
	int (*at)(const struct isolate_at *at, struct error *err);
	void *at_data;
	int at_fd;
};

/* All namespaces kept, no descriptor, full privilege: what a caller starts from. */
void isolate_plan_init(struct isolate_plan *plan);

/* Whether /dev is not as that of any other container: a terminal is of a devpts of its own. */
static inline bool isolate_plan_has_dev(const struct isolate_plan *p)
{
	return p->pts_fd >= 0;
}

/* Whether the plan makes sense (a root that needs a namespace, a join without a descriptor, ...).
 * Pure. ERROR_INVALID with the name of the member. */
int isolate_plan_check(const struct isolate_plan *plan, struct error *err);

/* Whether these are sysctls of namespaces that are not kept, with values of one line. Pure.
 * ERROR_INVALID with "sysctls: NAME". */
int isolate_sysctls_check(const struct isolate_sysctl *sysctls, size_t n,
			  const enum isolate_ns_mode ns[ISOLATE_NS_COUNT], struct error *err);

/* Whether a container has this name in its /dev: a device, link or directory of the house. Pure. */
bool isolate_dev_has_name(const char *name);

/* The container's seccomp filter for these capabilities (security.md 4.2), compiled into the
 * program; lives for ever. Unknown system calls get ENOSYS, forbidden ones EPERM; other ABIs than
 * the native one are refused. A process meets at most 32 sets of capabilities that unlock calls;
 * past that it gets the filter that unlocks none. Not for several threads at once. */
const struct sock_fprog *isolate_seccomp_default(uint64_t caps);

#endif
