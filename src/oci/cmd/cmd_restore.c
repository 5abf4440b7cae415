/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/spawn/pty.h"
#include "oci/checkpoint/criu.h"
#include "oci/checkpoint/image.h"
#include "oci/checkpoint/outside.h"
#include "oci/cmd/handlers.h"
#include "oci/cmd/report.h"
#include "oci/config/given.h"
#include "oci/launch/aside.h"
#include "oci/launch/container.h"
#include "oci/launch/destroy.h"
#include "oci/launch/group.h"
#include "oci/launch/hooks.h"
#include "oci/launch/launch.h"
#include "oci/launch/launch_options.h"
#include "oci/launch/terminal.h"

/*
 * Theory of operation. As with `create`, the directory and the cgroup come first. criu then makes
 * the processes; the first one becomes a child of this command, as if it had been cloned here, and
 * is written down when criu says its number, before it runs. Until criu has said that all went well
 * this command knows the process only as a child that it did not have before: that is what it ends
 * where anything fails, and with the first process goes its pid namespace.
 */

#define LOG_NAME "restore.log"
/* Where criu finds the root, below the container's directory. */
#define ROOT_NAME "root"
#define CHILDREN_MAX ((size_t)1 << 20)

struct restore {
	const struct oci *oci;
	struct container *c;
	const struct launch_options *o;
	const struct args *args;
	struct image image;
	struct aside aside;
	struct criu criu;
	struct criu_options options;
	struct outside outside;
	struct isolate_pty pty; /* its master, once criu has sent that */
	char *root;             /* the path that criu mounts upon */
	char *children;         /* before criu: " 12 34 " */
	int group_fd;
	bool hooked;
};

static void restore_done(struct restore *s)
{
	image_done(&s->image);
	criu_done(&s->criu);
	outside_done(&s->outside);
	isolate_pty_done(&s->pty);
	s->group_fd = fd_close(s->group_fd);
	aside_done(&s->aside);
	free(s->root);
	free(s->children);
}

/* ---- children ---- */

/* The children of this process as " 12 34 ", ended or not. */
static int restore_children(const struct container *c, char **ret, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char name[48];
	int r;

	(void)str_printf(name, sizeof(name), "self/task/%d/children", (int)getpid());
	r = buf_add_str(&b, " ");
	if (r == 0)
		r = fd_read_file(c->proc_fd, name, CHILDREN_MAX, &b);
	if (r < 0)
		return error_set(err, r, "list the children of this process");
	*ret = buf_take_str(&b);
	return *ret ? 0 : error_set(err, -ENOMEM, "list the children of this process");
}

static bool children_have(const char *children, long pid)
{
	char word[24];

	(void)str_printf(word, sizeof(word), " %ld ", pid);
	return strstr(children, word);
}

/* A child cannot become another process before it is reaped, which happens nowhere but here. */
static void restore_end_child(pid_t pid)
{
	_cleanup_fd_ int pidfd = pidfd_of(pid);
	siginfo_t info;

	if (pidfd < 0)
		return;
	(void)pidfd_kill(pidfd, SIGKILL);
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
		continue;
}

static void restore_end_children(const struct restore *s)
{
	_cleanup_str_ char *now = NULL;
	char *at, *end;

	if (!s->children || restore_children(s->c, &now, NULL) < 0)
		return;
	for (at = now;;) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			return;
		if (pid > 0 && !children_have(s->children, pid))
			restore_end_child((pid_t)pid);
		at = end;
	}
}

/* ---- what criu tells ---- */

static int restore_hooks(struct restore *s, pid_t pid, struct error *err)
{
	const struct oci_config *config = s->c->config;
	_cleanup_str_ char *state = NULL;
	int r;

	if (!hooks_has(config, OCI_HOOK_PRESTART) && !hooks_has(config, OCI_HOOK_CREATE_RUNTIME))
		return 0;
	state = container_state_text(s->c, CONTAINER_CREATING, pid);
	if (!state)
		return error_set(err, -ENOMEM, "write the state");
	r = aside_leave(&s->aside, err);
	if (r < 0)
		return r;
	s->hooked = true;
	r = hooks_run(config, OCI_HOOK_PRESTART, state, NULL, err);
	if (r == 0)
		r = hooks_run(config, OCI_HOOK_CREATE_RUNTIME, state, NULL, err);
	return r < 0 ? r : aside_return(&s->aside, err);
}

static int restore_terminal(struct restore *s, int fd, struct error *err)
{
	if (fd < 0 || s->pty.master_fd >= 0 || !s->c->config->process->terminal.value)
		return error_refuse(err, ERROR_FAULT, "it sends a terminal that nobody wants");
	s->pty.master_fd = fd_copy(fd);
	if (s->pty.master_fd < 0)
		return error_set(err, s->pty.master_fd, "take the terminal");
	return s->o->console_socket ? terminal_send(&s->pty, s->o->console_socket, err) : 0;
}

