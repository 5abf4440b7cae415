/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_SESSION_H
#define NACRE_CELL_SESSION_H

#include <sys/types.h>

/* The group below a container's own for programs that are started in it once its own takes no
 * process any more (exec.c). */
#define SESSION_GROUP "nacre.exec"

/* SIGKILL to every process of a cgroup, and of SESSION_GROUP below it, that belongs to the session,
 * and to descendants of these that made sessions of their own. One whose parent ended before
 * cannot be told from a program of the container itself, and stays. proc_fd: a /proc of the
 * caller's own pid namespace, in which `session` counts. Processes that fork meanwhile are looked
 * for again, a bounded number of times. */
void session_kill(int proc_fd, int cgroup_fd, pid_t session);

#endif
