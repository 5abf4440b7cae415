/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"

/*
 * Each source holds a watcher of libev in its `room`, and stops it in its done(): stopping also
 * takes back an event that libev has seen but not handed out yet, so nothing comes after it. Since
 * a callback may free its source, nothing here touches a source after its callback ran, and each
 * callback hands out one event only; sources are level-triggered, so what is left comes in the next
 * turn.
 *
 * Deferred work is ours: a turn runs what is scheduled, waits, runs the callbacks, and then again
 * what these have scheduled. Each pass takes the list as it found it, so work that schedules itself
 * again does not keep descriptors and timers out.
 *
 * libev drops a descriptor from its epoll set late, when a stray event comes for it. Where the open
 * file lives on in another process it notices by the number of its registration and makes its epoll
 * set anew; closing a descriptor right after done() is therefore fine.
 */

#define LOOP_PASSES_MAX 8

struct loop {
	struct ev_loop *ev;
	struct loop_defer defers, last; /* heads */
	unsigned n_passed;              /* how often others went before `last` */
	bool quit;
	int result;
};

_Static_assert(sizeof(struct ev_io) <= sizeof(struct loop_watcher), "room for ev_io");
_Static_assert(sizeof(struct ev_timer) <= sizeof(struct loop_watcher), "room for ev_timer");
_Static_assert(_Alignof(struct ev_io) <= _Alignof(struct loop_watcher), "alignment of ev_io");
_Static_assert(_Alignof(struct ev_timer) <= _Alignof(struct loop_watcher), "alignment of ev_timer");

/*
 * libev comes here where a call that it cannot do without has failed (epoll_wait, or epoll_create
 * while descriptors are short) and tries again when this returns; left alone it would abort. It
 * cannot tell us more, and nobody above can be told, so the one line is written here.
 */
static void loop_syserr(const char *message)
{
	static const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	static unsigned n_seen;
	int saved = errno;

	if (n_seen++ % 1024 == 0)
		log_error("the event loop cannot go on, trying again", LOG_STR("call", message),
			  LOG_STR("err", strerror(saved)));
	(void)nanosleep(&pause, NULL);
}

static void loop_defer_clear(struct loop_defer *head)
{
	head->prev = head;
	head->next = head;
}

int loop_new(struct loop **ret)
{
	_cleanup_(loop_freep) struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	loop_defer_clear(&l->defers);
	loop_defer_clear(&l->last);
	ev_set_syserr_cb(loop_syserr);
	errno = 0;
	l->ev = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
	if (!l->ev)
		return errno ? -errno : -ENOMEM;
	/* One reference of our own: libev does not wait at all while nothing is armed. */
	ev_ref(l->ev);
	*ret = TAKE_PTR(l);
	return 0;
}

struct loop *loop_free(struct loop *l)
{
	if (!l)
		return NULL;
	if (l->ev)
		ev_loop_destroy(l->ev);
	free(l);
	return NULL;
}

/* ---- work for after the current callback ---- */

void loop_defer_init(struct loop_defer *d, struct loop *l, loop_defer_fn fn)
{
	*d = (struct loop_defer){ .loop = l, .fn = fn };
}

static void loop_defer_unlink(struct loop_defer *d)
{
	if (!d->next)
		return;
	d->prev->next = d->next;
	d->next->prev = d->prev;
	d->prev = NULL;
	d->next = NULL;
}

static void loop_defer_add(struct loop_defer *d, struct loop_defer *head)
{
	if (d->next)
		return;
	d->prev = head->prev;
	d->next = head;
	head->prev->next = d;
	head->prev = d;
}

void loop_defer_schedule(struct loop_defer *d)
{
	assert(d->loop);
	loop_defer_add(d, &d->loop->defers);
}

void loop_defer_schedule_last(struct loop_defer *d)
{
	assert(d->loop);
	loop_defer_add(d, &d->loop->last);
}

