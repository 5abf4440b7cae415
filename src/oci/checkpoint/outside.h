/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_OUTSIDE_H
#define NACRE_OCI_OUTSIDE_H

#include "base/log/error.h"
#include "oci/launch/container.h"
#include "wire/message/criu_rpc.h"

/*
 * The resources of a container that are not its own, by names under which criu leaves it out of an
 * image and finds it again when it restores: binds of the host's files, the mounts that hide masked
 * files, the files and pipes that are the first process's streams, network and pid namespaces that
 * were joined. `checkpoint` and `restore` agree on those names: that of a bind is its destination
 * in config.json, that of a stream goes through descriptors.json, beside criu's own images.
 */

#define OUTSIDE_STREAMS 3
#define OUTSIDE_KEEP_MAX 2

/* Everything is in the container's arena, except for the descriptors. */
struct outside {
	struct criu_pair *mounts;
	const char **externals;
	struct criu_pair *joins;
	struct criu_descriptor *inherited;
	size_t n_mounts, n_externals, n_joins, n_inherited;
	const char *streams[OUTSIDE_STREAMS]; /* "" for one of the container's own */
	int keep_fds[OUTSIDE_KEEP_MAX];       /* for criu, from 4 on */
	size_t n_keep_fds;
};

#define OUTSIDE_INIT                                                                               \
	{                                                                                          \
		.keep_fds = { -1, -1 }                                                             \
	}

void outside_done(struct outside *o);

/* Of a container that lives: mounts by where they are, streams, external namespaces. */
int outside_look(struct outside *o, struct container *c, struct error *err);
/* Of one that is to be restored: mounts by where they come from, namespaces by descriptor or path.
 * Its streams are those of this process. */
int outside_find(struct outside *o, struct container *c, int images_fd, struct error *err);

/* Writes o->streams to descriptors.json in the directory of the images. */
int outside_write_streams(const struct outside *o, int images_fd, struct error *err);

/* Fills in what criu is told of it. */
void outside_fill(const struct outside *o, struct criu_options *options);

/* Makes in the root what is missing of the places where mounts go. */
int outside_make_places(struct container *c, struct error *err);

#endif
