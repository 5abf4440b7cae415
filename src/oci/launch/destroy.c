/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/destroy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "oci/cmd/report.h"
#include "oci/launch/group.h"
#include "oci/launch/hooks.h"
#include "oci/launch/launch.h"
#include "oci/launch/terminal.h"

#define END_MS 10000

/* The first process, which somebody may have moved out of the group. */
static int destroy_process(const struct container *c, struct error *err)
{
	_cleanup_fd_ int pidfd = container_pidfd(c);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int r;

	if (pidfd < 0)
		return 0;
	r = pidfd_kill(pidfd, SIGKILL);
	if (r < 0 && r != -ESRCH)
		return error_set(err, r, "kill process %d", (int)c->pid);
	do
		r = poll(&p, 1, END_MS);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0
		     : error_set(err, -ETIMEDOUT, "wait for the end of process %d", (int)c->pid);
}

int container_destroy(struct container *c, struct error *err)
{
	_cleanup_str_ char *state = container_state_text(c, CONTAINER_STOPPED, 0);
	int r;

	r = group_remove(c, err);
	if (r == 0)
		r = destroy_process(c, err);
	if (r == 0)
		r = container_forget(c, err);
	if (r < 0)
		return r;
	if (!c->config || !state)
		return 0;
	hooks_run_all(c->config, OCI_HOOK_POSTSTOP, state);
	return 0;
}

int container_stay(struct container *c, struct launched *l, bool keep, struct error *err)
{
	struct error gone = ERROR_INIT;
	int status;

	(void)flock(c->dir_fd, LOCK_UN);
	status = terminal_stay(l->pidfd, &l->master_fd, err);
	if (!keep && container_destroy(c, &gone) < 0)
		report_warning("%s", error_text(&gone));
	return status;
}
