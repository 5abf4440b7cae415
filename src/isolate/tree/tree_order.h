/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_ORDER_H
#define NACRE_ISOLATE_TREE_ORDER_H

#include "base/log/error.h"

/*
 * Private to this area. What the spawner has copied for a tree is older than what the child mounts,
 * and since Linux 6.8 mounts are listed (/proc/self/mountinfo) by their age; but the order of the
 * plan is what was asked for. So a copy that comes behind a new file system is copied once more,
 * which the kernel allows only with what is mounted somewhere: on a tmpfs on the /proc of the old
 * root, in a namespace that nobody else is in, for as long as the mounts are made.
 */
struct tree_order {
	int aside_fd; /* the tmpfs */
};

#define TREE_ORDER_INIT                                                                            \
	{                                                                                          \
		.aside_fd = -1                                                                     \
	}

/* The younger copy, detached; mount_fd is used up, but not closed. Not for what has files open. */
int tree_order_renew(struct tree_order *o, int mount_fd, struct error *err);
/* Takes the tmpfs away with all that is on it. Changes the working directory. */
int tree_order_end(struct tree_order *o, struct error *err);
/* Closes the descriptor, where something has failed. */
void tree_order_done(struct tree_order *o);

#endif
