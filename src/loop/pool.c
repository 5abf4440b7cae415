/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/process/thread.h"

/*
 * One lock over two queues: works wait in `queued`, a thread takes one, runs it without the lock
 * and puts it into `finished`; an eventfd then wakes the loop, which calls done(). The eventfd is
 * written and drained under the lock, so it is readable exactly while there is something to look
 * at. A thread that ends says so the same way, since only a joined thread gives its stack back.
 */

#define POOL_IDLE_SEC 5
#define POOL_RETRY (50 * NSEC_PER_MSEC)

enum pool_slot_state { POOL_SLOT_FREE, POOL_SLOT_RUNNING, POOL_SLOT_ENDED };

struct pool_slot {
	struct pool *pool;
	pthread_t thread; /* to be joined unless FREE */
	enum pool_slot_state state;
	bool renewed; /* takes no further work */
};

struct pool_queue {
	struct pool_work *first, *last;
};

struct pool {
	struct loop_fd wake;
	struct loop_timer retry; /* no thread could be made */
	int wake_fd;
	unsigned n_max;
	bool has_lock;
	struct pool *next_left; /* pool_leave() */

	pthread_mutex_t lock; /* over all that follows */
	pthread_cond_t work;
	struct pool_queue queued, finished;
	unsigned n_queued;
	unsigned n_threads; /* RUNNING */
	unsigned n_idle;    /* of these, waiting */
	bool stopping;
	struct pool_slot slots[];
};

static void pool_queue_push(struct pool_queue *q, struct pool_work *work)
{
	work->next = NULL;
	if (q->last)
		q->last->next = work;
	else
		q->first = work;
	q->last = work;
}

static struct pool_work *pool_queue_pop(struct pool_queue *q)
{
	struct pool_work *work = q->first;

	if (!work)
		return NULL;
	q->first = work->next;
	if (!q->first)
		q->last = NULL;
	work->next = NULL;
	return work;
}

static void pool_wake(struct pool *p)
{
	static const uint64_t one = 1;
	ssize_t n;

	/* It fails only where the counter is full: then the loop is awake. */
	n = write(p->wake_fd, &one, sizeof(one));
	assert(n == (ssize_t)sizeof(one) || errno == EAGAIN);
}

/* The next work; NULL where the thread is to end: told to, or idle for too long, or renewed. */
static struct pool_work *pool_take(struct pool *p, const struct pool_slot *slot)
{
	struct timespec until;
	struct pool_work *work;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += POOL_IDLE_SEC;
	p->n_idle++;
	while (!p->queued.first && !p->stopping && !slot->renewed && r == 0)
		r = pthread_cond_timedwait(&p->work, &p->lock, &until);
	p->n_idle--;
	if (slot->renewed)
		return NULL;
	work = pool_queue_pop(&p->queued);
	if (work)
		p->n_queued--;
	return work;
}

static void *pool_thread(void *arg)
{
	struct pool_slot *slot = arg;
	struct pool *p = slot->pool;

	(void)pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pool_work *work = pool_take(p, slot);

		if (!work)
			break;
		(void)pthread_mutex_unlock(&p->lock);
		work->run(work);
		(void)pthread_mutex_lock(&p->lock);
		pool_queue_push(&p->finished, work);
		pool_wake(p);
	}
	slot->state = POOL_SLOT_ENDED;
	p->n_threads--;
	pool_wake(p);
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void pool_join(struct pool_slot *slot)
{
	int r = pthread_join(slot->thread, NULL);

	assert(r == 0);
	slot->state = POOL_SLOT_FREE;
}

/* With the lock held: makes a thread where there is more work than threads that wait for it. */
static void pool_grow(struct pool *p)
{
	struct pool_slot *slot = NULL;
	int r;

	if (p->n_queued <= p->n_idle || p->n_threads >= p->n_max)
		return;
	for (unsigned i = 0; i < p->n_max && !slot; i++)
		if (p->slots[i].state != POOL_SLOT_RUNNING)
			slot = &p->slots[i];
	assert(slot);
	/* A thread that has ended takes the lock no more. */
	if (slot->state == POOL_SLOT_ENDED)
		pool_join(slot);
	slot->state = POOL_SLOT_RUNNING;
	slot->renewed = false;
	p->n_threads++;
	r = thread_start(&slot->thread, pool_thread, slot);
	if (r == 0)
		return;
	slot->state = POOL_SLOT_FREE;
	p->n_threads--;
	log_debug("cannot make a thread", LOG_INT("code", r));
	if (p->n_threads == 0)
		loop_timer_set(&p->retry, POOL_RETRY);
}

static void pool_retry(struct loop_timer *timer)
{
	struct pool *p = container_of(timer, struct pool, retry);

	(void)pthread_mutex_lock(&p->lock);
	pool_grow(p);
	(void)pthread_mutex_unlock(&p->lock);
}

