/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_VIEW_H
#define NACRE_ISOLATE_TREE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/log/error.h"
#include "isolate/steps/step.h"

/*
 * Which mounts a tree has so far, by descriptor; private to this area.
 *
 * The descriptor of a system mount (isolate_mount_is_system()) stays open until the tree is
 * complete, and what is done below its target (masks, read-only paths, devices, links, further
 * mounts) begins at that descriptor: a name on the way to it that somebody exchanges meanwhile
 * changes nothing.
 */

/* Of a container: mounts that are there before those of the list. */
enum tree_part { TREE_PROC, TREE_DEV, TREE_SYS, TREE_PART_COUNT };

struct tree_view {
	const struct isolate_steps *s;
	const int *part_fds; /* TREE_PART_COUNT; NULL: a tree, which has what the list says */
	uint64_t part_ids[TREE_PART_COUNT];
	uint64_t root_id;
	struct stat root;
	size_t n_attached; /* of the plan's mounts */
};

/* Where a path begins: at the system mount that its text leads into, or at the root. */
struct tree_base {
	int fd;           /* not the caller's to close */
	uint64_t id;      /* of the mount */
	const char *rest; /* of the path, below fd; "." for fd itself */
	bool is_root;
	bool is_new; /* a file system that this process has made: nobody else is in it yet */
};

/* s->root_fd is attached. part_fds must outlive the view. */
int tree_view_open(struct tree_view *ret, const struct isolate_steps *s, const int *part_fds,
		   struct error *err);
bool tree_is_system(const struct isolate_mount *m);
/* clean: tree_path_clean(); ret->rest points into it. */
void tree_view_base(const struct tree_view *v, const char *clean, struct tree_base *ret);

/* Whether a directory below a base lies in a mount of the list that somebody else can write to: 1
 * or 0. */
int tree_view_is_foreign(const struct tree_view *v, const struct tree_base *base, int dir_fd,
			 struct error *err);
/* Whether a file is, or lies in, one of the parts of a container, but for /dev/shm itself: 1 or 0.
 */
int tree_view_is_in_part(const struct tree_view *v, int fd, struct error *err);
/* Whether it is the root itself: 1 or 0. */
int tree_view_is_root(const struct tree_view *v, int fd, struct error *err);

#endif
