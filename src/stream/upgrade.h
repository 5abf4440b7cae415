/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_UPGRADE_H
#define NACRE_STREAM_UPGRADE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/buf.h"
#include "stream/head.h"
#include "stream/websocket.h"

/*
 * From a request of HTTP/1.1 to the protocol that is spoken instead of it. Pure.
 *
 * An Origin is not looked at: the token in the URL is what lets a client in, a browser adds none by
 * itself, and dashboards reach a kubelet from origins of their own.
 */

enum upgrade_kind {
	UPGRADE_SPDY,     /* frames of SPDY/3.1 */
	UPGRADE_TUNNEL,   /* the same in the messages of a WebSocket */
	UPGRADE_CHANNELS, /* stream/channels.h */
};

struct upgrade {
	enum upgrade_kind kind;
	bool is_websocket, is_base64;
	unsigned version;     /* of the protocol of a remote command, 1 to 5; else 0 */
	const char *protocol; /* as the client named it; "": it named none. Lives for ever */
	char accept[WEBSOCKET_ACCEPT_SIZE];
};

/* An answer of HTTP; these live for ever. */
struct refusal {
	const char *status, *fields, *words;
};

extern const struct refusal refusal_of_request, refusal_of_size, refusal_of_path, refusal_of_number;

/* Whether the request asks for something that is spoken here, or why not. Fills in is_websocket and
 * accept. */
const struct refusal *upgrade_check(const struct head *h, struct upgrade *ret);
/* The first protocol of the client's that is known here: the same. n_ports are known of a forward;
 * in a protocol of channels there have to be some. */
const struct refusal *upgrade_choose(const struct head *h, bool is_forward, size_t n_ports,
				     struct upgrade *u);

/* Each adds an answer: 0, or a negative errno of the buffer. */
int upgrade_put(const struct upgrade *u, struct buf *to);
int refusal_put(const struct refusal *r, struct buf *to);

#endif
