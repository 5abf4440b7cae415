/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_HELPER_NAMESPACES_H
#define NACRE_IMAGE_HELPER_NAMESPACES_H

struct error;

/*
 * Two namespaces with nothing in them, which the helpers that unpack are in together: one of the
 * network, and one of mounts, with an empty read-only root. To make and to end them costs more than
 * to unpack a small layer. Unpacked content has no way from one helper to another through them: a
 * helper can make no socket, can mount nothing, and names nothing by a path from the root
 * (fetch/job/sandbox.c); everything else that it has is its own.
 */
struct helper_namespaces {
	int net_fd, mount_fd; /* -1: not made */
};

#define HELPER_NAMESPACES_INIT                                                                     \
	{                                                                                          \
		.net_fd = -1, .mount_fd = -1                                                       \
	}

/* Makes them where they are not there. */
int helper_namespaces_open(struct helper_namespaces *h, struct error *err);
/* Closes the descriptors; processes in the namespaces stay there. */
void helper_namespaces_close(struct helper_namespaces *h);

#endif
