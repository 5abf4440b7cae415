/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/share_jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "vm/driver/jail.h"

/*
 * virtiofsd has two sandboxes of its own. In "namespace" it is two processes, of which the first
 * stays in the spawner's tree and keeps all file systems of the host busy, so it is "chroot" here,
 * in a tree that is made for it: a process that was taken over finds /usr and nothing else outside
 * of the volumes, and cannot execute anything (its own filter kills it).
 *
 *   cache=auto    guests map files, which cache=none refuses; their pages are asked for anew when
 *                 a file is opened, and when its time of change is another one.
 *   timeout       how long names and attributes may be old in a guest (share.h).
 *   xattr         as in a container: user.*, and what else is there is seen.
 *   modcaps       of what it would keep: nodes of devices, and file capabilities.
 *   announce_submounts  each volume is a file system of its own in the guest. Without that, files
 *                 of two volumes with the same inode number would be the same file to cp, tar,
 * diff. (no flock, no posix_lock: locks hold in the guest alone. The remote ones would let a guest
 *   stop the thread that serves it, and know no waiting lock of fcntl().)
 */

#define CAP(c) ((uint64_t)1 << (c))
#define JAIL_CAPS_KEPT                                                                             \
	(CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_FOWNER) | CAP(CAP_FSETID) |              \
	 CAP(CAP_SETGID) | CAP(CAP_SETUID))
/* For its own chroot(), and to drop the rest of the bounding set. */
#define JAIL_CAPS_FIRST (CAP(CAP_SYS_CHROOT) | CAP(CAP_SETPCAP))
#define JAIL_NO_SUID_DEV_EXEC (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
/* The socket is the first descriptor behind the three of each program. */
#define JAIL_SOCKET_ARG "--fd=3"

static char *const jail_options[] = {
	(char[]){ "-f" },
	(char[]){ JAIL_SOCKET_ARG },
	(char[]){ "--rlimit-nofile=0" },
	(char[]){ "--thread-pool-size=" SHARE_THREADS },
	(char[]){ "-o" },
	(char[]){ "source=/" SHARE_PLACE ",sandbox=chroot,log_level=warn" },
	(char[]){ "-o" },
	(char[]){ "cache=auto,timeout=" SHARE_TIMEOUT ",xattr,announce_submounts" },
	(char[]){ "-o" },
	(char[]){ "modcaps=-mknod:-setfcap" },
};

/* Of the host, at the same name; what is not there is left out. */
static const char *const jail_libraries[] = {
	"/etc/ld.so.cache",          "/lib64",     "/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib64",
};

/* And the program, /proc, SHARE_PLACE. */
#define JAIL_MOUNTS_MAX (ARRAY_SIZE(jail_libraries) + 3)

struct jail_parts {
	int root_fd, share_fd; /* detached mounts */
	int fds[JAIL_MOUNTS_MAX];
	struct isolate_mount mounts[JAIL_MOUNTS_MAX];
	size_t n;
};

static void jail_done(struct jail_parts *j)
{
	j->root_fd = fd_close(j->root_fd);
	j->share_fd = fd_close(j->share_fd);
	for (size_t i = 0; i < j->n; i++)
		j->fds[i] = fd_close(j->fds[i]);
}

static int jail_tmpfs(unsigned n_inodes, unsigned attrs, struct error *err)
{
	_cleanup_fd_ int fs = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	char inodes[16];
	int fd;

	(void)str_printf(inodes, sizeof(inodes), "%u", n_inodes);
	if (fs < 0 || sysio_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    sysio_fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
	    sysio_fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
	    sysio_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make a tmpfs");
	fd = sysio_fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? error_set(err, -errno, "mount a tmpfs") : fd;
}

/* fd: the source of a bind, kept here; -1 for none. */
static struct isolate_mount *jail_mount(struct jail_parts *j, const char *target, int fd)
{
	struct isolate_mount *m = &j->mounts[j->n];

	*m = (struct isolate_mount)ISOLATE_MOUNT_INIT;
	m->target = target;
	m->source_fd = fd;
	j->fds[j->n++] = fd;
	return m;
}

static int jail_host(struct jail_parts *j, int host_fd, const char *name)
{
	int fd = rootfd_open(host_fd, name, O_PATH, 0);

	if (fd < 0)
		return fd;
	jail_mount(j, name, fd)->attr_set =
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	return 0;
}

static int jail_program(struct jail_parts *j, const char *program, struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err);
	int r;

	if (host_fd < 0)
		return host_fd;
	r = jail_host(j, host_fd, program);
	if (r == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "there is no %.200s, which volumes of a microVM need", program);
	if (r < 0)
		return error_set(err, r, "open %.200s", program);
	for (size_t i = 0; i < ARRAY_SIZE(jail_libraries); i++) {
		r = jail_host(j, host_fd, jail_libraries[i]);
		if (r < 0 && r != -ENOENT)
			return error_set(err, r, "open %s", jail_libraries[i]);
	}
	return 0;
}