/* The first process is in the container's group, or in one below: nobody could stop it otherwise.
 */
static int restore_check_group(const struct restore *s, pid_t pid, struct error *err)
{
	pid_t *pids = NULL;
	size_t n = 0;
	bool found = false;
	int r;

	r = cgroup_pids(s->group_fd, true, &pids, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		found |= pids[i] == pid;
	free(pids);
	if (r < 0 || found)
		return r;
	return error_refuse(err, ERROR_FAULT, "criu has not put process %d into the cgroup %s",
			    (int)pid, s->c->cgroup);
}

static int restore_notify(void *data, const struct criu_answer *a, int fd, struct error *err)
{
	struct restore *s = data;
	int r;

	if (str_eq(a->script, "orphan-pts-master"))
		return restore_terminal(s, fd, err);
	if (str_eq(a->script, "setup-namespaces"))
		return restore_hooks(s, a->notified, err);
	if (!str_eq(a->script, "post-restore"))
		return 0;
	r = restore_check_group(s, a->notified, err);
	return r < 0 ? r : container_set_process(s->c, a->notified, err);
}

/* ---- the work ---- */

static int restore_check(const struct restore *s, struct error *err)
{
	const struct oci_config *config = s->c->config;
	bool has_mounts = false;

	if (!config->process)
		return error_field(err, ERROR_INVALID, "process", "is missing");
	for (size_t i = 0; i < config->os->n_namespaces; i++)
		has_mounts |= str_eq(config->os->namespaces[i].type, "mount") &&
			      str_empty(config->os->namespaces[i].path);
	if (!has_mounts)
		return error_field(err, ERROR_UNSUPPORTED, "linux.namespaces",
				   "a container without a mount namespace of its own cannot be "
				   "restored");
	if (!config->process->terminal.value && s->o->console_socket)
		return error_refuse(err, ERROR_INVALID,
				    "--console-socket: process.terminal is not set");
	if (config->process->terminal.value && s->o->detached && !s->o->console_socket)
		return error_refuse(err, ERROR_INVALID, "process.terminal: needs --console-socket");
	if ((args_value(s->args, "lsm-profile") || args_value(s->args, "lsm-mount-context")) &&
	    s->criu.version < CRIU_VERSION_LSM)
		return error_refuse(err, ERROR_PRECONDITION,
				    "--lsm-profile and --lsm-mount-context need criu %d.%d",
				    CRIU_VERSION_LSM / 10000, CRIU_VERSION_LSM / 100 % 100);
	return 0;
}

/* A directory for criu to find the root at. */
static int restore_place(struct restore *s, struct error *err)
{
	_cleanup_str_ char *top = realpath(s->oci->root, NULL);

	s->root = top ? str_format("%s/%s/" ROOT_NAME, top, s->c->id) : NULL;
	if (!s->root)
		return error_set(err, top ? -ENOMEM : -errno, "find --root");
	return sysio_mkdirat(s->c->dir_fd, ROOT_NAME, 0700) < 0
		       ? error_set(err, -errno, "make %s", s->root)
		       : 0;
}

/* In the namespace beside: the root, and once more the directories of criu, which mounts in them.
 */
static int restore_mount(struct restore *s, struct error *err)
{
	_cleanup_fd_ int fd = given_copy_tree(s->c->rootfs);

	if (fd < 0)
		return error_set(err, fd, "root.path: open %s", s->c->rootfs);
	if (sysio_move_mount(fd, "", AT_FDCWD, s->root, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_set(err, -errno, "mount the root on %s", s->root);
	image_done(&s->image);
	return image_open(&s->image, s->args, LOG_NAME, false, err);
}

static int restore_options(struct restore *s, struct error *err)
{
	struct criu_options *o = &s->options;
	char *group = arena_printf(&s->c->arena, "/%s", s->c->cgroup);
	int r;

	if (!group)
		return error_set(err, -ENOMEM, "name the cgroup");
	r = image_options(o, &s->image, s->args, err);
	if (r == 0)
		r = outside_find(&s->outside, s->c, s->image.images_fd, err);
	if (r < 0)
		return r;
	outside_fill(&s->outside, o);
	o->root = s->root;
	o->sibling = true;
	o->evasive_devices = true;
	o->lsm_profile = args_value(s->args, "lsm-profile");
	o->lsm_mount_context = args_value(s->args, "lsm-mount-context");
	if (o->groups != CRIU_GROUPS_IGNORE)
		o->group_root = group;
	return 0;
}

static int restore_criu(struct restore *s, pid_t *ret, struct error *err)
{
	struct criu_job job = {
		.type = CRIU_RESTORE,
		.options = &s->options,
		.what = "restore the container",
		.has_streams = true,
		.group_fd = -1,
		.notify = restore_notify,
		.data = s,
	};
	int r;

	r = restore_mount(s, err);
	if (r == 0)
		r = restore_options(s, err);
	if (r < 0)
		return r;
	job.log = s->image.log;
	job.keep_fds = s->outside.keep_fds;
	job.n_keep_fds = s->outside.n_keep_fds;
	if (s->options.groups == CRIU_GROUPS_IGNORE)
		job.group_fd = s->group_fd;
	return criu_run(&s->criu, &job, ret, err);
}

static int restore_run(struct restore *s, struct launched *ret, struct error *err)
{
	struct error back = ERROR_INIT;
	pid_t pid = 0;
	int r;

	r = restore_children(s->c, &s->children, err);
	if (r < 0)
		return r;
	r = aside_enter(&s->aside, err);
	if (r == 0)
		r = restore_criu(s, &pid, err);
	if (s->aside.beside_fd >= 0 && aside_leave(&s->aside, &back) < 0)
		return r < 0 ? r : error_copy(err, &back);
	if (r < 0)
		return r;
	if (pid <= 0 || pid != s->c->pid)
		return error_refuse(err, ERROR_FAULT,
				    "criu says of two processes that they are the first");
	ret->pid = pid;
	ret->pidfd = pidfd_of(pid);
	return ret->pidfd < 0 ? error_set(err, ret->pidfd, "open process %d", (int)pid) : 0;
}

static int restore_make(struct restore *s, struct launched *ret, struct error *err)
{
	int r;

	r = restore_check(s, err);
	if (r < 0)
		return r;
	s->group_fd = group_make(s->c, s->oci->systemd_cgroup, err);
	if (s->group_fd < 0)
		return s->group_fd;
	r = group_confine(s->c, s->group_fd, err);
	if (r < 0)
		return r;
	r = outside_make_places(s->c, err);
	if (r == 0)
		r = restore_place(s, err);
	if (r == 0)
		r = restore_run(s, ret, err);
	if (r == 0)
		r = launch_write_pid_file(s->o->pid_file, ret->pid, err);
	if (r < 0)
		return r;
	/* Nothing is mounted there: that was beside. */
	if (sysio_unlinkat(s->c->dir_fd, ROOT_NAME, AT_REMOVEDIR) < 0)
		report_warning("remove %s: %s", s->root, strerror(errno));
	ret->master_fd = TAKE_FD(s->pty.master_fd);
	return 0;
}

static void restore_undo(const struct restore *s)
{
	struct error undo = ERROR_INIT;

	restore_end_children(s);
	if (group_remove(s->c, &undo) < 0)
		report_warning("%s", error_text(&undo));
	if (s->hooked) {
		_cleanup_str_ char *state = container_state_text(s->c, CONTAINER_STOPPED, 0);

		if (state)
			hooks_run_all(s->c->config, OCI_HOOK_POSTSTOP, state);
	}
	undo = (struct error)ERROR_INIT;
	if (container_forget(s->c, &undo) < 0)
		report_warning("%s", error_text(&undo));
}

static int restore_container(struct restore *s, struct launched *ret, struct error *err)
{
	int r;

	r = criu_open(&s->criu, err);
	if (r == 0)
		r = image_open(&s->image, s->args, LOG_NAME, false, err);
	if (r == 0)
		r = container_make(s->c, s->oci->root, s->args->operands[0], err);
	if (r < 0)
		return r;
	r = container_set_bundle(s->c, args_value(s->args, "bundle") ?: ".", err);
	if (r == 0)
		r = restore_make(s, ret, err);
	if (r < 0)
		restore_undo(s);
	return r;
}

int oci_restore(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_(launched_done) struct launched l = LAUNCHED_INIT;
	const struct launch_options o = {
		.detached = args_flag(args, "detach"),
		.console_socket = args_value(args, "console-socket"),
		.pid_file = args_value(args, "pid-file"),
	};
	_cleanup_(restore_done) struct restore s = {
		.oci = oci,
		.c = &c,
		.o = &o,
		.args = args,
		.image = IMAGE_INIT,
		.aside = ASIDE_INIT,
		.criu = CRIU_INIT,
		.outside = OUTSIDE_INIT,
		.pty = ISOLATE_PTY_INIT,
		.group_fd = -1,
	};
	int r;

	if (!o.detached)
		terminal_block_signals();
	r = restore_container(&s, &l, err);
	if (r < 0)
		return r;
	return o.detached ? EXIT_SUCCESS : container_stay(&c, &l, false, err);
}
