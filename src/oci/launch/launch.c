/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/launch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/spawn/spawn.h"
#include "oci/cmd/report.h"
#include "oci/config/convert.h"
#include "oci/launch/group.h"
#include "oci/launch/hooks.h"
#include "oci/launch/launch_child.h"
#include "oci/launch/launch_options.h"
#include "oci/launch/message.h"
#include "oci/launch/named.h"
#include "oci/launch/seccomp_agent.h"
#include "oci/launch/terminal.h"

/*
 * Theory of operation. The clone is done once everything that can be known before is known. The
 * process then makes its own way (isolate), and stops only where somebody has to act meanwhile:
 *
 *   MOUNTED  where there are hooks of the runtime's namespaces: it says so and waits. The hooks of
 *            the container's namespaces it runs itself afterwards. Both find the root in its mount
 *            namespace at the bundle's path, and what they mount below it stays the container's.
 *   READY    with `create`: it says so, and gets three descriptors to keep: the socket to wait for
 *            `start` at, and both that `start` needs, the reading end of the pipe where it reports
 *            a failure, and our end of the socket that it talks over (the listener of seccomp comes
 *            there). Then `create` is done and ends.
 *
 * For `run` without hooks there is no stop at all: the state is written while the process works,
 * and so are the rules for devices of its group, which nothing before the program needs. It waits
 * for them only if it is there first.
 */

void launched_done(struct launched *l)
{
	l->pidfd = fd_close(l->pidfd);
	l->master_fd = fd_close(l->master_fd);
}

struct launch {
	struct container *c;
	const struct launch_options *o;
	struct convert conv;
	struct launch_child_plan child_plan;
	struct isolate_child child;
	struct isolate_pty pty;
	int group_fd;
	int socket_fd; /* our end */
	bool hooked;   /* the container has got as far as its first hook */
};

static void launch_done(struct launch *l)
{
	convert_done(&l->conv);
	isolate_child_done(&l->child);
	isolate_pty_done(&l->pty);
	l->group_fd = fd_close(l->group_fd);
	l->socket_fd = fd_close(l->socket_fd);
	l->child_plan.socket_fd = fd_close(l->child_plan.socket_fd);
}

/* ---- the plan ---- */

static int launch_terminal(struct launch *l, struct error *err)
{
	const struct oci_process *p = l->c->config->process;
	int r;

	if (!p->terminal.value)
		return l->o->console_socket
			       ? error_refuse(err, ERROR_INVALID,
					      "--console-socket: process.terminal is not set")
			       : 0;
	if ((l->o->wait || l->o->detached) && !l->o->console_socket)
		return error_refuse(err, ERROR_INVALID, "process.terminal: needs --console-socket");
	r = isolate_pty_new(&l->pty, &(struct isolate_ids){ .count = 0 }, err);
	if (r < 0)
		return r;
	l->conv.plan.pts_fd = l->pty.mount_fd;
	return launch_plan_terminal(&l->conv.plan, &l->pty, p, l->o, err);
}

static int launch_plan(struct launch *l, struct error *err)
{
	const struct oci_config *config = l->c->config;
	struct convert *conv = &l->conv;
	int r;

	if (!config->process)
		return error_field(err, ERROR_INVALID, "process", "is missing");
	isolate_plan_init(&conv->plan);
	conv->cgroup_fd = l->group_fd;
	conv->plan.cgroup_fd = l->group_fd;
	conv->plan.no_pivot = l->o->no_pivot;
	conv->plan.keep_keyring = l->o->no_new_keyring;
	r = convert_namespaces(conv, err);
	if (r == 0)
		r = convert_process(conv, config->process, err);
	if (r == 0)
		r = convert_container(conv, err);
	if (r == 0)
		r = convert_seccomp(conv, err);
	if (r == 0)
		r = convert_tree(conv, l->c->rootfs, err);
	if (r == 0)
		r = launch_plan_fds(&conv->plan, l->o, &l->c->arena, err);
	return r < 0 ? r : launch_terminal(l, err);
}

/* ---- talking ---- */

static bool launch_has_hooks(const struct oci_config *config)
{
	return hooks_has(config, OCI_HOOK_PRESTART) || hooks_has(config, OCI_HOOK_CREATE_RUNTIME) ||
	       hooks_has(config, OCI_HOOK_CREATE_CONTAINER);
}

