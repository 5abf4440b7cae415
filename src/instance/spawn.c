/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/spawn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/keeper_env.h"
#include "io/unix.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/mount/idmap.h"

#define KEEPER_OOM_SCORE_ADJ (-998)

int instance_open_exe(struct error *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};
	_cleanup_fd_ int fd = -1;

	fd = sysio_open_tree(AT_FDCWD, "/proc/self/exe", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "clone the mount of this program");
	if (sysio_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
		return error_set(err, -errno, "make the mount of this program read-only");
	return TAKE_FD(fd);
}

static void instance_plan_namespaces(struct isolate_plan *plan, bool host_network, bool host_ipc,
				     bool host_uts)
{
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		plan->ns[i] =
			i == ISOLATE_NS_USER || i == ISOLATE_NS_TIME ? ISOLATE_KEEP : ISOLATE_NEW;
	/*
	 * No cgroup namespace: its root would be the leaf, and where cgroup2 is mounted with
	 * nsdelegate nobody clones into a group outside of the root of his namespace. To be born in
	 * the layer's group and to move to the leaf is no way either: a move waits for an RCU grace
	 * period, some 10 ms (cgroup_threadgroup_rwsem). The containers have namespaces of their
	 * own.
	 */
	plan->ns[ISOLATE_NS_CGROUP] = ISOLATE_KEEP;
	if (host_network)
		plan->ns[ISOLATE_NS_NET] = ISOLATE_KEEP;
	if (host_ipc)
		plan->ns[ISOLATE_NS_IPC] = ISOLATE_KEEP;
	if (host_uts)
		plan->ns[ISOLATE_NS_UTS] = ISOLATE_KEEP;
	plan->bring_up_loopback = !host_network;
}

static void instance_plan(struct isolate_plan *plan, const struct instance_spawn *spec, int leaf_fd)
{
	isolate_plan_init(plan);
	plan->cgroup_fd = leaf_fd;
	plan->exec_fd = spec->exe_fd;
	plan->oom_score_adj = KEEPER_OOM_SCORE_ADJ;
	plan->death_signal = spec->death_signal;
	plan->new_session = true;
	plan->stdio[0] = -1;
	plan->stdio[1] = -1;
	plan->stdio[2] = STDERR_FILENO;
	if (!spec->walled)
		return;

	instance_plan_namespaces(plan, spec->host_network, spec->host_ipc, spec->host_uts);
	if (spec->host_pids)
		plan->ns[ISOLATE_NS_PID] = ISOLATE_KEEP;
	plan->hostname = spec->host_uts ? NULL : name_last(spec->title);
	plan->root = ISOLATE_ROOT_KEEPER;
	for (int i = 0; spec->joins && i < ISOLATE_NS_COUNT; i++) {
		if (spec->joins[i] < 0)
			continue;
		plan->ns[i] = ISOLATE_JOIN;
		plan->ns_fd[i] = spec->joins[i];
	}
	if (plan->ns[ISOLATE_NS_NET] == ISOLATE_JOIN)
		plan->bring_up_loopback = false;
	if (plan->ns[ISOLATE_NS_UTS] == ISOLATE_JOIN)
		plan->hostname = NULL;
}

/* What port_set_pod_files() sets otherwise: it leaves a namespace alone whose settings differ from
 * the kernel's, and a sysctl may ask for just the kernel's. */
static const struct isolate_sysctl spawn_port_sysctls[] = {
	{ "net.ipv4.ip_unprivileged_port_start", "0" },
	{ "net.ipv4.ping_group_range", "0 2147483647" },
};

/* Those first, for a network of its own: what was asked for is written later, and stays. */
static void instance_add_port_sysctls(struct isolate_plan *plan,
				      struct isolate_sysctl list[ISOLATE_SYSCTLS_MAX])
{
	const size_t n = ARRAY_SIZE(spawn_port_sysctls);

