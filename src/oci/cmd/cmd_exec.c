/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "oci/cmd/handlers.h"
#include "oci/config/given.h"
#include "oci/launch/container.h"
#include "oci/launch/launch.h"
#include "oci/launch/launch_options.h"
#include "oci/launch/protect.h"
#include "oci/launch/terminal.h"

/* ---- the process ---- */

static int exec_read(struct oci_process **ret, struct arena *arena, const char *path,
		     struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = given_read(path, OCI_CONFIG_SIZE_MAX, &b);
	if (r < 0)
		return error_set(err, r, "read %s", path);
	r = oci_process_read(ret, arena, buf_data(&b), b.len, err);
	return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}

/* All values of an option behind the ones that are there. */
static const char **exec_list(struct arena *arena, const char *const *list, size_t n,
			      const struct args *args, const char *option, size_t *ret_n)
{
	const char **to = arena_zalloc(arena, n + args->n_given + 1, sizeof(*to));
	size_t pos = 0;

	for (size_t i = 0; to && i < n; i++)
		to[i] = list[i];
	while (to) {
		const char *value = args_next(args, option, &pos);

		if (!value)
			break;
		to[n++] = value;
	}
	*ret_n = n;
	return to;
}

/* The variables of the container, with those of -e in the place of their like. */
static int exec_env(struct oci_process *p, struct arena *arena, const struct args *args,
		    struct error *err)
{
	size_t n = 0, n_before = p->n_env, n_to = 0;
	const char **list = exec_list(arena, p->env, p->n_env, args, "env", &n);

	if (!list)
		return error_set(err, -ENOMEM, "make the environment");
	for (size_t i = 0; i < n; i++) {
		const char *equals = strchr(list[i], '=');
		size_t len = equals ? (size_t)(equals - list[i]) + 1 : 0, at = 0;

		if (i >= n_before && len < 2)
			return error_refuse(err, ERROR_INVALID, "--env: \"%s\" is not NAME=VALUE",
					    list[i]);
		while (at < n_to && (len == 0 || strncmp(list[at], list[i], len) != 0))
			at++;
		list[at] = list[i];
		n_to += at == n_to;
	}
	list[n_to] = NULL;
	p->env = list;
	p->n_env = n_to;
	return 0;
}

static int exec_id(const char *option, const char *text, uint64_t *ret, struct error *err)
{
	/* 4294967295 is the kernel's "no id". */
	if (parse_u64(text, 0, UINT32_MAX - 1, ret) == 0)
		return 0;
	return error_refuse(err, ERROR_INVALID, "%s: \"%.60s\" is no number from 0 to %u", option,
			    text, UINT32_MAX - 1);
}

/* "UID" or "UID:GID", all of it numbers (security.md A22). */
static int exec_user(struct oci_user *u, const char *text, struct error *err)
{
	const char *colon = strchr(text, ':');
	char uid[16];
	int r;

	if (str_printf(uid, sizeof(uid), "%.*s", (int)(colon ? colon - text : 64), text) < 0)
		return error_refuse(err, ERROR_INVALID, "--user: \"%.60s\" is not UID[:GID]", text);
	r = exec_id("--user", uid, &u->uid.value, err);
	if (r == 0 && colon)
		r = exec_id("--user", colon + 1, &u->gid.value, err);
	u->uid.set = u->gid.set = true;
	return r;
}

static int exec_ids(struct oci_process *p, struct arena *arena, const struct args *args,
		    struct error *err)
{
	struct oci_user *u = arena_zalloc(arena, 1, sizeof(*u));
	uint64_t *groups;
	size_t pos = 0;
	int r;

	if (!u)
		return error_set(err, -ENOMEM, "make the user");
	if (p->user)
		*u = *p->user;
	p->user = u;
	r = args_value(args, "user") ? exec_user(u, args_value(args, "user"), err) : 0;
	groups = arena_zalloc(arena, u->n_groups + args->n_given + 1, sizeof(*groups));
	if (r == 0 && !groups)
		r = error_set(err, -ENOMEM, "make the groups");
	for (size_t i = 0; r == 0 && i < u->n_groups; i++)
		groups[i] = u->groups[i];
	while (r == 0) {
		const char *gid = args_next(args, "additional-gids", &pos);

		if (!gid)
			break;
		r = exec_id("--additional-gids", gid, &groups[u->n_groups++], err);
	}
	u->groups = groups;
	return r;
}

