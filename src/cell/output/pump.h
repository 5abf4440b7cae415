/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_PUMP_H
#define NACRE_CELL_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"
#include "cell/output/log_file.h"
#include "cell/output/ring.h"
#include "cell/spec.h"
#include "loop/loop.h"
#include "loop/pool.h"

/*
 * Carries the output of a container from its two pipes into its log file, as CRI lines. The loop
 * reads and encodes, a thread writes. At most PUMP_WAITING_MAX encoded bytes wait; beyond that the
 * pipes are not read, so the program blocks and nothing is lost.
 *
 * A log that cannot be written (disk full) is tried again. How long the program may be held up by
 * that is the policy's (struct log_policy); from then on what it writes is dropped and counted, and
 * once the log can be written again a mark in it says how much is missing. A second failure soon
 * after the first is given no new time.
 *
 * A log that is kept (`keeps`, set before it is started) is no file: the lines stay in memory until
 * somebody has taken them, PUMP_WAITING_MAX bytes of them at most. A reader that takes none blocks
 * the program, as a full disk does.
 */

#define PUMP_WAITING_MAX ((size_t)1 << 20)
#define PUMP_READ_MAX RING_PIECE_MAX /* at a time: one piece for those who are attached */

/* The threads of all pumps of a keeper: made when there is something to write. */
struct pump_threads {
	struct loop *loop;
	struct pool *pool;
	bool held; /* pump_threads_hold() */
};

#define PUMP_THREADS_INIT(l)                                                                       \
	{                                                                                          \
		.loop = (l)                                                                        \
	}
/* While held no write begins; what was read waits. Afterwards each pump needs pump_resume(). */
void pump_threads_hold(struct pump_threads *t, bool held);
/* Waits for the write in hand; the pumps must still be there. */
void pump_threads_done(struct pump_threads *t);

struct pump;
/* The pump is drained, its trouble has come or gone, or more was lost. Not from within a call of
 * the pump's user. */
typedef void (*pump_fn)(struct pump *p);
/* Sees a piece of output (stream 1 or 2, at most PUMP_READ_MAX bytes) before it goes to the log.
 * May call pump_hold() and nothing else. */
typedef void (*pump_tee_fn)(void *userdata, int stream, const void *data, size_t len);

struct pump_stream {
	struct loop_fd source;
	struct pump *pump;
	int fd;
	bool is_tty;    /* a terminal's master: how much it holds cannot be asked */
	uint8_t *chunk; /* read, but there was no memory to encode it */
	size_t chunk_len;
	nsec_t chunk_time;
	size_t left; /* after pump_last(): bytes that were in the pipe then */
};

struct pump {
	struct pump_threads *threads;
	pump_fn fn;
	struct pump_stream streams[2]; /* stdout, stderr */
	struct log_file log;           /* with the thread, while work.busy */
	bool has_log;                  /* there is a file behind it */
	struct log_policy policy;
	int next_log;                /* the next log file, used once no write is busy; -1: none */
	void (*changed)(void *data); /* tells that it is in use */
	void *changed_data;
	struct buf waiting;   /* encoded lines */
	struct buf writing;   /* with the thread, while work.busy */
	uint64_t n_read;      /* of the container's bytes: encoded, or dropped */
	uint64_t writing_end; /* n_read behind `writing` */
	struct pool_work work;
	size_t n_written; /* set by the thread */
	int write_error;  /* set by the thread: negative errno */
	struct loop_timer retry;
	struct loop_defer notify;
	nsec_t delay;
	int trouble;  /* negative errno of the last write; 0: all is well */
	bool resting; /* until `retry` */
	bool last;
	bool giving_up;
	bool held;
	pump_tee_fn tee;
	void *tee_userdata;
	bool dropping;      /* output that is read is lost, until a write succeeds */
	nsec_t block_until; /* of the failure at hand, or the last one; 0: none yet */
	uint64_t unmarked;  /* lost bytes that no mark tells yet */
	uint64_t marked;    /* that the mark in `writing` tells */
	uint64_t lost;      /* bytes of output that are not in the log */
	uint64_t torn;      /* that the line stands for of which a part is in the log */
	bool keeps;         /* `waiting` is the log */
	uint64_t kept_at;   /* place of its first line: bytes of output before it */
	bool is_read;       /* somebody takes them */
	/* There is more to take, or it is at its end; set where it `keeps`. May call nothing of the
	 * pump. */
	pump_fn grown;
	void *grown_data;
};

void pump_init(struct pump *p, struct pump_threads *threads, pump_fn fn);
/* Takes the reading ends over, and the two descriptors of the log. -1: none; without a log only the
 * tee sees it. */
int pump_start(struct pump *p, int out_fd, int err_fd, struct container_fds *fds, const char *name,
	       const struct log_policy *policy);
/* The same for the master of a terminal, whose output is stdout. */
int pump_start_terminal(struct pump *p, int master_fd, struct container_fds *fds, const char *name,
			const struct log_policy *policy);
/* The log goes on in this file, which is taken over. changed is called once: when nothing more is
 * written to the old one, at once or later, or the pump is done with. -EBUSY: an earlier change is
 * not over. */
int pump_change_log(struct pump *p, int fd, void (*changed)(void *data), void *data);
void pump_tee(struct pump *p, pump_tee_fn fn, void *userdata);
/* While it is held nothing is read, so the program blocks. */
void pump_hold(struct pump *p, bool held);
/* The writers are gone: what is in the pipes now is the rest, whoever else may still hold them
 * open. */
void pump_last(struct pump *p);
/* The next write that fails is the last: what waits is dropped and counted in `lost`. */
void pump_give_up(struct pump *p);
/* Both pipes are at their end, and all of it is in the log or lost. */
bool pump_drained(const struct pump *p);
/* Of a log that is kept: the lines from the byte `from` of them on. *ret_end: nothing will follow.
 */
const uint8_t *pump_kept(const struct pump *p, size_t from, size_t *ret_len, bool *ret_end);
/* The first n bytes of the lines are forgotten. */
void pump_take(struct pump *p, size_t n);
/* Whether there is somebody who will take them: else a pump that gives up waits for nobody. */
void pump_set_read(struct pump *p, bool is_read);
/* Why it cannot be handed over now (cell/layer/handover.h), or NULL. */
const char *pump_busy(const struct pump *p);
/* Goes on with what another program, or a hold, has left in its members. */
void pump_resume(struct pump *p);
/* Not while a thread writes: first pump_drained(), or pump_threads_done(). */
void pump_done(struct pump *p);

#endif
