/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/launch_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "oci/config/given.h"
#include "oci/launch/hooks.h"
#include "oci/launch/message.h"

static int child_tell(int fd, char byte, struct error *err)
{
	int r = message_send(fd, &byte, 1, NULL, 0);

	return r < 0 ? error_set(err, r, "talk to the runtime") : 0;
}

/* Whatever the runtime sends with the byte. Without a runtime there is no container either. */
static int child_hear(int fd, char expected, int fds[MESSAGE_FDS_MAX], struct error *err)
{
	char byte = 0;
	int r = message_receive(fd, &byte, fds);

	if (r > 0 && byte == expected)
		return 0;
	message_close(fds);
	return r < 0 ? error_set(err, r, "hear the runtime")
		     : error_refuse(err, ERROR_ABORTED, "the runtime has ended");
}

static int child_hooks(const struct launch_child_plan *p, enum oci_hook_kind kind,
		       enum container_status status, struct error *err)
{
	_cleanup_str_ char *state = NULL;

	if (!hooks_has(p->container->config, kind))
		return 0;
	state = container_state_text(p->container, status, getpid());
	if (!state)
		return error_set(err, -ENOMEM, "write the state");
	return hooks_run(p->container->config, kind, state, p->plan, err);
}

static int child_mounted(const struct isolate_at *at, const struct launch_child_plan *p,
			 struct error *err)
{
	int fds[MESSAGE_FDS_MAX];
	int r;

	if (!p->stop_mounted)
		return 0;
	r = child_tell(at->fd, LAUNCH_MOUNTED, err);
	if (r == 0)
		r = child_hear(at->fd, LAUNCH_GO, fds, err);
	if (r < 0)
		return r;
	message_close(fds);
	return child_hooks(p, OCI_HOOK_CREATE_CONTAINER, CONTAINER_CREATING, err);
}

/* ---- the program, before `create` says that all is well ---- */

/* 0, or why it cannot be executed. */
static int program_look(const char *path)
{
	_cleanup_fd_ int fd = given_open(path, O_PATH, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) < 0 ? -errno : 0;
}

static bool program_is_there(const char *dir, size_t len, const char *name)
{
	char path[4096];

	return str_printf(path, sizeof(path), "%.*s%s%s", (int)len, dir, len ? "/" : "", name) >
		       0 &&
	       program_look(path) == 0;
}

/*
 * Should: find out while `create` is still there to tell it that the program cannot be executed.
 * Must not: refuse what the exec would take; that looks again by itself.
 */
static int child_check_program(const struct isolate_plan *plan, struct error *err)
{
	const char *name = plan->argv[0], *path = strv_env_get(plan->env, "PATH");

	int r;

	if (strchr(name, '/')) {
		r = program_look(name);
		return r < 0 ? error_set(err, r, "execute %s", name) : 0;
	}
	for (const char *at = path ? path : "/bin:/usr/bin"; at;) {
		size_t len = strcspn(at, ":");

		if (program_is_there(at, len, name))
			return 0;
		at = at[len] ? at + len + 1 : NULL;
	}
	return error_refuse(err, ERROR_NOT_FOUND,
			    "executable file \"%s\" not found in $PATH: No such file or directory",
			    name);
}

/* ---- waiting for start ---- */

/* 1 once a `start` has said go, 0 where it went away before that. */
static int child_serve(int fd, const int baton[LAUNCH_WAIT_FDS], struct error *err)
{
	int fds[MESSAGE_FDS_MAX];
	char byte = LAUNCH_READY;

	if (message_send(fd, &byte, 1, &baton[1], LAUNCH_WAIT_FDS - 1) < 0)
		return 0;
	if (message_receive(fd, &byte, fds) <= 0)
		return 0;
	message_close(fds);
	return byte == LAUNCH_GO ? 1 : error_refuse(err, ERROR_FAULT, "start said something else");
}

static int child_wait(const struct isolate_at *at, struct error *err)
{
	int fds[MESSAGE_FDS_MAX];
	int r;

	r = child_tell(at->fd, LAUNCH_READY, err);
	if (r == 0)
		r = child_hear(at->fd, LAUNCH_WAIT, fds, err);
	if (r < 0)
		return r;
	for (r = 0; r == 0;) {
		_cleanup_fd_ int fd = accept4(fds[0], NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			r = error_set(err, -errno, "wait for start");
		else if (fd >= 0)
			r = child_serve(fd, fds, err);
	}
	message_close(fds);
	return r < 0 ? r : 0;
}

static int child_ready(const struct isolate_at *at, const struct launch_child_plan *p,
		       struct error *err)
{
	int fds[MESSAGE_FDS_MAX];
	int r = 0;

	if (p->held) {
		r = child_hear(at->fd, LAUNCH_GO, fds, err);
		if (r == 0)
			message_close(fds);
	}
	if (p->stop_ready) {
		r = child_check_program(p->plan, err);
		if (r == 0)
			r = child_wait(at, err);
	}
	return r < 0 ? r : child_hooks(p, OCI_HOOK_START_CONTAINER, CONTAINER_CREATED, err);
}

int launch_child_at(const struct isolate_at *at, struct error *err)
{
	const struct launch_child_plan *p = at->data;

	if (at->point == ISOLATE_POINT_MOUNTED)
		return child_mounted(at, p, err);
	if (at->point == ISOLATE_POINT_READY)
		return child_ready(at, p, err);
	return 0;
}