/* Whether nothing but its program will run in the group, or make what the rules forbid. */
static bool launch_can_hold(const struct launch *l)
{
	const struct oci_config *config = l->c->config;

	return !l->o->wait && !launch_has_hooks(config) &&
	       !hooks_has(config, OCI_HOOK_START_CONTAINER) && !l->conv.plan.seccomp_notify &&
	       config->os->n_devices == 0;
}

/* The rules for devices, behind the clone. */
static int launch_let_go(struct launch *l, struct error *err)
{
	int r = group_confine(l->c, l->group_fd, err);

	if (r < 0)
		return r;
	r = message_send(l->socket_fd, (const char[]){ LAUNCH_GO }, 1, NULL, 0);
	/* Where it has ended already its report says why. */
	return r < 0 && r != -EPIPE && r != -ECONNRESET
		       ? error_set(err, r, "let the first process go on")
		       : 0;
}

static int launch_spawn(struct launch *l, struct error *err)
{
	struct isolate_plan *plan = &l->conv.plan;
	int pair[2];
	int r;

	l->child_plan.container = l->c;
	l->child_plan.plan = plan;
	l->child_plan.stop_mounted = launch_has_hooks(l->c->config);
	l->child_plan.stop_ready = l->o->wait;
	/* Hooks mount in the container by the path of its root. */
	if (l->child_plan.stop_mounted)
		plan->root_place = l->c->rootfs;
	l->child_plan.held = launch_can_hold(l);
	if (!l->child_plan.held) {
		r = group_confine(l->c, l->group_fd, err);
		if (r < 0)
			return r;
	}
	if (l->child_plan.held || l->child_plan.stop_mounted || l->o->wait ||
	    plan->seccomp_notify || hooks_has(l->c->config, OCI_HOOK_START_CONTAINER)) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return error_set(err, -errno, "make a pair of sockets");
		l->socket_fd = pair[0];
		l->child_plan.socket_fd = pair[1];
		plan->at = launch_child_at;
		plan->at_data = &l->child_plan;
		plan->at_fd = pair[1];
	}
	r = named_spawn(l->c, plan, &l->child, err);
	/* Its end is closed with the process. */
	l->child_plan.socket_fd = fd_close(l->child_plan.socket_fd);
	return r == 0 && l->child_plan.held ? launch_let_go(l, err) : r;
}

/* What the process says next, or why it does not. */
static int launch_hear(struct launch *l, char expected, struct error *err)
{
	int fds[MESSAGE_FDS_MAX], status = 0;
	char byte = 0;
	int r;

	for (;;) {
		r = message_receive(l->socket_fd, &byte, fds);
		if (r > 0 && byte == ISOLATE_AT_SECCOMP) {
			r = seccomp_agent_send(l->c, l->child.pid, fds[0], err);
			message_close(fds);
			if (r < 0)
				return r;
			continue;
		}
		message_close(fds);
		break;
	}
	if (r > 0 && byte == expected)
		return 0;
	r = isolate_child_report(&l->child, &status, err);
	return r < 0 ? r : error_refuse(err, ERROR_FAULT, "the first process has ended early");
}

static int launch_hook_runtime(struct launch *l, struct error *err)
{
	_cleanup_str_ char *state = NULL;
	int r;

	r = launch_hear(l, LAUNCH_MOUNTED, err);
	if (r < 0)
		return r;
	state = container_state_text(l->c, CONTAINER_CREATING, l->child.pid);
	if (!state)
		return error_set(err, -ENOMEM, "write the state");
	l->hooked = true;
	r = hooks_run(l->c->config, OCI_HOOK_PRESTART, state, NULL, err);
	if (r == 0)
		r = hooks_run(l->c->config, OCI_HOOK_CREATE_RUNTIME, state, NULL, err);
	if (r < 0)
		return r;
	r = message_send(l->socket_fd, (const char[]){ LAUNCH_GO }, 1, NULL, 0);
	return r < 0 ? error_set(err, r, "let the first process go on") : 0;
}

