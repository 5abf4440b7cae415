/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_ATTACH_H
#define NACRE_CELL_ATTACH_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "cell/output/input.h"
#include "cell/output/ring.h"
#include "cell/spec.h"
#include "loop/loop.h"

/*
 * The clients attached to a container's output: its ring, and a position in that for each. While
 * one of them could be overtaken, or none has come and the output is kept for the first, the pump
 * is held; so a reader loses nothing, and nothing is stored for it. A client that takes nothing for
 * ATTACH_PATIENCE while the container waits for it is ended with an error.
 */

struct keeper_attach;
struct pump;

struct attach_point {
	struct loop *loop;
	struct pump *pump;
	struct ring ring;
	struct list attached;
	size_t n_attached;
	struct loop_timer timer; /* until when the output is kept for the first */
	struct loop_defer settled;
	bool awaited;                        /* for the first */
	bool ended;                          /* all of the output is in the ring */
	bool abandoned;                      /* nobody is waited for any more */
	const struct container_status *over; /* how it ended; NULL: not yet */
	/* After attach_point_settle() has said false: that would be different now. */
	void (*on_settled)(struct attach_point *p);
};

void attach_point_init(struct attach_point *p, struct loop *l, struct pump *pump,
		       void (*on_settled)(struct attach_point *p));
/* The program was spawned. */
void attach_point_start(struct attach_point *p, bool hold);
/* All of its output has been read: whether everybody who reads it has taken it. */
bool attach_point_settle(struct attach_point *p);
/* Nobody is to be waited for. */
void attach_point_abandon(struct attach_point *p);
/* It is over; status lives as long as the point. Those who are attached are told in their turn. */
void attach_point_close(struct attach_point *p, const struct container_status *status);
static inline bool attach_point_busy(const struct attach_point *p)
{
	return p->awaited || p->n_attached > 0;
}
/* Another program has left its members, and maybe what is in the ring. */
void attach_point_resume(struct attach_point *p);
/* With `tell`, those who are left hear that it was removed; else nobody hears anything. */
void attach_point_done(struct attach_point *p, bool tell);

/* input: to write to, or NULL. ERROR_EXHAUSTED past CONTAINER_ATTACH_MAX. No callback before this
 * has returned. */
int attach_new(struct keeper_attach **ret, struct attach_point *p, struct input *input, bool replay,
	       const struct keeper_attach_ops *ops, void *userdata, struct error *err);
/* As input_write(), but waits for its turn behind the writes of others. One at a time. */
int attach_write(struct keeper_attach *a, const void *data, size_t len, bool close,
		 input_done_fn done, struct error *err);
/* Leaves; calls nothing back. May come from within a callback. */
struct keeper_attach *attach_free(struct keeper_attach *a);
void attach_pause(struct keeper_attach *a, bool paused);
struct attach_point *attach_point_of(const struct keeper_attach *a);

#endif
