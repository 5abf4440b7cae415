/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_VOLUMES_CALL_H
#define NACRE_RUNTIME_VOLUMES_CALL_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/loop.h"
#include "pod/storage/volume.h"

/*
 * The paths of the node that a call mounts, its volumes (made where they are missing, filled by
 * their first user), and the logs and seccomp profiles that it names, all opened on a thread: its
 * paths are the client's, and may lead to a file system that does not answer. The call waits for
 * them so long; a thread that the kernel does not give back is left alone, and takes the place of
 * one that could look others up. Profiles then become filters, one after the other
 * (image/helper/profile.h). A value in the service.
 */

struct image_store;
struct pool;
struct rpc_call;
struct volumes;
struct workload_spec;
struct workloads;

#define VOLUMES_PATIENCE (10 * NSEC_PER_SEC)
#define VOLUMES_THREADS 16
/* Calls whose volumes are being opened, or are waited for no more. */
#define VOLUMES_CALLS_MAX 64

struct volumes_calls {
	struct loop *loop;
	struct pool *pool;
	struct volume_guard guard;
	struct volumes *volumes;
	struct image_store *images;
	struct workloads *workloads;
	int secrets_fd, sets_fd; /* volumes/secrets.h; the owner's */
	struct list list;
	struct loop_defer again; /* for calls that wait for a volume to be filled */
	size_t n;
};

int volumes_calls_init(struct volumes_calls *all, struct loop *l, const struct volume_guard *guard);
/* Before the first call. */
void volumes_calls_know(struct volumes_calls *all, struct volumes *volumes,
			struct image_store *images, struct workloads *workloads, int secrets_fd,
			int sets_fd);
/* Waits for no thread. */
void volumes_calls_done(struct volumes_calls *all);

/* Detached mounts in the order of the containers and their mounts, behind those of a container its
 * log, behind that its profile (no descriptor), in the place of which the filter counts, and then
 * its variables that are secrets, of which the text counts. That of a mount is where its set of
 * secrets lies on the node; NULL: it has none. */
struct volumes_opened {
	const int *fds;
	const char *const *ids; /* of the volumes of the node and sets of secrets; else NULL */
	const struct container_filter *filters;
	char *const *texts;
	size_t n;
};

/*
 * 0: opened, or on the way: go_on is called when they are there, with descriptors that it may copy;
 * where that fails, takes too long, or the call is cancelled, the call has been ended instead. 1:
 * there is nothing to open. ERROR_EXHAUSTED: too many calls wait. Filling a volume may take its
 * time: the call waits for as long as it likes. An anonymous volume that was made for the call and
 * that no workload has behind go_on is removed.
 */
int volumes_call_start(struct volumes_calls *all, struct rpc_call *call,
		       const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes_opened *opened),
		       void *userdata, struct error *err);
/* The same for who is no call: `fail` is called in the place of go_on where nothing could be
 * opened, unless volumes_calls_done() comes first. */
int volumes_open_start(struct volumes_calls *all, const struct workload_spec *spec,
		       void (*go_on)(void *userdata, const struct volumes_opened *opened),
		       void (*fail)(void *userdata, const struct error *err), void *userdata,
		       struct error *err);
#endif
