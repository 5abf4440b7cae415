/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_KEEPER_CONFIG_H
#define NACRE_CELL_KEEPER_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

/* The configuration of a keeper (keeper.h). */

struct container_view;
struct loop;

struct keeper_config {
	struct loop *loop;
	int cgroup_fd; /* directory of the layer's cgroup */
	int proc_fd;   /* a /proc of the keeper's own pid namespace */
	/* Directory, in the keeper's mount namespace, below which cells of their own get a tmpfs
	 * for /dev/shm each. */
	int shm_parent_fd;
	/* The layer's own /dev/shm for cells that share the instance; -1: there are none such. */
	int shm_fd;
	/* It was made ahead of need, for a pod: its first container will share the layer's
	 * namespaces, and what it has is made at once. */
	bool ahead;
	/* Mount namespace for CONTAINER_PROCESS; -1: the keeper's own. */
	int host_mount_ns_fd;
	/* Every change of a container's state, also of those that a call has just caused; `removed`
	 * once it was forgotten. */
	void (*on_container)(void *userdata, const struct container_view *view, bool removed);
	/* Whether a child of this process belongs to somebody else who reaps it (nested keepers);
	 * may be NULL: there are none. */
	bool (*is_other_child)(void *userdata, pid_t pid);
	void *userdata;
};

/* That a start has come to its end: keeper_start(). */
typedef void (*keeper_started_fn)(void *userdata, const struct container_view *view);

#endif
