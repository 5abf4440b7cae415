/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/talk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "stream/channels.h"
#include "stream/websocket.h"

#define TALK_VERSION_CLOSE 5

/*
 * SPDY in a WebSocket is two codecs, one behind the other: messages are unpacked into `inner_in`,
 * where the frames are taken from, and frames are put into `inner_out`, which becomes a message.
 */
struct talk {
	struct upgrade upgrade;
	struct buf *out;
	struct buf inner_in, inner_out;
	struct spdy *spdy;
	struct websocket *websocket;
	struct channels *channels;
	size_t taken; /* bytes that the last event points into, of where its frame came from */
	bool said_close;
	unsigned close_code; /* of the client's close, to be sent back */
};

struct talk *talk_free(struct talk *t)
{
	if (!t)
		return NULL;
	(void)spdy_free(t->spdy);
	(void)websocket_free(t->websocket);
	(void)channels_free(t->channels);
	buf_done(&t->inner_in);
	buf_done(&t->inner_out);
	free(t);
	return NULL;
}

struct talk *talk_new(const struct upgrade *u, struct buf *out)
{
	struct talk *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->upgrade = *u;
	t->out = out;
	t->close_code = WEBSOCKET_NORMAL;
	t->inner_in = t->inner_out = (struct buf)BUF_INIT;
	if (u->kind == UPGRADE_CHANNELS)
		t->channels = channels_new(u->is_base64);
	else
		t->spdy = spdy_new();
	if (u->kind != UPGRADE_SPDY)
		t->websocket = websocket_new();
	if ((!t->channels && !t->spdy) || (!t->websocket && u->kind != UPGRADE_SPDY))
		return talk_free(t);
	return t;
}

/* ---- what goes ---- */

static struct buf *talk_frames(struct talk *t)
{
	return t->websocket ? &t->inner_out : t->out;
}

/* After frames of SPDY were put. */
static int talk_pass(struct talk *t, int r)
{
	if (r == 0 && t->inner_out.len > 0)
		r = websocket_put(t->out, WEBSOCKET_BINARY, buf_data(&t->inner_out),
				  t->inner_out.len);
	buf_clear(&t->inner_out);
	return r;
}

int talk_accept(struct talk *t, uint32_t stream)
{
	if (t->channels)
		return 0;
	return talk_pass(t, spdy_put_reply(t->spdy, talk_frames(t), stream));
}

int talk_data(struct talk *t, uint32_t stream, const void *data, size_t len, bool fin)
{
	if (!t->channels)
		return talk_pass(t, spdy_put_data(talk_frames(t), stream, data, len, fin));
	assert(stream > 0);
	/* An empty message is one that its sender means, unless it only says the end. */
	if (len == 0 && fin)
		return 0;
	return channels_put(t->channels, t->out, stream - 1, data, len);
}

int talk_reset(struct talk *t, uint32_t stream, uint32_t status)
{
	if (t->channels)
		return -EOPNOTSUPP;
	return talk_pass(t, spdy_put_reset(talk_frames(t), stream, status));
}

int talk_pulse(struct talk *t)
{
	return t->websocket ? websocket_put(t->out, WEBSOCKET_PONG, "", 0) : 0;
}

int talk_close(struct talk *t, int why)
{
	const char *words = "";
	unsigned code = t->close_code;

	if (!t->websocket || t->said_close)
		return 0;
	if (why && why != -ESHUTDOWN)
		code = websocket_code(why, &words);
	t->said_close = true;
	return websocket_put_close(t->out, code, words);
}

/* ---- what comes ---- */

static int talk_take_frame(struct talk *t, struct buf *from, struct spdy_event *ret)
{
	int r = spdy_take(t->spdy, buf_data(from), from->len, &t->taken, ret);

	if (r <= 0 || ret->kind != SPDY_PING)
		return r;
	ret->kind = SPDY_OTHER;
	r = talk_pass(t, spdy_put_ping(talk_frames(t), ret->stream));
	return r < 0 ? r : 1;
}

static int talk_take_channel(struct talk *t, const struct websocket_event *e,
			     struct spdy_event *ret)
{
	const uint8_t *data;
	unsigned channel;
	size_t len;
	int r = channels_take(t->channels, e, &channel, &data, &len);

	if (r < 0)
		return r;
	if (r == 0)
		return 1;
	*ret = (struct spdy_event){
		.kind = SPDY_DATA, .stream = channel + 1, .data = data, .len = len
	};
	if (channel != CHANNEL_CLOSE || t->upgrade.version < TALK_VERSION_CLOSE)
		return 1;
	if (len == 1)
		*ret = (struct spdy_event){ .kind = SPDY_DATA,
					    .stream = data[0] + 1U,
					    .fin = true };
	else
		ret->kind = SPDY_OTHER;
	return 1;
}

/* The next event of the WebSocket; OTHER where nothing is to be told of it. */
static int talk_take_message(struct talk *t, struct buf *in, struct spdy_event *ret)
{
	struct websocket_event e;
	size_t used;
	int r = websocket_take(t->websocket, buf_data(in), in->len, &used, &e);

	*ret = (struct spdy_event){ .kind = SPDY_OTHER };
	if (r <= 0)
		return r;
	/* What it says was copied out of there. */
	buf_consume(in, used);
	if (e.opcode == WEBSOCKET_CLOSE) {
		t->close_code = e.code;
		return -ESHUTDOWN;
	}
	if (e.opcode == WEBSOCKET_PING)
		r = websocket_put(t->out, WEBSOCKET_PONG, e.data, e.len);
	else if (e.opcode == WEBSOCKET_BINARY && t->channels)
		r = talk_take_channel(t, &e, ret);
	else if (e.opcode == WEBSOCKET_BINARY)
		r = buf_add(&t->inner_in, e.data, e.len);
	return r < 0 ? r : 1;
}

int talk_take(struct talk *t, struct buf *in, struct spdy_event *ret)
{
	struct buf *from = t->websocket ? &t->inner_in : in;
	int r = 0;

	buf_consume(from, t->taken);
	t->taken = 0;
	if (t->spdy)
		r = talk_take_frame(t, from, ret);
	if (r == 0 && t->websocket)
		r = talk_take_message(t, in, ret);
	return r;
}