/* As the field has it: into all sets but the ambient one, which needs the inheritable one. */
static int exec_caps(struct oci_process *p, struct arena *arena, const struct args *args,
		     struct error *err)
{
	static const struct oci_caps none = { .bounding = NULL };
	struct oci_caps *caps = arena_memdup(arena, p->caps ? p->caps : &none, sizeof(none));

	if (!caps)
		return error_set(err, -ENOMEM, "make the capabilities");
	caps->bounding =
		exec_list(arena, caps->bounding, caps->n_bounding, args, "cap", &caps->n_bounding);
	caps->effective = exec_list(arena, caps->effective, caps->n_effective, args, "cap",
				    &caps->n_effective);
	caps->permitted = exec_list(arena, caps->permitted, caps->n_permitted, args, "cap",
				    &caps->n_permitted);
	if (!caps->bounding || !caps->effective || !caps->permitted)
		return error_set(err, -ENOMEM, "make the capabilities");
	p->caps = caps;
	return 0;
}

/* The container's process, changed by the options. */
static int exec_adapt(struct oci_process *p, struct arena *arena, const struct args *args,
		      struct error *err)
{
	const char *cwd = args_value(args, "cwd");
	int r;

	p->args = (const char **)(uintptr_t)(args->operands + 1);
	p->n_args = args->n_operands - 1;
	p->terminal = (struct json_int){ .set = true, .value = args_flag(args, "tty") };
	if (cwd && cwd[0] != '/')
		return error_refuse(err, ERROR_INVALID, "--cwd: \"%.100s\" is not absolute", cwd);
	if (cwd)
		p->cwd = cwd;
	if (args_flag(args, "no-new-privs"))
		p->no_new_privs = (struct json_int){ .set = true, .value = 1 };
	if (args_value(args, "apparmor"))
		p->apparmor = args_value(args, "apparmor");
	if (args_value(args, "process-label"))
		p->selinux = args_value(args, "process-label");
	r = exec_env(p, arena, args, err);
	if (r == 0)
		r = exec_ids(p, arena, args, err);
	return r < 0 ? r : exec_caps(p, arena, args, err);
}

static int exec_process(struct oci_process **ret, struct container *c, const struct args *args,
			struct error *err)
{
	const char *file = args_value(args, "process");
	struct oci_process *p;

	if (file && args->n_operands > 1)
		return error_refuse(err, ERROR_INVALID, "--process or a command, not both");
	if (file)
		return exec_read(ret, &c->arena, file, err);
	if (args->n_operands < 2)
		return error_refuse(err, ERROR_INVALID, "exec needs a command, or --process");
	p = arena_memdup(&c->arena, c->config->process, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "make the process");
	*ret = p;
	return exec_adapt(p, &c->arena, args, err);
}

/* ---- running it ---- */

static int exec_check(const struct container *c, const struct args *args, struct error *err)
{
	enum container_status status = container_status(c);

	if (status == CONTAINER_PAUSED && !args_flag(args, "ignore-paused"))
		return error_refuse(err, ERROR_PRECONDITION,
				    "cannot exec in a paused container: \"%s\"", c->id);
	if (status != CONTAINER_RUNNING && status != CONTAINER_CREATED &&
	    status != CONTAINER_PAUSED)
		return error_refuse(err, ERROR_PRECONDITION,
				    "container not running: cannot exec in \"%s\", which is %s",
				    c->id, container_status_name(status));
	return 0;
}

int oci_exec(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_(launched_done) struct launched l = LAUNCHED_INIT;
	struct launch_options o = {
		.detached = args_flag(args, "detach"),
		.console_socket = args_value(args, "console-socket"),
		.pid_file = args_value(args, "pid-file"),
		.pidfd_socket = args_value(args, "pidfd-socket"),
	};
	struct oci_process *p = NULL;
	int r;

	r = launch_count_fds(&o, args_value(args, "preserve-fds"), err);
	if (r == 0)
		r = container_open(&c, oci->root, args->operands[0], err);
	if (r == 0)
		r = exec_check(&c, args, err);
	if (r == 0)
		r = protect_is_needed(err);
	if (r > 0)
		r = protect_program(oci->argv, err);
	if (r == 0)
		r = exec_process(&p, &c, args, err);
	if (r < 0)
		return r;
	if (p->terminal.value && o.detached && !o.console_socket)
		return error_refuse(err, ERROR_INVALID, "a terminal needs --console-socket");
	if (!o.detached)
		terminal_block_signals();
	r = launch_exec(&c, p, &o, args_value(args, "cgroup"), &l, err);
	if (r < 0 || o.detached)
		return r;
	return terminal_stay(l.pidfd, &l.master_fd, err);
}