void loop_defer_done(struct loop_defer *d)
{
	loop_defer_unlink(d);
	d->loop = NULL;
}

static bool loop_defer_any(const struct loop_defer *head)
{
	return head->next != head;
}

static bool loop_has_defers(const struct loop *l)
{
	return loop_defer_any(&l->defers) || loop_defer_any(&l->last);
}

/* The list whose turn it is. */
static struct loop_defer *loop_next_defers(struct loop *l)
{
	if (loop_defer_any(&l->defers) && l->n_passed < LOOP_PASSES_MAX) {
		l->n_passed += loop_defer_any(&l->last);
		return &l->defers;
	}
	l->n_passed = 0;
	return loop_defer_any(&l->last) ? &l->last : &l->defers;
}

static bool loop_run_defers(struct loop *l)
{
	struct loop_defer *from = loop_next_defers(l);
	struct loop_defer batch;

	if (!loop_defer_any(from))
		return false;
	batch.next = from->next;
	batch.prev = from->prev;
	batch.next->prev = &batch;
	batch.prev->next = &batch;
	loop_defer_clear(from);

	while (batch.next != &batch) {
		struct loop_defer *d = batch.next;

		loop_defer_unlink(d);
		d->fn(d);
	}
	return true;
}

/* ---- running ---- */

void loop_turn(struct loop *l, bool block)
{
	bool ran = loop_run_defers(l);
	bool wait = block && !ran && !l->quit;

	(void)ev_run(l->ev, wait ? EVRUN_ONCE : EVRUN_NOWAIT);
	(void)loop_run_defers(l);
}

int loop_run(struct loop *l)
{
	while (!l->quit) {
		(void)loop_run_defers(l);
		if (!l->quit)
			(void)ev_run(l->ev, loop_has_defers(l) ? EVRUN_NOWAIT : EVRUN_ONCE);
	}
	l->quit = false;
	return l->result;
}

void loop_quit(struct loop *l, int result)
{
	l->quit = true;
	l->result = result;
}

/* ---- descriptors ---- */

static struct ev_io *loop_fd_watcher(struct loop_fd *s)
{
	return (struct ev_io *)(void *)s->watcher.room;
}

static void loop_fd_event(struct ev_loop *ev, struct ev_io *w, int revents)
{
	struct loop_fd *s = w->data;
	unsigned events = 0;

	/* For a descriptor that epoll refuses libev stops the watcher and reports all three. */
	if (revents & (EV_READ | EV_ERROR))
		events |= LOOP_READ;
	if (revents & (EV_WRITE | EV_ERROR))
		events |= LOOP_WRITE;
	s->fn(s, events);
}

void loop_fd_init(struct loop_fd *s, struct loop *l, int fd, unsigned events, loop_fd_fn fn)
{
	struct ev_io *w = loop_fd_watcher(s);

	assert(fd >= 0);
	*s = (struct loop_fd){ .loop = l, .fn = fn, .fd = fd };
	ev_io_init(w, loop_fd_event, fd, 0);
	w->data = s;
	loop_fd_set(s, events);
}

void loop_fd_set(struct loop_fd *s, unsigned events)
{
	struct ev_io *w = loop_fd_watcher(s);
	int wanted = (events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0);

	assert(s->loop);
	s->events = events;
	if (ev_is_active(w) && (w->events & (EV_READ | EV_WRITE)) == wanted)
		return;
	ev_io_stop(s->loop->ev, w);
	if (!wanted)
		return;
	/* ev_io_set() also says that the number may stand for another file than last time. */
	ev_io_set(w, s->fd, wanted);
	ev_io_start(s->loop->ev, w);
}

void loop_fd_done(struct loop_fd *s)
{
	if (!s->loop)
		return;
	ev_io_stop(s->loop->ev, loop_fd_watcher(s));
	s->loop = NULL;
}

/* ---- timers ---- */

