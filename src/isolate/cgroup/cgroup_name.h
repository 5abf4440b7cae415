/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CGROUP_NAME_H
#define NACRE_ISOLATE_CGROUP_NAME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"

/*
 * Groups that are made before anybody knows whose they will be. A cgroup cannot be renamed, and a
 * process cannot be moved into another without a grace period of RCU: so the directory of such a
 * group has a number, "cell.+7", and what it is called comes as an attribute of it when it is
 * known. Names of the house have no plus in them.
 *
 * The attribute is in the "trusted" space: neither a container nor whom a group was handed to can
 * read or write it. It is the kernel's, and so outlives whoever wrote it, as the group does.
 */
#define CGROUP_NUMBERED "+"
#define CGROUP_DIR_SIZE (NAME_MAX + 1)

/* Makes the next one below parent_fd, "PREFIX+N", and opens it: *number is where the search begins,
 * and then the number. As cgroup_make(). */
int cgroup_make_numbered(int parent_fd, const char *prefix, unsigned *number,
			 char ret_dir[CGROUP_DIR_SIZE], struct error *err);
/* Names a group, once. -EPERM or -EOPNOTSUPP where that cannot be done. */
int cgroup_set_name(int dir_fd, const char *name);
/* The number of a directory "PREFIX+N"; 0: it has none. */
unsigned cgroup_number(const char *dir);
/* The directory of the group with that name below parent_fd: the name itself, or the numbered one
 * that was given it. -ENOENT.
 * It looks at each numbered group where none has the name itself: what knows the number
 * (container_status.cell_group) does not ask. */
int cgroup_find_name(int parent_fd, const char *name, char ret_dir[CGROUP_DIR_SIZE]);
/* The path of a group below base_fd, "GROUP/FIRST/SECOND", where the last two are names (second
 * NULL or "": it ends before); one that is not there stands as it is. -ENAMETOOLONG. */
int cgroup_find_below(int base_fd, const char *group, const char *first, const char *second,
		      char *ret, size_t size);
/* Calls fn for each numbered group below parent_fd that has no name yet. -EIO and the like: for
 * those that were found until then. */
int cgroup_each_nameless(int parent_fd, void (*fn)(void *userdata, const char *dir),
			 void *userdata);

#endif