	if (plan->n_sysctls == 0 || plan->n_sysctls + n > ISOLATE_SYSCTLS_MAX ||
	    plan->ns[ISOLATE_NS_NET] == ISOLATE_KEEP)
		return;
	memmove(list + n, list, plan->n_sysctls * sizeof(*list));
	memcpy(list, spawn_port_sysctls, sizeof(spawn_port_sysctls));
	plan->n_sysctls += n;
}

/* "NAME=VALUE" each, cut in the copy that *text becomes. */
static int instance_split_sysctls(char *const *sysctls, char ***text,
				  struct isolate_sysctl ret[ISOLATE_SYSCTLS_MAX], size_t *ret_n)
{
	size_t n = strv_len(sysctls);

	if (n == 0)
		return 0;
	if (n > ISOLATE_SYSCTLS_MAX)
		return -E2BIG;
	*text = strv_copy(sysctls);
	if (!*text)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *value = strchr((*text)[i], '=');

		ret[i].name = (*text)[i];
		ret[i].value = value ? value + 1 : NULL;
		if (value)
			*value = '\0';
	}
	*ret_n = n;
	return 0;
}

int instance_check_sysctls(char *const *sysctls, bool host_network, bool host_ipc, bool host_uts,
			   struct error *err)
{
	struct isolate_sysctl split[ISOLATE_SYSCTLS_MAX];
	_cleanup_strv_ char **text = NULL;
	struct isolate_plan plan;
	size_t n = 0;
	int r;

	isolate_plan_init(&plan);
	instance_plan_namespaces(&plan, host_network, host_ipc, host_uts);
	r = instance_split_sysctls(sysctls, &text, split, &n);
	return r < 0 ? error_set(err, r, "sysctls") : isolate_sysctls_check(split, n, plan.ns, err);
}

/* As long as the longest name that an unnamed keeper may get. */
#define SPAWN_ROOM "---------------------------------------------------------------"
static_assert(sizeof(SPAWN_ROOM) == NAME_LABEL_MAX + 1, "room for a label");

/* The namespaces of its pod are made ahead of it, in a user namespace that it stays out of. */
static int instance_make_users(const struct instance_spawn *spec, struct isolate_plan *plan,
			       int fds[ISOLATE_NS_COUNT], struct error *err)
{
	bool kinds[ISOLATE_NS_COUNT] = {
		[ISOLATE_NS_NET] = !spec->host_network,
		[ISOLATE_NS_IPC] = !spec->host_ipc,
		[ISOLATE_NS_UTS] = !spec->host_uts,
	};
	int r;

	if (!isolate_ids_are_set(&spec->ids) ||
	    (spec->host_network && spec->host_ipc && spec->host_uts))
		return 0;
	r = isolate_users_new(&spec->ids, kinds, fds, err);
	if (r < 0)
		return error_wrap(err, r, "make the user namespace");
	plan->joins_new = true;
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		if (kinds[i]) {
			plan->ns[i] = ISOLATE_JOIN;
			plan->ns_fd[i] = fds[i];
		}
	return 0;
}

static void instance_close_users(int fds[ISOLATE_NS_COUNT])
{
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		fds[i] = fd_close(fds[i]);
}

