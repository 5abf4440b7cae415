/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_MOUNT_H
#define NACRE_ISOLATE_MOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"

struct mount_attr;

/*
 * Mounts by descriptor, for this area and image/helper/helper_namespaces.h: made detached, then put
 * on a target that is a descriptor and at most one name below it. No link is followed at the
 * target. Nothing allocates. In trees that this process has made itself, where there are no foreign
 * links, mount_below() does in two system calls what takes eight otherwise.
 */

struct mount_option {
	const char *key;   /* NULL ends a list */
	const char *value; /* NULL: a flag */
};

/* A new instance of a file system as a detached mount. attrs: MOUNT_ATTR_*. */
int mount_new(const char *fs, const struct mount_option *options, unsigned attrs,
	      struct error *err);
/* A detached copy of the mount at dir_fd/name ("" for dir_fd itself), without what is mounted
 * below. */
int mount_copy(int dir_fd, const char *name, struct error *err);
/* Sets attributes on this mount alone. */
int mount_restrict(int mount_fd, unsigned attrs, struct error *err);
/* The same with what is mounted below. */
int mount_copy_tree(int dir_fd, const char *name, struct error *err);
/* Changes a mount by mount_setattr(); below: with all mounts below this one. 0 also where attr asks
 * for no change. */
int mount_change(int mount_fd, const struct mount_attr *attr, bool below, struct error *err);
/*
 * A new instance of a file system with what a mount(8) would be told. source: NULL for none;
 * options: "size=1m,mode=755", or NULL; context: a label of SELinux, or NULL.
 */
int mount_new_from(const char *fs, const char *source, const char *options, const char *context,
		   unsigned attrs, struct error *err);
/* The number of the mount that a descriptor lies in; it keeps it when it is attached. */
int mount_id(int fd, uint64_t *ret, struct error *err);
/* Whether two descriptors lie in the same mount: 1 or 0. */
int mount_is_same(int a_fd, int b_fd, struct error *err);
int mount_attach(int mount_fd, int dir_fd, const char *name, struct error *err);
/* Takes a mount away from where it is attached; it is the working directory then. */
int mount_leave(int mount_fd, struct error *err);
/* Goes to root_fd, attached already: it is the root of this process (or thread) and of its mount
 * namespace, and what was the root is there no more. */
int mount_pivot(int root_fd, struct error *err);
/* The same with a detached mount, in a mount namespace of one's own: nothing else is left there. */
int mount_take_all(int mount_fd, struct error *err);

/* A new instance of a file system on dir_fd/name. Leaves dir_fd as the working directory. flags:
 * MS_*; options: "mode=0755,size=1m", or NULL. */
int mount_below(int dir_fd, const char *name, const char *fs, unsigned long flags,
		const char *options, struct error *err);

#endif
