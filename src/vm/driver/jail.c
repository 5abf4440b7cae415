/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/jail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"

#define JAIL_MOUNTS_MAX 8
#define JAIL_KVM_MAJOR 10
#define JAIL_KVM_MINOR 232

/* Where dynamic programs of the usual distributions have their libraries; what is not there is left
 * out. */
static const char *const jail_libraries[] = {
	"/etc/ld.so.cache",          "/lib64",     "/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu", "/usr/lib64",
};

struct jail_tree {
	int root_fd; /* detached */
	int fds[JAIL_MOUNTS_MAX];
	struct isolate_mount mounts[JAIL_MOUNTS_MAX];
	size_t n;
};

static void jail_tree_done(struct jail_tree *t)
{
	(void)fd_close(t->root_fd);
	for (size_t i = 0; i < t->n; i++)
		(void)fd_close(t->fds[i]);
}

int jail_open_host(struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);

	return fd < 0 ? error_set(err, -errno, "open the root directory") : fd;
}

/* An empty file system to mount on: the root, detached. */
static int jail_make_root(bool devices, struct error *err)
{
	static const char *const options[][2] = { { "size", "64k" },
						  { "nr_inodes", "64" },
						  { "mode", "0755" } };
	_cleanup_fd_ int fs_fd = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs_fd < 0)
		return error_set(err, -errno, "make a root for a machine's monitor");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (sysio_fsconfig(fs_fd, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return error_set(err, -errno, "make a root for a machine's monitor");
	if (sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make a root for a machine's monitor");
	fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC,
			   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC |
				   (devices ? 0U : MOUNT_ATTR_NODEV));
	return fd < 0 ? error_set(err, -errno, "make a root for a machine's monitor") : fd;
}

/* What stands at the same name on the host, to be seen and executed, not to be changed. */
static int jail_add_host(struct jail_tree *t, int host_fd, const char *name)
{
	int fd = rootfd_open(host_fd, name, O_PATH, 0);

	if (fd < 0)
		return fd;
	t->fds[t->n] = fd;
	t->mounts[t->n] = (struct isolate_mount)ISOLATE_MOUNT_INIT;
	t->mounts[t->n].target = name;
	t->mounts[t->n].source_fd = fd;
	t->mounts[t->n].attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	t->n++;
	return 0;
}

static void jail_add_proc(struct jail_tree *t)
{
	t->fds[t->n] = -1;
	t->mounts[t->n] = (struct isolate_mount)ISOLATE_MOUNT_INIT;
	t->mounts[t->n].target = "/proc";
	t->mounts[t->n].fs = "proc";
	t->mounts[t->n].options = "subset=pid";
	t->mounts[t->n].attr_set =
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	t->n++;
}

static int jail_fill(struct jail_tree *t, const char *program, struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err);
	int r;

	static_assert(ARRAY_SIZE(jail_libraries) + 2 <= JAIL_MOUNTS_MAX, "room for each mount");
	if (host_fd < 0)
		return host_fd;
	r = jail_add_host(t, host_fd, program);
	if (r == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION, "there is no %s", program);
	if (r < 0)
		return error_set(err, r, "open %s", program);
	for (size_t i = 0; i < ARRAY_SIZE(jail_libraries); i++) {
		r = jail_add_host(t, host_fd, jail_libraries[i]);
		if (r < 0 && r != -ENOENT)
			return error_set(err, r, "open %s", jail_libraries[i]);
	}
	jail_add_proc(t);
	return 0;
}

static void jail_plan(struct isolate_plan *plan, const struct jail *jail)
{
	static const struct isolate_rlimit limits[] = {
		{ RLIMIT_CORE, 0, 0 },
		{ RLIMIT_NOFILE, JAIL_FILES, JAIL_FILES },
		{ RLIMIT_NPROC, JAIL_TASKS, JAIL_TASKS },
	};
	static char *const env[] = { NULL };

	isolate_plan_init(plan);
	plan->ns[ISOLATE_NS_PID] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_MOUNT] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_IPC] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_UTS] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_CGROUP] = ISOLATE_NEW;
	plan->ns[ISOLATE_NS_NET] = jail->net_ns_fd >= 0 ? ISOLATE_JOIN : ISOLATE_NEW;
	plan->ns_fd[ISOLATE_NS_NET] = jail->net_ns_fd;
	plan->hostname = "vmm";
	plan->cgroup_fd = jail->cgroup_fd;
	plan->root = ISOLATE_ROOT_TREE;
	plan->root_read_only = true;
	plan->argv = jail->argv;
	plan->env = env;
	plan->uid = jail->uid;
	plan->gid = jail->gid;
	plan->caps = 0;
	plan->no_new_privs = true;
	plan->seccomp = isolate_seccomp_default(0);
	plan->default_rlimits = true;
	plan->rlimits = limits;
	plan->n_rlimits = ARRAY_SIZE(limits);
	plan->umask = 0077;
	plan->death_signal = jail->fleeting ? SIGKILL : 0;
	plan->new_session = true;
	plan->stdio[2] = jail->words_fd;
	for (size_t i = 0; i < jail->n_fds; i++)
		plan->keep_fds[i] = jail->fds[i];
	plan->n_keep_fds = jail->n_fds;
}

/*
 * Should: end in a process that can reach nothing but its descriptors, its own memory, and its
 * libraries. Must not: hand down a descriptor that is not in the list.
 */
int jail_spawn(const struct jail *jail, struct isolate_child *ret, struct error *err)
{
	const struct isolate_device kvm = {
		.path = "/dev/kvm",
		.type = 'c',
		.major = JAIL_KVM_MAJOR,
		.minor = JAIL_KVM_MINOR,
		.mode = 0600,
		.uid = jail->uid,
		.gid = jail->gid,
		.fd = -1,
	};
	_cleanup_(jail_tree_done) struct jail_tree tree = { .root_fd = -1 };
	struct isolate_plan plan;
	int r;

	if (jail->n_fds > ISOLATE_KEEP_FDS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "a machine's monitor takes at most %d descriptors",
				    ISOLATE_KEEP_FDS_MAX);
	r = jail_fill(&tree, jail->program, err);
	if (r < 0)
		return r;
	tree.root_fd = jail_make_root(jail->kvm, err);
	if (tree.root_fd < 0)
		return tree.root_fd;
	jail_plan(&plan, jail);
	plan.root_fd = tree.root_fd;
	plan.mounts = tree.mounts;
	plan.n_mounts = tree.n;
	plan.devices = jail->kvm ? &kvm : NULL;
	plan.n_devices = jail->kvm;
	return isolate_spawn(&plan, ret, err);
}
