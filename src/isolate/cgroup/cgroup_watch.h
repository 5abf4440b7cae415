/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CGROUP_WATCH_H
#define NACRE_ISOLATE_CGROUP_WATCH_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * The kernel's notifications about a cgroup: cgroup.events ("populated", "frozen"), memory.events
 * ("oom_kill", ...), pids.events, as descriptors to wait for. A watch becomes readable with each
 * change of its file and until it is read, and so is a new one: for poll(), epoll or a loop. It
 * takes no inotify instance, of which a user has few.
 */
struct cgroup_watch {
	int file_fd;
	int poll_fd; /* readable after a change */
};

#define CGROUP_WATCH_INIT                                                                          \
	{                                                                                          \
		.file_fd = -1, .poll_fd = -1                                                       \
	}

/* -ENOENT where the group has no such file (its controller is off). */
int cgroup_watch_open(struct cgroup_watch *ret, int dir_fd, const char *file, struct error *err);
void cgroup_watch_close(struct cgroup_watch *w);
/* The number behind `key`; poll_fd is quiet until the next change. -ENOENT where the file has no
 * such line, -ENODEV once the group is gone. */
int cgroup_watch_read(struct cgroup_watch *w, const char *key, uint64_t *ret);

/* Waits until `key` of the file is `value`. -ETIMEDOUT; -ENODEV as above. Blocks: not for a loop's
 * thread. */
int cgroup_wait(int dir_fd, const char *file, const char *key, uint64_t value, int timeout_ms);

/* Stops (thaw: continues) every process in the group and below, and waits until the kernel says so:
 * ERROR_DEADLINE where that takes longer. A freeze that fails is taken back. Thawed is not running
 * where a group above is frozen, which is ERROR_PRECONDITION. */
int cgroup_freeze(int dir_fd, int timeout_ms, struct error *err);
int cgroup_thaw(int dir_fd, int timeout_ms, struct error *err);
/* Whether it is frozen, by itself or by a group above it. */
int cgroup_frozen(int dir_fd);

#endif
