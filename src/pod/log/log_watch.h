/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_LOG_WATCH_H
#define NACRE_POD_LOG_WATCH_H

#include "base/memory/list.h"
#include "base/memory/map.h"
#include "base/text/id.h"
#include "loop/loop.h"

/*
 * Tells when logs grow or are rotated: one descriptor of inotify for all (the host allows a user
 * 128 of them), and one watch for each workload's directory that somebody looks at.
 */

struct log_watched;
typedef void (*log_watched_fn)(struct log_watched *w);

/* A value: a watcher of one log. */
struct log_watched {
	struct list link; /* of those who look into the same directory */
	struct log_dir *dir;
	const char *file; /* name in the directory */
	log_watched_fn fn;
};

struct log_watch {
	struct loop *loop;
	int logs_fd; /* not owned */
	int fd;
	struct loop_fd source;
	struct map by_id, by_wd;
};

void log_watch_init(struct log_watch *w, struct loop *l, int logs_fd);
void log_watch_done(struct log_watch *w);

/* From now on fn is called after each change, perhaps more often. file lives as long. 0, -ENOENT
 * where there is no such directory, -EMFILE, -ENOSPC (the host's limits) or -ENOMEM. */
int log_watch_add(struct log_watch *w, struct log_watched *watched, const char *id,
		  const char *file);
/* Also of one that was not added, if its link was initialised. */
void log_watch_remove(struct log_watch *w, struct log_watched *watched);

#endif
