/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "oci/cmd/handlers.h"
#include "oci/config/words.h"
#include "oci/launch/container.h"
#include "oci/launch/destroy.h"

/* Every process of the group. One that ends meanwhile is as good as told. */
static int kill_all(const struct container *c, int sig, struct error *err)
{
	_cleanup_fd_ int group = container_cgroup(c, err);
	pid_t *pids = NULL;
	size_t n = 0;
	int r;

	if (group < 0)
		return group;
	if (sig == SIGKILL) {
		r = cgroup_kill(group);
		return r < 0 ? error_set(err, r, "kill the processes of \"%s\"", c->id) : 0;
	}
	r = cgroup_pids(group, true, &pids, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_fd_ int pidfd = pidfd_of(pids[i]);

		if (pidfd >= 0)
			(void)pidfd_kill(pidfd, sig);
	}
	free(pids);
	return r;
}

int oci_kill(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_fd_ int pidfd = -1;
	int sig = SIGTERM;
	int r;

	r = args->n_operands > 1 ? word_signal(args->operands[1], &sig, err) : 0;
	if (r == 0)
		r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	pidfd = container_pidfd(&c);
	if (args_flag(args, "all") && c.cgroup)
		return kill_all(&c, sig, err);
	if (pidfd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "container not running: \"%s\" is %s",
				    c.id, container_status_name(container_status(&c)));
	r = pidfd_kill(pidfd, sig);
	return r < 0 ? error_set(err, r, "signal process %d of \"%s\"", (int)c.pid, c.id) : 0;
}

int oci_delete(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	bool force = args_flag(args, "force");
	enum container_status status;
	int r;

	r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0 && err->kind == ERROR_NOT_FOUND && force)
		return EXIT_SUCCESS;
	if (r == 0)
		r = container_lock(&c, force, err);
	if (r < 0)
		return r;
	/* What a `create` has done until it let go of the lock. */
	container_done(&c);
	r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return err->kind == ERROR_NOT_FOUND && force ? EXIT_SUCCESS : r;
	status = container_status(&c);
	if (status != CONTAINER_STOPPED && !force)
		return error_refuse(err, ERROR_PRECONDITION,
				    "cannot delete container \"%s\" that is not stopped: %s", c.id,
				    container_status_name(status));
	r = container_destroy(&c, err);
	return r < 0 ? r : EXIT_SUCCESS;
}
