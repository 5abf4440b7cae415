/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_LAUNCH_OPTIONS_H
#define NACRE_OCI_LAUNCH_OPTIONS_H

#include "base/arena.h"
#include "isolate/plan.h"
#include "isolate/pty.h"
#include "oci/launch.h"

/* What the options of `create`, `run` and `exec` mean for the plan of a process, and what is told
 * to the caller about it. Of the launch units only. */

int launch_plan_fds(struct isolate_plan *plan, const struct launch_options *o, struct arena *arena,
		    struct error *err);
int launch_plan_terminal(struct isolate_plan *plan, struct isolate_pty *pty,
			 const struct oci_process *p, const struct launch_options *o,
			 struct error *err);
int launch_write_pid_file(const char *path, pid_t pid, struct error *err);
int launch_send_pidfd(const char *path, int pidfd, struct error *err);

#endif