/* One work each turn, since its done() may free the pool. */
static void pool_event(struct loop_fd *fd, unsigned events)
{
	struct pool *p = container_of(fd, struct pool, wake);
	struct pool_work *work;
	uint64_t count;

	(void)pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->n_max; i++)
		if (p->slots[i].state == POOL_SLOT_ENDED)
			pool_join(&p->slots[i]);
	/* A thread that was renewed leaves what it would have taken. */
	pool_grow(p);
	work = pool_queue_pop(&p->finished);
	if (!p->finished.first) {
		ssize_t n = read(p->wake_fd, &count, sizeof(count));

		assert(n == (ssize_t)sizeof(count) || errno == EAGAIN);
	}
	(void)pthread_mutex_unlock(&p->lock);

	if (!work)
		return;
	work->busy = false;
	work->done(work);
}

void pool_renew(struct pool *p)
{
	(void)pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->n_max; i++)
		p->slots[i].renewed = p->slots[i].state == POOL_SLOT_RUNNING;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
}

static int pool_lock_init(struct pool *p)
{
	pthread_condattr_t attr;
	int r;

	r = pthread_mutex_init(&p->lock, NULL);
	if (r != 0)
		return -r;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r = pthread_cond_init(&p->work, &attr);
	(void)pthread_condattr_destroy(&attr);
	if (r != 0) {
		(void)pthread_mutex_destroy(&p->lock);
		return -r;
	}
	p->has_lock = true;
	return 0;
}

int pool_new(struct pool **ret, struct loop *l, unsigned n_max)
{
	_cleanup_(pool_freep) struct pool *p = NULL;
	int r;

	assert(n_max > 0);
	p = calloc(1, sizeof(*p) + n_max * sizeof(p->slots[0]));
	if (!p)
		return -ENOMEM;
	p->n_max = n_max;
	for (unsigned i = 0; i < n_max; i++)
		p->slots[i].pool = p;
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0)
		return -errno;
	r = pool_lock_init(p);
	if (r < 0)
		return r;
	loop_timer_init(&p->retry, l, pool_retry);
	loop_fd_init(&p->wake, l, p->wake_fd, LOOP_READ, pool_event);
	*ret = TAKE_PTR(p);
	return 0;
}

static void pool_stop(struct pool *p)
{
	struct pool_work *work;

	(void)pthread_mutex_lock(&p->lock);
	p->stopping = true;
	for (work = pool_queue_pop(&p->queued); work; work = pool_queue_pop(&p->queued))
		work->busy = false;
	p->n_queued = 0;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->lock);

	/* Only this thread makes RUNNING slots, so none appears behind this walk. */
	for (unsigned i = 0; i < p->n_max; i++) {
		enum pool_slot_state state;

		(void)pthread_mutex_lock(&p->lock);
		state = p->slots[i].state;
		(void)pthread_mutex_unlock(&p->lock);
		if (state != POOL_SLOT_FREE)
			pool_join(&p->slots[i]);
	}

	for (work = pool_queue_pop(&p->finished); work; work = pool_queue_pop(&p->finished)) {
		work->busy = false;
		work->done(work);
	}
}

struct pool *pool_free(struct pool *p)
{
	if (!p)
		return NULL;
	if (p->has_lock) {
		pool_stop(p);
		(void)pthread_cond_destroy(&p->work);
		(void)pthread_mutex_destroy(&p->lock);
	}
	loop_fd_done(&p->wake);
	loop_timer_done(&p->retry);
	(void)fd_close(p->wake_fd);
	free(p);
	return NULL;
}

/* Their threads may still look at them, and have works in hand: kept, so not lost. */
static struct pool *pools_left;

struct pool *pool_leave(struct pool *p)
{
	struct pool_work *work;
	bool busy;

	(void)pthread_mutex_lock(&p->lock);
	p->stopping = true;
	for (work = pool_queue_pop(&p->queued); work; work = pool_queue_pop(&p->queued))
		work->busy = false;
	p->n_queued = 0;
	busy = p->n_threads > p->n_idle;
	(void)pthread_cond_broadcast(&p->work);
	(void)pthread_mutex_unlock(&p->lock);
	if (!busy)
		return pool_free(p);
	loop_fd_done(&p->wake);
	loop_timer_done(&p->retry);
	p->next_left = pools_left;
	pools_left = p;
	return NULL;
}

void pool_submit(struct pool *p, struct pool_work *work)
{
	assert(!work->busy);
	(void)pthread_mutex_lock(&p->lock);
	if (!p->stopping) {
		work->busy = true;
		pool_queue_push(&p->queued, work);
		p->n_queued++;
		pool_grow(p);
		(void)pthread_cond_signal(&p->work);
	}
	(void)pthread_mutex_unlock(&p->lock);
}

struct pool_load pool_load(struct pool *p)
{
	struct pool_load load;

	(void)pthread_mutex_lock(&p->lock);
	load = (struct pool_load){ p->n_queued, p->n_threads - p->n_idle };
	(void)pthread_mutex_unlock(&p->lock);
	return load;
}
