/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_COPY_H
#define NACRE_KEEPER_COPY_H

#include <stdint.h>

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

/*
 * Trees of files over a call, in the messages of nacre.v1: for whoever can open the root of the
 * container, the node's daemon or the keeper in a machine.
 */

struct copy_call;
struct pool;
struct rpc_call;

#define COPIES_MAX 16U

struct isolate_ids;

struct copies {
	struct pool *pool; /* not owned; NULL is fine while there are none */
	unsigned n;        /* under way */
	struct copy_call *first;
	/* Whether `need` more bytes may be written for a container; NULL: as many as there is room
	 * for. */
	int (*room)(void *userdata, uint64_t need, struct error *err);
	/* Told once for each copy that was to begin, also where that failed: nothing of it is open
	 * any more. Or NULL. */
	void (*gone)(void *userdata, const char *id);
	void *userdata;
};

/* Behind the end of all calls and of the pool: frees those that waited for a thread only to close
 * what they had. */
void copies_done(struct copies *all);

/* Whether another one may begin: ERROR_INVALID names `path`, ERROR_EXHAUSTED. */
int copies_check(const struct copies *all, const char *path, struct error *err);
/* The root that another copy of the same container reads or writes, as a descriptor of its own; -1
 * where there is none. */
int copies_root(const struct copies *all, const char *id);
/* Both end the call later, or return an error. root_fd: of the container's root (O_PATH is enough),
 * taken over also where this fails. id: of the container, for copies_root(). q: path and what is
 * said of it; its target is not looked at. ids: of the user namespace that the root is seen from;
 * NULL: none, or it shows what is on the disk. first: the first message of the stream. */
int copy_from_begin(struct copies *all, struct rpc_call *call, int root_fd, const char *id,
		    const struct isolate_ids *ids, const Nacre__V1__CopyFromRequest *q,
		    struct error *err);
int copy_to_begin(struct copies *all, struct rpc_call *call, int root_fd, const char *id,
		  const struct isolate_ids *ids, const Nacre__V1__CopyToRequest *first,
		  struct error *err);

#endif
