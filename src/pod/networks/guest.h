/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_GUEST_H
#define NACRE_POD_GUEST_H

#include "base/memory/list.h"
#include "network/attachment.h"
#include "network/plug.h"
#include "pod/workload/model.h"

/*
 * What the guest of a machine is told of the networks of its pod (network/guest_end.h): all that it
 * was not told before it booted. A network is joined to the machine on a thread, then the keeper in
 * the guest is asked (peer_ops.put_link()). Private to this area.
 *
 * Meanwhile attachment.tells_guest is set, and nobody unplugs it.
 */

struct loop;
struct pool;

struct guests {
	struct loop *loop;
	struct pool *pool; /* one thread, once it is needed; NULL */
	struct list jobs;
};

void guests_init(struct guests *g, struct loop *l);
/* Nobody is told any more. */
void guests_done(struct guests *g);

/* Its guest is to have it, with the default routes if they are there. done follows, with an error
 * where it has not; or why that cannot begin. */
int guest_tell(struct guests *g, struct workload *w, struct attachment *a, plug_fn done,
	       void *userdata, struct error *err);
/* Its guest is to have it no more; done follows, with an error where it could not be asked. */
int guest_take_back(struct guests *g, struct workload *w, struct attachment *a, plug_fn done,
		    void *userdata, struct error *err);

#endif
