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

/* Replaces control characters in the command by '?', and all bytes above 0x7f where it is not
 * UTF-8. */
void process_clean_command(struct process *p);

/* A descriptor of /proc/PID, and with it the promise that the process lives in the group (or below
 * it) whose whole path is given; -ESRCH where it does not. */
int process_open(pid_t pid, const char *group);
/* The user and groups of such a process, as ids of this process's user namespace. -ESRCH, or -E2BIG
 * where it has more groups. */
#define PROCESS_GROUPS_MAX 256
struct process_identity {
	uid_t uid;
	gid_t gid;
	gid_t groups[PROCESS_GROUPS_MAX];
	size_t n_groups;
};
int process_identity(pid_t pid, const char *group, struct process_identity *ret);
/* The same of a child that was not reaped: its pid is no other process's. */
int process_identity_of_child(pid_t pid, struct process_identity *ret);
/* O_PATH descriptor of the root directory of such a process. */
int process_open_root(pid_t pid, const char *group);

#endif
