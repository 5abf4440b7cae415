/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_LOOP_LOOP_H
#define NACRE_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * The event loop: one thread, one loop, all domain objects. Sources are values that live inside
 * their owner: x_init() arms nothing that x_done() does not take away, x_done() may be called from
 * within any callback (also its own) and twice, and no callback comes after it. A source must not
 * move in memory between init and done.
 *
 * A callback never runs before the function that armed its source has returned.
 *
 * Underneath is libev (never its default loop, which reaps every child); its names stay in
 * src/loop.
 */

struct loop;

int loop_new(struct loop **ret);
struct loop *loop_free(struct loop *l);
static inline void loop_freep(struct loop **l)
{
	*l = loop_free(*l);
}

/* Runs until loop_quit(); returns what loop_quit() was given. */
int loop_run(struct loop *l);
void loop_quit(struct loop *l, int result);
/* One turn: waits for events (not where block is false) and runs their callbacks. */
void loop_turn(struct loop *l, bool block);

/* Room for a watcher of libev, so that this header needs none of its own (loop.c checks the sizes).
 */
struct loop_watcher {
	_Alignas(8) unsigned char room[64];
};

/* ---- descriptors ---- */

#define LOOP_READ 1U
#define LOOP_WRITE 2U

struct loop_fd;
typedef void (*loop_fd_fn)(struct loop_fd *source, unsigned events);

struct loop_fd {
	struct loop_watcher watcher;
	struct loop *loop;
	loop_fd_fn fn;
	int fd; /* not owned */
	unsigned events;
};

/* Level-triggered. events may be 0: armed later by loop_fd_set(). Hang-up and errors come as
 * readable and writable. */
void loop_fd_init(struct loop_fd *s, struct loop *l, int fd, unsigned events, loop_fd_fn fn);
void loop_fd_set(struct loop_fd *s, unsigned events);
void loop_fd_done(struct loop_fd *s);

/* ---- timers ---- */

struct loop_timer;
typedef void (*loop_timer_fn)(struct loop_timer *source);

struct loop_timer {
	struct loop_watcher watcher;
	struct loop *loop;
	loop_timer_fn fn;
};

void loop_timer_init(struct loop_timer *t, struct loop *l, loop_timer_fn fn);
/* Fires once, `after` nanoseconds from now; sets an armed timer anew. NSEC_NEVER stops it. */
void loop_timer_set(struct loop_timer *t, nsec_t after);
void loop_timer_stop(struct loop_timer *t);
void loop_timer_done(struct loop_timer *t);

/* ---- work for after the current callback ---- */

struct loop_defer;
typedef void (*loop_defer_fn)(struct loop_defer *source);

struct loop_defer {
	struct loop_defer *prev, *next; /* in the loop's list while scheduled */
	struct loop *loop;
	loop_defer_fn fn;
};

void loop_defer_init(struct loop_defer *d, struct loop *l, loop_defer_fn fn);
/* Runs fn once, before the loop waits again. Scheduling twice runs it once. */
void loop_defer_schedule(struct loop_defer *d);
/* The same, but behind all others, those that they schedule among them, and a few turns later where
 * they never end: for what nobody waits for, where somebody may wait for what is written in this
 * turn. One that is scheduled already stays where it is. */
void loop_defer_schedule_last(struct loop_defer *d);
void loop_defer_done(struct loop_defer *d);

/* ---- signals of this process (through a signalfd; the signal is blocked by init) ---- */

struct loop_signal;
typedef void (*loop_signal_fn)(struct loop_signal *source, int sig, pid_t sender);

struct loop_signal {
	struct loop_fd fd;
	loop_signal_fn fn;
};

/* A sender that the kernel does not vouch for. */
#define LOOP_SENDER_UNKNOWN ((pid_t)-1)

/* The signals of `set` come to fn. sender: who sent it, 0 for one from outside our pid namespace,
 * or LOOP_SENDER_UNKNOWN. */
int loop_signal_init(struct loop_signal *s, struct loop *l, const int *signals, size_t n,
		     loop_signal_fn fn);
void loop_signal_done(struct loop_signal *s);

/* ---- processes ---- */

struct loop_child;
/* status as of waitid(2): code is CLD_EXITED (status: exit code) or CLD_KILLED/CLD_DUMPED (status:
 * the signal). For a process that is not our child code is 0 and status unknown. */
typedef void (*loop_child_fn)(struct loop_child *source, int code, int status);

struct loop_child {
	struct loop_fd fd;
	loop_child_fn fn;
};

/* Watches a process by its pidfd (not owned) and reaps it where it is a child. fn is called once.
 */
void loop_child_init(struct loop_child *c, struct loop *l, int pidfd, loop_child_fn fn);
void loop_child_done(struct loop_child *c);

#endif
