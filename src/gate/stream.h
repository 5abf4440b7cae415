/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_STREAM_H
#define NACRE_GATE_STREAM_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "identity/tls.h"
#include "loop/loop.h"
#include "wire/format/h2frame.h"

/*
 * One connection that is passed on: bytes between a plain socket of the own side and TLS, both
 * ways, in their order and all of them. Each direction holds at most STREAM_PIECE bytes; while it
 * holds any, nothing more is read there (the sender is held up by its own socket). A direction that
 * ends is ended on the other side, and the other goes on.
 */

#define STREAM_PIECE 16384

struct stream;
/* The last event, once; the stream is to be freed in it. err NULL: both directions have properly
 * ended. */
typedef void (*stream_end_fn)(struct stream *s, const struct error *err);

struct stream {
	struct list siblings; /* of the owner */
	void *owner;
	stream_end_fn on_end;
	struct loop_fd plain, link;
	struct loop_defer again;
	int plain_fd, link_fd;
	struct tls *tls;     /* over link_fd */
	struct buf up, down; /* plain to link, link to plain */
	bool plain_eof, plain_ended, link_eof, link_ended;
	bool checked; /* bytes from the link are checked by h2frame */
	struct h2frame frames;
};

/* Both descriptors and tls are taken over, not where it fails. Goes on in the loop. */
int stream_new(struct stream **ret, struct loop *loop, int plain_fd, int link_fd, struct tls *tls,
	       bool checked, stream_end_fn on_end, void *owner);
struct stream *stream_free(struct stream *s);

#endif