static int jail_make(struct jail_parts *j, const char *program, struct error *err)
{
	struct isolate_mount *m;
	int r;

	j->root_fd = jail_tmpfs(64, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (j->root_fd < 0)
		return j->root_fd;
	j->share_fd =
		jail_tmpfs(SHARE_VOLUMES_MAX + 1, JAIL_NO_SUID_DEV_EXEC | MOUNT_ATTR_RDONLY, err);
	if (j->share_fd < 0)
		return j->share_fd;
	r = jail_program(j, program, err);
	if (r < 0)
		return r;
	m = jail_mount(j, "/proc", -1);
	m->fs = "proc";
	m->attr_set = JAIL_NO_SUID_DEV_EXEC;
	m = jail_mount(j, "/" SHARE_PLACE, TAKE_FD(j->share_fd));
	m->detached = true;
	return 0;
}

static void jail_plan(struct isolate_plan *plan, struct jail_parts *j)
{
	/* All ids that there are, but the one that means none. */
	static const struct isolate_id_map same[] = { { 0, 0, UINT32_MAX } };
	static const struct isolate_rlimit limits[] = {
		{ RLIMIT_CORE, 0, 0 },
	};

	isolate_plan_init(plan);
	for (int i = 0; i <= ISOLATE_NS_UTS; i++)
		plan->ns[i] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_USER] = ISOLATE_NEW;
	plan->uid_map = plan->gid_map = same;
	plan->n_uid_map = plan->n_gid_map = ARRAY_SIZE(same);
	plan->root = ISOLATE_ROOT_TREE;
	plan->root_fd = j->root_fd;
	plan->root_read_only = true;
	plan->mounts = j->mounts;
	plan->n_mounts = j->n;
	plan->caps = JAIL_CAPS_KEPT | JAIL_CAPS_FIRST;
	plan->no_new_privs = true;
	plan->new_session = true;
	plan->rlimits = limits;
	plan->n_rlimits = ARRAY_SIZE(limits);
}

/* It holds a descriptor for each file that the guest has in mind. From in there the limit cannot be
 * raised; where it cannot be from here either, there are as many as the daemon may have. */
static void jail_raise_limit(pid_t pid)
{
	static const struct rlimit files = { SHARE_FILES_MAX, SHARE_FILES_MAX };
	struct rlimit now;

	if (prlimit(pid, RLIMIT_NOFILE, &files, NULL) == 0 ||
	    prlimit(pid, RLIMIT_NOFILE, NULL, &now) < 0)
		return;
	now.rlim_cur = now.rlim_max;
	(void)prlimit(pid, RLIMIT_NOFILE, &now, NULL);
}

int share_jail_spawn(const char *program, int cgroup_fd, int socket_fd, int says_fd,
		     struct isolate_child *ret, struct error *err)
{
	_cleanup_(jail_done) struct jail_parts j = { .root_fd = -1, .share_fd = -1 };
	char *argv[ARRAY_SIZE(jail_options) + 2] = { NULL };
	_cleanup_str_ char *path = strdup(program);
	struct isolate_plan plan;
	/* Otherwise libc asks for the number of processors when a thread wants an arena of its own,
	 * and the filter of virtiofsd 7.2 kills it for that (sched_getaffinity). */
	char *env[] = { (char[]){ "MALLOC_ARENA_MAX=2" }, NULL };
	int r;

	if (!path)
		return error_set(err, -ENOMEM, "start virtiofsd");
	r = jail_make(&j, program, err);
	if (r < 0)
		return error_wrap(err, r, "make the jail of virtiofsd");
	argv[0] = path;
	memcpy(argv + 1, jail_options, sizeof(jail_options));
	jail_plan(&plan, &j);
	plan.cgroup_fd = cgroup_fd;
	plan.argv = argv;
	plan.env = env;
	plan.stdio[1] = says_fd;
	plan.stdio[2] = says_fd;
	plan.keep_fds[0] = socket_fd;
	plan.n_keep_fds = 1;
	r = isolate_spawn(&plan, ret, err);
	if (r < 0)
		return error_wrap(err, r, "start %.100s", program);
	jail_raise_limit(ret->pid);
	return 0;
}