static struct ev_timer *loop_timer_watcher(struct loop_timer *t)
{
	return (struct ev_timer *)(void *)t->watcher.room;
}

static void loop_timer_event(struct ev_loop *ev, struct ev_timer *w, int revents)
{
	struct loop_timer *t = w->data;

	t->fn(t);
}

void loop_timer_init(struct loop_timer *t, struct loop *l, loop_timer_fn fn)
{
	struct ev_timer *w = loop_timer_watcher(t);

	*t = (struct loop_timer){ .loop = l, .fn = fn };
	ev_timer_init(w, loop_timer_event, 0., 0.);
	w->data = t;
}

void loop_timer_set(struct loop_timer *t, nsec_t after)
{
	struct ev_timer *w = loop_timer_watcher(t);

	loop_timer_stop(t);
	if (after == NSEC_NEVER)
		return;
	/* libev counts from the start of the turn, which a long callback has left far behind. */
	ev_now_update(t->loop->ev);
	ev_timer_set(w, (double)after / (double)NSEC_PER_SEC, 0.);
	ev_timer_start(t->loop->ev, w);
}

void loop_timer_stop(struct loop_timer *t)
{
	assert(t->loop);
	ev_timer_stop(t->loop->ev, loop_timer_watcher(t));
}

void loop_timer_done(struct loop_timer *t)
{
	if (!t->loop)
		return;
	loop_timer_stop(t);
	t->loop = NULL;
}

/* ---- signals ---- */

static void loop_signal_event(struct loop_fd *fd, unsigned events)
{
	struct loop_signal *s = container_of(fd, struct loop_signal, fd);
	struct signalfd_siginfo si;

	if (read(fd->fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	/* A sender by rt_sigqueueinfo(2) or tgkill(2) fills in a code below zero and may write
	 * any pid beside it; with SI_USER or a code of the kernel's own the pid is the kernel's. */
	s->fn(s, (int)si.ssi_signo, si.ssi_code < 0 ? LOOP_SENDER_UNKNOWN : (pid_t)si.ssi_pid);
}

int loop_signal_init(struct loop_signal *s, struct loop *l, const int *signals, size_t n,
		     loop_signal_fn fn)
{
	_cleanup_fd_ int fd = -1;
	sigset_t set;
	int r;

	*s = (struct loop_signal){ .fn = fn };
	(void)sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		if (sigaddset(&set, signals[i]) < 0)
			return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (r != 0)
		return -r;
	loop_fd_init(&s->fd, l, TAKE_FD(fd), LOOP_READ, loop_signal_event);
	return 0;
}

/* The signals stay blocked: a pending one would else take its default action, which is death. */
void loop_signal_done(struct loop_signal *s)
{
	if (!s->fd.loop)
		return;
	loop_fd_done(&s->fd);
	s->fd.fd = fd_close(s->fd.fd);
}

/* ---- processes ---- */

static void loop_child_event(struct loop_fd *fd, unsigned events)
{
	struct loop_child *c = container_of(fd, struct loop_child, fd);
	siginfo_t si = { .si_pid = 0 };
	int r;

	/* __WALL: also a child that was cloned without an exit signal. */
	do {
		r = waitid(P_PIDFD, (id_t)fd->fd, &si, WEXITED | WNOHANG | __WALL);
	} while (r < 0 && errno == EINTR);
	if (r == 0 && si.si_pid == 0)
		return;
	/* ECHILD: not ours, or reaped by another; anything else is no pidfd. */
	assert(r == 0 || errno == ECHILD);
	loop_child_done(c);
	c->fn(c, r == 0 ? si.si_code : 0, si.si_status);
}

void loop_child_init(struct loop_child *c, struct loop *l, int pidfd, loop_child_fn fn)
{
	c->fn = fn;
	loop_fd_init(&c->fd, l, pidfd, LOOP_READ, loop_child_event);
}

void loop_child_done(struct loop_child *c)
{
	loop_fd_done(&c->fd);
}
