/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_PROCESS_H
#define NACRE_ISOLATE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The processes of a cgroup and of what is below it, as /proc shows them. A process is opened once
 * and then looked at by descriptor: what is told is of one process, and of one that lives in that
 * group.
 */

#define PROCESS_COMMAND_MAX 256
/* Levels of groups below the first that are looked into: a container may make its own. */
#define PROCESS_DEPTH_MAX 16

struct process {
	pid_t pid, inner_pid, parent;
	uid_t uid;
	char state;
	uint64_t cpu_us;
	uint64_t memory; /* resident, bytes */
	char command[PROCESS_COMMAND_MAX];
};

/* A negative result of fn ends the walk and is returned. cgroup_path: of cgroup_fd, below the root
 * of the v2 hierarchy, with its '/' in front; path: of the group below it. A group that is not
 * there has no processes. Not for the loop's thread. */
int processes_each(int cgroup_fd, const char *cgroup_path, const char *path,
		   int (*fn)(void *userdata, const struct process *p), void *userdata);

/* What no terminal should see of the command becomes '?'. */
void process_clean_command(struct process *p);

/* A descriptor of /proc/PID, and with it the promise that the process lives in the group (or below
 * it) whose whole path is given; -ESRCH where it does not. */
int process_open(pid_t pid, const char *group);
/* O_PATH descriptor of the root directory of such a process. */
int process_open_root(pid_t pid, const char *group);

#endif
