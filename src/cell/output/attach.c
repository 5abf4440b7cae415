/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/attach.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "cell/output/pump.h"

/* A client that is further behind than this could be overtaken by the next piece. */
#define ATTACH_BEHIND_MAX (RING_MAX - PUMP_READ_MAX - RING_HEAD)

struct keeper_attach {
	struct list link;
	struct attach_point *point;
	struct keeper_attach_ops ops;
	void *userdata;
	uint64_t place;  /* in the ring */
	uint64_t passed; /* bytes of output before that place */
	bool paused;
	bool pressed; /* `patience` runs */
	struct loop_timer patience;
	struct loop_defer turn;
	bool *gone; /* set where it is freed from within a callback */

	struct input *input; /* or NULL */
	struct input_waiter writer;
	struct buf data; /* of the write that waits for its turn */
	bool closing;
	input_done_fn written;
};

/* ---- who holds what back ---- */

static bool attach_lags(const struct keeper_attach *a)
{
	const struct attach_point *p = a->point;

	return p->ended ? a->place < p->ring.tail : p->ring.tail - a->place > ATTACH_BEHIND_MAX;
}

/* Nobody is pressed while it is us who have not come to tell him yet. */
static void attach_press(struct keeper_attach *a)
{
	bool pressed = a->paused && attach_lags(a) && !a->point->over;

	if (pressed == a->pressed)
		return;
	a->pressed = pressed;
	loop_timer_set(&a->patience, pressed ? ATTACH_PATIENCE : NSEC_NEVER);
}

static bool attach_point_is_behind(const struct attach_point *p)
{
	struct keeper_attach *a;

	if (p->abandoned || p->over)
		return false;
	if (p->awaited && (p->ended || p->ring.tail - p->ring.head > ATTACH_BEHIND_MAX))
		return true;
	list_for_each (a, (struct list *)(uintptr_t)&p->attached, struct keeper_attach, link)
		if (attach_lags(a))
			return true;
	return false;
}

static void attach_point_look(struct attach_point *p)
{
	struct keeper_attach *a;
	bool behind = attach_point_is_behind(p);

	list_for_each (a, &p->attached, struct keeper_attach, link)
		attach_press(a);
	pump_hold(p->pump, behind && !p->ended);
	if (p->ended && !behind && !p->over)
		loop_defer_schedule(&p->settled);
}

/* ---- one who looks ---- */

struct keeper_attach *attach_free(struct keeper_attach *a)
{
	struct attach_point *p;

	if (!a)
		return NULL;
	p = a->point;
	if (a->gone)
		*a->gone = true;
	list_remove(&a->link);
	p->n_attached--;
	loop_timer_done(&a->patience);
	loop_defer_done(&a->turn);
	list_remove(&a->writer.link);
	if (a->input)
		input_disown(a->input, a->userdata);
	buf_done(&a->data);
	free(a);
	attach_point_look(p);
	return NULL;
}

static void attach_fail(struct keeper_attach *a, const struct error *err)
{
	struct keeper_attach_ops ops = a->ops;
	void *userdata = a->userdata;

	attach_free(a);
	ops.on_error(userdata, err);
}

static void attach_impatient(struct loop_timer *timer)
{
	struct keeper_attach *a = container_of(timer, struct keeper_attach, patience);
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_EXHAUSTED,
			   "nothing of the output was taken for %u seconds; the workload goes on "
			   "without waiting for it",
			   (unsigned)(ATTACH_PATIENCE / NSEC_PER_SEC));
	attach_fail(a, &err);
}

/* What was dropped before it was read. */
static void attach_skip(struct keeper_attach *a)
{
	const struct ring *ring = &a->point->ring;
	uint64_t n = ring->dropped - a->passed;

	if (a->place > ring->head || (a->place == ring->head && n == 0))
		return;
	a->place = ring->head;
	a->passed = ring->dropped;
	if (n > 0)
		a->ops.on_skipped(a->userdata, n);
}

/* One piece; the last callback may free a. */
static void attach_take(struct keeper_attach *a, const bool *gone)
{
	const struct ring *ring = &a->point->ring;
	uint64_t place = a->place, next = ring_next(ring, place);
	size_t len = (size_t)(next - place) - RING_HEAD, done = 0;

	a->place = next;
	a->passed += len;
	while (done < len && !*gone) {
		const uint8_t *data;
		int stream;
		size_t n = ring_get(ring, place, done, &stream, &data);

		done += n;
		a->ops.on_output(a->userdata, stream, data, n);
	}
}

static void attach_end(struct keeper_attach *a)
{
	const struct container_status *status = a->point->over;
	struct keeper_attach_ops ops = a->ops;
	void *userdata = a->userdata;

	attach_free(a);
	ops.on_exit(userdata, status);
}

static void attach_turn(struct loop_defer *defer)
{
	struct keeper_attach *a = container_of(defer, struct keeper_attach, turn);
	struct attach_point *p = a->point;
	bool gone = false;

	a->gone = &gone;
	attach_skip(a);
	while (!gone && !a->paused && a->place < p->ring.tail) {
		attach_take(a, &gone);
		/* It has taken something: its time begins anew. */
		if (!gone && a->pressed)
			loop_timer_set(&a->patience, ATTACH_PATIENCE);
	}
	if (gone)
		return;
	a->gone = NULL;
	if (p->over && a->place == p->ring.tail)
		attach_end(a);
	else
		attach_point_look(p);
}

