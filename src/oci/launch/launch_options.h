/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_LAUNCH_OPTIONS_H
#define NACRE_OCI_LAUNCH_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "isolate/plan/plan.h"
#include "isolate/spawn/pty.h"
#include "isolate/spawn/spawn.h"
#include "wire/document/oci_config.h"

struct launch_options {
	bool wait;     /* for `start`: the process stops short of executing the program */
	bool detached; /* nobody stays: a terminal needs a console socket */
	bool no_pivot, no_new_keyring, systemd_cgroup;
	/* From 3 on, open in this process: what LISTEN_FDS says, and --preserve-fds. */
	unsigned n_listen_fds, n_preserve_fds;
	const char *console_socket; /* NULL: the caller gets the terminal */
	const char *pid_file, *pidfd_socket;
};

/* How many descriptors the environment and --preserve-fds (NULL: none) pass on, checked to be open:
 * call it before anything else is opened. */
int launch_count_fds(struct launch_options *o, const char *preserve, struct error *err);

/* Functions of the launch units only: they apply the options of `create`, `run` and `exec` to the
 * plan of a process, and tell the caller about the process. */

int launch_plan_fds(struct isolate_plan *plan, const struct launch_options *o, struct arena *arena,
		    struct error *err);
int launch_plan_terminal(struct isolate_plan *plan, struct isolate_pty *pty,
			 const struct oci_process *p, const struct launch_options *o,
			 struct error *err);
/* Kills and reaps a process that nobody will hear of, whatever it is at. */
void launch_end(const struct isolate_child *child);
int launch_write_pid_file(const char *path, pid_t pid, struct error *err);
int launch_send_pidfd(const char *path, int pidfd, struct error *err);

#endif
