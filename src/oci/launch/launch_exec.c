/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/spawn/spawn.h"
#include "oci/config/convert.h"
#include "oci/config/words.h"
#include "oci/launch/launch.h"
#include "oci/launch/launch_options.h"
#include "oci/launch/named.h"
#include "oci/launch/seccomp_agent.h"

static const struct {
	enum isolate_ns kind;
	const char *type;
} exec_namespaces[] = {
	{ ISOLATE_NS_USER, "user" },     { ISOLATE_NS_PID, "pid" },   { ISOLATE_NS_MOUNT, "mount" },
	{ ISOLATE_NS_NET, "network" },   { ISOLATE_NS_IPC, "ipc" },   { ISOLATE_NS_UTS, "uts" },
	{ ISOLATE_NS_CGROUP, "cgroup" }, { ISOLATE_NS_TIME, "time" },
};

static bool config_has_ns(const struct oci_config *config, const char *type)
{
	for (size_t i = 0; i < config->os->n_namespaces; i++)
		if (str_eq(config->os->namespaces[i].type, type))
			return true;
	return false;
}

static int exec_join(struct convert *conv, const struct container *c, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(exec_namespaces); i++) {
		enum isolate_ns kind = exec_namespaces[i].kind;
		int fd, r;

		if (!config_has_ns(c->config, exec_namespaces[i].type))
			continue;
		fd = isolate_ns_open(c->proc_fd, c->pid, kind);
		if (fd < 0)
			return error_set(err, fd, "open the %s namespace of process %d",
					 exec_namespaces[i].type, (int)c->pid);
		r = convert_own(conv, fd, err);
		if (r < 0)
			return r;
		conv->plan.ns[kind] = ISOLATE_JOIN;
		conv->plan.ns_fd[kind] = fd;
	}
	return 0;
}

/* The ids of a user namespace that the container has made. One that it has joined can have other
 * ids than its configuration says. */
static int exec_ids(struct convert *conv, const struct container *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	struct isolate_plan *plan = &conv->plan;
	int r;

	for (size_t i = 0; i < os->n_namespaces; i++) {
		if (!str_eq(os->namespaces[i].type, "user") || !str_empty(os->namespaces[i].path))
			continue;
		r = convert_id_maps(conv, os->uid_maps, os->n_uid_maps, &plan->uid_map,
				    &plan->n_uid_map, err);
		return r < 0 ? r
			     : convert_id_maps(conv, os->gid_maps, os->n_gid_maps, &plan->gid_map,
					       &plan->n_gid_map, err);
	}
	return 0;
}

/* A namespace that the container has not made has not its root either. */
static int exec_root(struct convert *conv, const struct container *c, struct error *err)
{
	int fd;

	for (size_t i = 0; i < c->config->os->n_namespaces; i++)
		if (str_eq(c->config->os->namespaces[i].type, "mount") &&
		    str_empty(c->config->os->namespaces[i].path))
			return 0;
	fd = isolate_root_open(c->proc_fd, c->pid);
	if (fd < 0)
		return error_set(err, fd, "open the root of process %d", (int)c->pid);
	conv->plan.root = ISOLATE_ROOT_OTHER;
	conv->plan.root_fd = fd;
	return convert_own(conv, fd, err);
}

static int exec_group(const struct container *c, const char *sub, struct error *err)
{
	_cleanup_fd_ int group = container_cgroup(c, err);
	int fd;

	if (group < 0 || str_empty(sub))
		return TAKE_FD(group);
	fd = cgroup_open_path(group, sub[0] == '/' ? sub + 1 : sub);
	return fd < 0 ? error_set(err, fd, "--cgroup: open %s", sub) : fd;
}

static int exec_affinity(struct convert *conv, const struct oci_process *p, struct error *err)
{
	const char *list = NULL;
	int r;

	if (!p->affinity)
		return 0;
	list = str_empty(p->affinity->final) ? p->affinity->initial : p->affinity->final;
	if (str_empty(list))
		return 0;
	r = word_bits(list, "process.execCPUAffinity", conv->cpus.bits, ARRAY_SIZE(conv->cpus.bits),
		      err);
	conv->plan.cpus = &conv->cpus;
	return r;
}

static int exec_terminal(struct convert *conv, struct isolate_pty *pty, const struct container *c,
			 const struct oci_process *p, const struct launch_options *o,
			 struct error *err)
{
	int r;

	if (!p->terminal.value)
		return 0;
	r = isolate_pty_of(pty, c->proc_fd, c->pid, err);
	return r < 0 ? r : launch_plan_terminal(&conv->plan, pty, p, o, err);
}

/* What was opened by the number of the first process is of that process and of no other, which may
 * have the number since: where it lives now, it lived all the time. */
static int exec_check(const struct container *c, struct error *err)
{
	_cleanup_fd_ int pidfd = container_pidfd(c);

	if (pidfd >= 0)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION, "container \"%s\" has ended", c->id);
}

static int exec_plan(struct convert *conv, struct isolate_pty *pty, const struct container *c,
		     const struct oci_process *p, const struct launch_options *o, struct error *err)
{
	int r;

	r = exec_join(conv, c, err);
	if (r == 0)
		r = exec_ids(conv, c, err);
	if (r == 0)
		r = exec_root(conv, c, err);
	if (r == 0)
		r = convert_process(conv, p, err);
	if (r == 0)
		r = convert_seccomp(conv, err);
	if (r == 0)
		r = exec_affinity(conv, p, err);
	if (r == 0)
		r = launch_plan_fds(&conv->plan, o, conv->arena, err);
	if (r == 0)
		r = exec_terminal(conv, pty, c, p, o, err);
	return r < 0 ? r : exec_check(c, err);
}

int launch_exec(struct container *c, const struct oci_process *p, const struct launch_options *o,
		const char *sub_cgroup, struct launched *ret, struct error *err)
{
	_cleanup_(isolate_child_done) struct isolate_child child = ISOLATE_CHILD_INIT;
	_cleanup_(isolate_pty_done) struct isolate_pty pty = ISOLATE_PTY_INIT;
	_cleanup_(convert_done) struct convert conv = CONVERT_INIT(&c->arena, c->config, c->bundle);
	_cleanup_fd_ int group = exec_group(c, sub_cgroup, err), socket_fd = -1, child_fd = -1;
	int pair[2], status = 0;
	int r;

	if (group < 0)
		return group;
	isolate_plan_init(&conv.plan);
	conv.plan.cgroup_fd = group;
	r = exec_plan(&conv, &pty, c, p, o, err);
	if (r < 0)
		return r;
	if (conv.plan.seccomp_notify) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return error_set(err, -errno, "make a pair of sockets");
		socket_fd = pair[0];
		child_fd = pair[1];
		conv.plan.at_fd = child_fd;
	}
	r = named_spawn(c, &conv.plan, &child, err);
	child_fd = fd_close(child_fd);
	if (r < 0)
		return r;
	r = socket_fd >= 0 ? seccomp_agent_watch(c, child.pid, socket_fd, &child, err)
			   : isolate_child_report(&child, &status, err);
	convert_report_notes(&conv);
	if (r == 0)
		r = launch_write_pid_file(o->pid_file, child.pid, err);
	if (r == 0)
		r = launch_send_pidfd(o->pidfd_socket, child.pidfd, err);
	if (r < 0) {
		launch_end(&child);
		return r;
	}
	ret->pid = child.pid;
	ret->pidfd = TAKE_FD(child.pidfd);
	ret->master_fd = TAKE_FD(pty.master_fd);
	return 0;
}