/* Hands over what the process waits with, so that this command can end. */
static int launch_leave(struct launch *l, int listen_fd, struct error *err)
{
	const int fds[LAUNCH_WAIT_FDS] = { listen_fd, l->child.report_fd, l->socket_fd };
	int r;

	r = launch_hear(l, LAUNCH_READY, err);
	if (r < 0)
		return r;
	r = message_send(l->socket_fd, (const char[]){ LAUNCH_WAIT }, 1, fds, LAUNCH_WAIT_FDS);
	return r < 0 ? error_set(err, r, "let the first process wait") : 0;
}

/* With `run`: until the program is executed. */
static int launch_through(struct launch *l, struct error *err)
{
	int status = 0;

	if (l->conv.plan.seccomp_notify)
		return seccomp_agent_watch(l->c, l->child.pid, l->socket_fd, &l->child, err);
	return isolate_child_report(&l->child, &status, err);
}

static int launch_converse(struct launch *l, struct error *err)
{
	_cleanup_fd_ int listen_fd = -1;
	int r;

	if (l->o->wait) {
		listen_fd = message_listen(l->c->dir_fd, CONTAINER_START_SOCKET, err);
		if (listen_fd < 0)
			return listen_fd;
	}
	r = container_set_process(l->c, l->child.pid, err);
	if (r == 0 && l->child_plan.stop_mounted)
		r = launch_hook_runtime(l, err);
	if (r == 0)
		r = l->o->wait ? launch_leave(l, listen_fd, err) : launch_through(l, err);
	if (r == 0)
		r = launch_write_pid_file(l->o->pid_file, l->child.pid, err);
	return r < 0 ? r : launch_send_pidfd(l->o->pidfd_socket, l->child.pidfd, err);
}

int launch_container(struct container *c, const struct launch_options *o, struct launched *ret,
		     struct error *err)
{
	_cleanup_(launch_done) struct launch l = {
		.c = c,
		.o = o,
		.conv = CONVERT_INIT(&c->arena, c->config, c->bundle),
		.child_plan = { .socket_fd = -1 },
		.child = ISOLATE_CHILD_INIT,
		.pty = ISOLATE_PTY_INIT,
		.group_fd = -1,
		.socket_fd = -1,
	};
	struct error undo = ERROR_INIT;
	int r;

	l.group_fd = group_make(c, o->systemd_cgroup, err);
	r = l.group_fd < 0 ? l.group_fd : launch_plan(&l, err);
	if (r == 0)
		r = launch_spawn(&l, err);
	if (r == 0)
		r = launch_converse(&l, err);
	convert_report_notes(&l.conv);
	if (r == 0) {
		ret->pid = l.child.pid;
		ret->pidfd = TAKE_FD(l.child.pidfd);
		ret->master_fd = TAKE_FD(l.pty.master_fd);
		return 0;
	}
	launch_end(&l.child);
	if (group_remove(c, &undo) < 0)
		report_warning("%s", error_text(&undo));
	if (l.hooked) {
		_cleanup_str_ char *state = container_state_text(c, CONTAINER_STOPPED, 0);

		if (state)
			hooks_run_all(c->config, OCI_HOOK_POSTSTOP, state);
	}
	return r;
}

/* ---- start ---- */

int launch_start(struct container *c, struct error *err)
{
	_cleanup_(isolate_child_done) struct isolate_child child = ISOLATE_CHILD_INIT;
	_cleanup_fd_ int fd = message_connect(c->dir_fd, CONTAINER_START_SOCKET, err);
	_cleanup_fd_ int socket_fd = -1;
	int fds[MESSAGE_FDS_MAX];
	char byte = 0;
	int r;

	if (fd < 0)
		return error_wrap(err, fd, "reach the first process");
	r = message_receive(fd, &byte, fds);
	if (r <= 0 || byte != LAUNCH_READY || fds[1] < 0) {
		message_close(fds);
		return error_refuse(err, ERROR_FAULT, "the first process does not answer");
	}
	child.pid = c->pid;
	child.report_fd = fds[0];
	socket_fd = fds[1];
	if (sysio_unlinkat(c->dir_fd, CONTAINER_START_SOCKET, 0) < 0)
		return error_set(err, -errno, "remove the socket of the first process");
	r = message_send(fd, (const char[]){ LAUNCH_GO }, 1, NULL, 0);
	if (r < 0)
		return error_set(err, r, "let the first process go on");
	return seccomp_agent_watch(c, c->pid, socket_fd, &child, err);
}
