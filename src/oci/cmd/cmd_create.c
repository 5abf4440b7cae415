/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/spawn/spawn.h"
#include "oci/cmd/handlers.h"
#include "oci/cmd/report.h"
#include "oci/launch/container.h"
#include "oci/launch/destroy.h"
#include "oci/launch/hooks.h"
#include "oci/launch/launch.h"
#include "oci/launch/launch_options.h"
#include "oci/launch/protect.h"
#include "oci/launch/terminal.h"

static int create_options(struct launch_options *o, const struct oci *oci, const struct args *args,
			  struct error *err)
{
	*o = (struct launch_options){
		.systemd_cgroup = oci->systemd_cgroup,
		.no_pivot = args_flag(args, "no-pivot"),
		.no_new_keyring = args_flag(args, "no-new-keyring"),
		.console_socket = args_value(args, "console-socket"),
		.pid_file = args_value(args, "pid-file"),
		.pidfd_socket = args_value(args, "pidfd-socket"),
	};
	return launch_count_fds(o, args_value(args, "preserve-fds"), err);
}

/* Whether others than the container's own processes will see ours in its pid namespace. */
static bool create_is_watched(const struct oci_config *config)
{
	for (size_t i = 0; i < config->os->n_namespaces; i++)
		if (str_eq(config->os->namespaces[i].type, "pid"))
			return !str_empty(config->os->namespaces[i].path);
	return false;
}

static int create_bundle(const struct oci *oci, struct container *c, const struct args *args,
			 struct error *err)
{
	struct error forget = ERROR_INIT;
	int r;

	r = container_set_bundle(c, args_value(args, "bundle") ?: ".", err);
	if (r < 0 || !create_is_watched(c->config))
		return r;
	r = protect_is_needed(err);
	if (r <= 0)
		return r;
	/* The directory goes before this program does, and comes back with the next. */
	r = container_forget(c, &forget);
	return r < 0 ? error_copy(err, &forget) : protect_program(oci->argv, err);
}

static int create_container(const struct oci *oci, struct container *c, const struct args *args,
			    const struct launch_options *o, struct launched *l, struct error *err)
{
	struct error forget = ERROR_INIT;
	int r;

	r = container_make(c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	r = create_bundle(oci, c, args, err);
	if (r == 0)
		r = launch_container(c, o, l, err);
	if (r < 0 && container_forget(c, &forget) < 0)
		report_warning("%s", error_text(&forget));
	return r;
}

int oci_create(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_(launched_done) struct launched l = LAUNCHED_INIT;
	struct launch_options o;
	int r;

	r = create_options(&o, oci, args, err);
	if (r < 0)
		return r;
	o.wait = true;
	r = create_container(oci, &c, args, &o, &l, err);
	return r < 0 ? r : EXIT_SUCCESS;
}

/* The program runs. A hook that fails now ends it. */
static int start_hooks(const struct container *c, struct error *err)
{
	_cleanup_str_ char *state = NULL;
	_cleanup_fd_ int pidfd = -1;
	int r;

	if (!hooks_has(c->config, OCI_HOOK_POSTSTART))
		return 0;
	state = container_state_text(c, CONTAINER_RUNNING, c->pid);
	r = state ? hooks_run(c->config, OCI_HOOK_POSTSTART, state, NULL, err)
		  : error_set(err, -ENOMEM, "write the state");
	if (r < 0) {
		pidfd = container_pidfd(c);
		if (pidfd >= 0)
			(void)pidfd_kill(pidfd, SIGKILL);
	}
	return r;
}

int oci_start(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	enum container_status status;
	int r;

	r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	status = container_status(&c);
	if (status != CONTAINER_CREATED)
		return error_refuse(err, ERROR_PRECONDITION,
				    "cannot start a container that is not created: \"%s\" is %s",
				    c.id, container_status_name(status));
	r = launch_start(&c, err);
	if (r == 0)
		r = start_hooks(&c, err);
	return r < 0 ? r : EXIT_SUCCESS;
}

int oci_run(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_(launched_done) struct launched l = LAUNCHED_INIT;
	bool detach = args_flag(args, "detach");
	struct launch_options o;
	int r;

	r = create_options(&o, oci, args, err);
	if (r < 0)
		return r;
	o.detached = detach;
	if (!detach)
		terminal_block_signals();
	r = create_container(oci, &c, args, &o, &l, err);
	if (r < 0)
		return r;
	r = start_hooks(&c, err);
	if (r < 0) {
		(void)container_destroy(&c, NULL);
		return r;
	}
	return detach ? EXIT_SUCCESS : container_stay(&c, &l, args_flag(args, "keep"), err);
}