void attach_pause(struct keeper_attach *a, bool paused)
{
	a->paused = paused;
	if (!paused)
		loop_defer_schedule(&a->turn);
}

/* ---- what is typed ---- */

static void attach_write_now(struct input_waiter *w)
{
	struct keeper_attach *a = container_of(w, struct keeper_attach, writer);
	struct error err = ERROR_INIT;
	int r;

	r = input_write(a->input, buf_data(&a->data), a->data.len, a->closing, a->written,
			a->userdata, &err);
	buf_done(&a->data);
	if (r < 0)
		a->written(a->userdata, &err);
}

int attach_write(struct keeper_attach *a, const void *data, size_t len, bool close,
		 input_done_fn done, struct error *err)
{
	if (!a->input)
		return error_field(err, ERROR_INVALID, "input", "stdin was not asked for");
	if (!input_busy(a->input))
		return input_write(a->input, data, len, close, done, a->userdata, err);
	if (!list_empty(&a->writer.link) || len > CONTAINER_STDIN_MAX)
		return error_field(err, ERROR_EXHAUSTED, "input.data",
				   "more than %zu bytes at once", CONTAINER_STDIN_MAX);
	if (buf_add(&a->data, data, len) < 0)
		return error_set(err, -ENOMEM, "copy data for the standard input");
	a->closing = close;
	a->written = done;
	input_wait(a->input, &a->writer);
	return 0;
}

int attach_new(struct keeper_attach **ret, struct attach_point *p, struct input *input, bool replay,
	       const struct keeper_attach_ops *ops, void *userdata, struct error *err)
{
	struct keeper_attach *a;

	if (p->n_attached >= CONTAINER_ATTACH_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%d are attached already",
				    CONTAINER_ATTACH_MAX);
	a = malloc(sizeof(*a));
	if (!a)
		return error_set(err, -ENOMEM, "attach");
	*a = (struct keeper_attach){
		.point = p, .ops = *ops, .userdata = userdata, .input = input
	};
	a->writer.fn = attach_write_now;
	list_init(&a->writer.link);
	if (!replay) {
		a->place = p->ring.tail;
		a->passed = p->ring.added;
	}
	list_init(&a->link);
	loop_timer_init(&a->patience, p->loop, attach_impatient);
	loop_defer_init(&a->turn, p->loop, attach_turn);
	list_add_tail(&p->attached, &a->link);
	p->n_attached++;
	p->awaited = false;
	loop_timer_stop(&p->timer);
	loop_defer_schedule(&a->turn);
	*ret = a;
	return 0;
}

struct attach_point *attach_point_of(const struct keeper_attach *a)
{
	return a->point;
}

/* ---- the container's side ---- */

static void attach_point_tee(void *userdata, int stream, const void *data, size_t len)
{
	struct attach_point *p = userdata;
	struct keeper_attach *a;

	ring_add(&p->ring, stream, data, len);
	list_for_each (a, &p->attached, struct keeper_attach, link)
		if (!a->paused)
			loop_defer_schedule(&a->turn);
	attach_point_look(p);
}

/* Nobody has come. */
static void attach_point_timeout(struct loop_timer *timer)
{
	struct attach_point *p = container_of(timer, struct attach_point, timer);

	p->awaited = false;
	attach_point_look(p);
}

static void attach_point_defer(struct loop_defer *defer)
{
	struct attach_point *p = container_of(defer, struct attach_point, settled);

	p->on_settled(p);
}

void attach_point_init(struct attach_point *p, struct loop *l, struct pump *pump,
		       void (*on_settled)(struct attach_point *p))
{
	*p = (struct attach_point){ .loop = l, .pump = pump, .on_settled = on_settled };
	list_init(&p->attached);
	loop_timer_init(&p->timer, l, attach_point_timeout);
	loop_defer_init(&p->settled, l, attach_point_defer);
	pump_tee(pump, attach_point_tee, p);
}

void attach_point_start(struct attach_point *p, bool hold)
{
	p->awaited = hold && list_empty(&p->attached) && !p->abandoned;
	if (p->awaited)
		loop_timer_set(&p->timer, ATTACH_PATIENCE);
}

bool attach_point_settle(struct attach_point *p)
{
	struct keeper_attach *a;

	if (p->ended)
		return !attach_point_is_behind(p);
	p->ended = true;
	list_for_each (a, &p->attached, struct keeper_attach, link)
		attach_press(a);
	return !attach_point_is_behind(p);
}

void attach_point_abandon(struct attach_point *p)
{
	p->abandoned = true;
	p->awaited = false;
	attach_point_look(p);
}

void attach_point_close(struct attach_point *p, const struct container_status *status)
{
	struct keeper_attach *a;

	p->over = status;
	p->awaited = false;
	loop_timer_stop(&p->timer);
	list_for_each (a, &p->attached, struct keeper_attach, link) {
		attach_press(a);
		loop_defer_schedule(&a->turn);
	}
}

void attach_point_resume(struct attach_point *p)
{
	p->ring.dropped = p->ring.added - ring_held(&p->ring);
}

void attach_point_done(struct attach_point *p, bool tell)
{
	struct keeper_attach *a;
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_ABORTED, "the container was removed");
	p->abandoned = true;
	for (a = list_first(&p->attached, struct keeper_attach, link); a;
	     a = list_first(&p->attached, struct keeper_attach, link)) {
		if (tell)
			attach_fail(a, &err);
		else
			attach_free(a);
	}
	loop_timer_done(&p->timer);
	loop_defer_done(&p->settled);
	ring_done(&p->ring);
}
