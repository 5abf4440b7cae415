/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_HUSH_H
#define NACRE_IMAGE_HUSH_H

struct error;

/*
 * Two namespaces with nothing in them, which the helpers that unpack are in together: one of the
 * network, and one of mounts, with an empty read-only root. To make and to end them costs more than
 * to unpack a small layer. Unpacked content has no way from one helper to another through them: a
 * helper can make no socket, can mount nothing, and names nothing by a path from the root
 * (fetch/job/sandbox.c); everything else that it has is its own.
 */
struct hush {
	int net_fd, mount_fd; /* -1: not made */
};

#define HUSH_INIT                                                                                  \
	{                                                                                          \
		.net_fd = -1, .mount_fd = -1                                                       \
	}

/* Makes them where they are not there. */
int hush_open(struct hush *h, struct error *err);
/* Closes the descriptors; processes in the namespaces stay there. */
void hush_close(struct hush *h);

#endif