int instance_spawn(const struct instance_spawn *spec, struct isolate_child *ret, struct error *err)
{
	/* The arguments are longer than any title that the keeper will set in their place. */
	const char *argv[] = { "nacre", "keeper", "--title", spec->title, NULL, NULL, NULL, NULL };
	size_t n = 4;
	_cleanup_fd_ int rpc_fd = -1, channel_fd = -1, end_fd = -1, leaf_fd = -1;
	struct isolate_sysctl sysctls[ISOLATE_SYSCTLS_MAX];
	_cleanup_strv_ char **text = NULL;
	int users[ISOLATE_NS_COUNT] = { -1, -1, -1, -1, -1, -1, -1, -1 };
	struct isolate_plan plan;
	int r;

	if (!spec->walled && !spec->in_guest)
		argv[n++] = "--node";
	if (spec->in_guest)
		argv[n++] = "--guest";
	if (spec->disks)
		argv[n++] = "--disks";
	if (spec->unnamed) {
		argv[n++] = "--room";
		argv[n] = SPAWN_ROOM;
	}
	r = FAILPOINT("spawn.sockets");
	if (r < 0)
		return error_set(err, r, "make the sockets of a keeper");
	rpc_fd = unix_listen(spec->dir_fd, "rpc.sock", SOCK_STREAM, err);
	if (rpc_fd < 0)
		return rpc_fd;
	channel_fd = unix_listen(spec->dir_fd, "fd.sock", SOCK_SEQPACKET, err);
	if (channel_fd < 0)
		return channel_fd;
	end_fd = sysio_openat(spec->dir_fd, "end",
			      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (end_fd < 0)
		return error_set(err, -errno, "make the file for the last words of a keeper");
	leaf_fd = cgroup_make(spec->cgroup_fd, "keeper", err);
	if (leaf_fd < 0)
		return leaf_fd;

	FAILPOINT_AFTER("spawn.sockets");
	instance_plan(&plan, spec, leaf_fd);
	r = instance_split_sysctls(spec->sysctls, &text, sysctls, &plan.n_sysctls);
	if (r < 0)
		return error_set(err, r, "sysctls");
	instance_add_port_sysctls(&plan, sysctls);
	plan.sysctls = sysctls;
	plan.argv = (char *const *)(uintptr_t)argv;
	plan.env = keeper_env();
	plan.keep_fds[INSTANCE_FD_RPC - 3] = rpc_fd;
	plan.keep_fds[INSTANCE_FD_CHANNEL - 3] = channel_fd;
	plan.keep_fds[INSTANCE_FD_CGROUP - 3] = spec->cgroup_fd;
	plan.keep_fds[INSTANCE_FD_EXE - 3] = spec->exe_fd;
	plan.keep_fds[INSTANCE_FD_END - 3] = end_fd;
	plan.n_keep_fds = INSTANCE_FD_END_OF_LIST - 3;
	if (spec->disks) {
		plan.keep_fds[plan.n_keep_fds++] = spec->disks->sys_fd;
		plan.keep_fds[plan.n_keep_fds++] = spec->disks->dev_fd;
		if (spec->disks->bus_fd >= 0)
			plan.keep_fds[plan.n_keep_fds++] = spec->disks->bus_fd;
	}
	r = instance_make_users(spec, &plan, users, err);
	if (r == 0)
		r = isolate_spawn(&plan, ret, err);
	instance_close_users(users);
	return r;
}

int instance_connect(int dir_fd, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	_cleanup_fd_ int rpc_fd = -1, fd_fd = -1;

	rpc_fd = unix_connect(dir_fd, "rpc.sock", SOCK_STREAM, err);
	if (rpc_fd < 0)
		return error_wrap(err, rpc_fd, "reach the keeper");
	fd_fd = unix_connect(dir_fd, "fd.sock", SOCK_SEQPACKET, err);
	if (fd_fd < 0)
		return error_wrap(err, fd_fd, "reach the keeper");
	*ret_rpc_fd = TAKE_FD(rpc_fd);
	*ret_fd_fd = TAKE_FD(fd_fd);
	return 0;
}

void instance_last_words(int dir_fd, char *ret, size_t size)
{
	char words[INSTANCE_LAST_WORDS_MAX + 1];
	_cleanup_fd_ int fd = -1;
	ssize_t n;

	ret[0] = '\0';
	fd = openat(dir_fd, "end", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	n = read(fd, words, INSTANCE_LAST_WORDS_MAX);
	if (n <= 0)
		return;
	words[n] = '\0';
	words[strcspn(words, "\n")] = '\0';
	if (!str_is_clean(words) || !str_is_utf8(words, strlen(words)))
		return;
	(void)str_copy(ret, size, words);
}
