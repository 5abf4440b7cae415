/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_TALK_H
#define NACRE_GATE_TALK_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/time/clock.h"
#include "identity/tls.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

/*
 * An enrolment connection: messages (wire/message/gatemsg.h) over TLS, one at a time and each way,
 * with a bound on the whole. A value inside its owner.
 */

#define TALK_PATIENCE (60 * NSEC_PER_SEC)
/* The longest message here: a chain and a token. */
#define TALK_MESSAGE_MAX (GATE_CHAIN_MAX + 256)

struct talk;

struct talk_ops {
	/* The message lies in the talk until this returns. A negative errno (with err) is the end.
	 */
	int (*on_message)(struct talk *t, const struct gatemsg *m, struct error *err);
	/* The last event, once: talk_done() is due. err NULL: the peer has properly ended it. */
	void (*on_end)(struct talk *t, const struct error *err);
};

struct talk {
	const struct talk_ops *ops;
	struct loop_fd source;
	struct loop_timer patience;
	struct tls *tls;
	int fd;
	struct buf in, out;
	bool ending, ended;
};

#define TALK_INIT                                                                                  \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Takes fd and tls over. */
void talk_init(struct talk *t, struct loop *loop, int fd, struct tls *tls,
	       const struct talk_ops *ops);
void talk_done(struct talk *t);
/* 0, or a negative errno. Sent from the loop. */
int talk_send(struct talk *t, const struct gatemsg *m, struct error *err);
/* Ends the own direction behind what was sent. */
void talk_finish(struct talk *t);

#endif
