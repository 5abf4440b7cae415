/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEP_H
#define NACRE_ISOLATE_STEP_H

#include "base/log/error.h"
#include "isolate/plan/plan.h"

/*
 * The state that the steps of a new process share; private to this area. The spawner fills it
 * before the clone, and the child, which has its own copy of the memory, works with it.
 *
 * A step runs in a child that may have been cloned from a process with threads: locks may be held
 * for ever, and libc believes that the threads are still there. So a step must not allocate, must
 * not use stdio streams, and sets credentials by the raw call (libc's would wait for the other
 * threads).
 */
struct isolate_steps {
	const struct isolate_plan *plan;

	/* From the spawner; -1 where the plan does not need it. */
	int report_fd;
	int proc_fd;      /* a private mount of /proc, of the spawner's pid namespace */
	int parent_pidfd; /* of the spawner, for the death signal */
	int null_fd;      /* /dev/null, verified */
	int give_fd;      /* where the root comes from, with root_later */
	int shm_fd;       /* detached mount for /dev/shm */
	int place_fd;     /* the plan's root_place, opened by the child */
	int mount_ns_fd;  /* where a tree goes that is not for the namespace it is made in */
	/* A byte comes when the ids of a new user namespace are mapped; and its other end, which is
	 * the spawner's. */
	int sync_fd, sync_write_fd;
	uint64_t ignored;  /* signals whose action may be "ignore": bit 0 is signal 1 */
	uint64_t bounding; /* no other capability can be in the child's bounding set */
	bool oom_is_set;   /* the spawner has the plan's score, and the child with it */
	bool keeps_proc;   /* proc_fd is needed behind "close the spawner's descriptors" */
	bool user_joined;  /* the process was born in the user namespace that the plan joins */
	/* Of a tree: detached mounts of the plan's mounts, and of its devices; each -1 where there
	 * is nothing to be bound. NULL for any other root. */
	int *mount_fds, *device_fds;
	uint64_t *mount_ids; /* of those that are attached by now, for the child */
	size_t pts_index;    /* which of them is the plan's pts_fd, if that is there */
	int null_mount_fd;   /* a detached mount of the host's /dev/null, to hide files with */
	/* Room for all descriptors that stay open; NULL where the steps' own is enough. */
	int *fds_room;

	/* Of the plan; "place the descriptors" moves them. */
	int exec_fd;
	int at_fd;
	int stdio[3];
	int keep_fds[ISOLATE_KEEP_FDS_MAX];

	/* Made by the child: the root as a mount in its own namespace. */
	int root_fd;
	int exit_hint; /* the exit code of a shell if the present step failed */
};

/* The message on report_fd where a step has failed; small enough to be written at once. */
struct isolate_report {
	int exit_hint;
	struct error error;
};

/* The most descriptors that stay open, without those of a tree. */
#define ISOLATE_STEPS_FDS (3 + ISOLATE_KEEP_FDS_MAX + ISOLATE_NS_COUNT + 16)

#define ISOLATE_EXIT_FAILED 125
#define ISOLATE_EXIT_NOT_EXECUTABLE 126
#define ISOLATE_EXIT_NOT_FOUND 127

#endif
