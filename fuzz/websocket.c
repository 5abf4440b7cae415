/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames of WebSocket and what is in their messages, channels or SPDY, as the streaming server
 * reads them. The first byte chooses the form of channels and how large the pieces are in which the
 * rest arrives; what is said does not depend on the pieces.
 */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "stream/channels.h"
#include "stream/talk.h"
#include "stream/websocket.h"

struct heard {
	size_t messages, bytes;
	unsigned long sum;
	int error;
};

static void hear(struct heard *h, unsigned channel, const uint8_t *data, size_t len)
{
	h->bytes += len;
	for (size_t i = 0; i < len; i++)
		h->sum = h->sum * 31 + channel + data[i];
}

static int take_event(struct heard *h, struct channels *c, const struct websocket_event *e)
{
	const uint8_t *data;
	unsigned channel;
	size_t len;
	int r;

	if (e->opcode != WEBSOCKET_BINARY) {
		fuzz_need(e->len <= WEBSOCKET_CONTROL_MAX);
		fuzz_need(e->opcode == WEBSOCKET_CLOSE || e->code == 0);
		hear(h, (unsigned)e->opcode, e->data, e->len);
		return 0;
	}
	fuzz_need(e->len <= WEBSOCKET_PIECE_MAX);
	h->messages += e->ends;
	r = channels_take(c, e, &channel, &data, &len);
	if (r > 0) {
		fuzz_need(channel <= UINT8_MAX && len <= e->len);
		hear(h, channel, data, len);
	}
	return r;
}

static struct heard read_all(const uint8_t *data, size_t size, bool is_base64, size_t step)
{
	struct websocket *w = websocket_new();
	struct channels *c = channels_new(is_base64);
	struct heard h = { .error = w && c ? 0 : -1 };
	size_t at = 0, have = 0;

	while (h.error == 0 && at < size) {
		struct websocket_event e;
		size_t used;
		int r;

		have = size - at < have + step ? size - at : have + step;
		r = websocket_take(w, data + at, have, &used, &e);
		fuzz_need(used <= have && (r != 0 || used == 0) && (r <= 0 || used > 0));
		if (r == 0 && have == size - at)
			break;
		if (r > 0)
			r = take_event(&h, c, &e);
		h.error = r < 0 ? r : 0;
		at += used;
		have -= used;
	}
	(void)websocket_free(w);
	(void)channels_free(c);
	return h;
}

static void talk_all(const uint8_t *data, size_t size, const struct upgrade *u)
{
	struct buf in = BUF_INIT, out = BUF_INIT;
	struct talk *t = talk_new(u, &out);
	struct heard h = { .error = 0 };
	struct spdy_event e;
	int r = t ? buf_add(&in, data, size) : -1;

	while (r >= 0) {
		r = talk_take(t, &in, &e);
		if (r == 0)
			break;
		fuzz_need(r < 0 || e.kind != SPDY_PING);
		fuzz_need(r < 0 || u->kind == UPGRADE_TUNNEL || e.kind == SPDY_DATA ||
			  e.kind == SPDY_OTHER);
		if (r > 0 && e.len > 0)
			hear(&h, e.stream, e.data, e.len);
	}
	/* Only pings are answered, with as many bytes at most. */
	fuzz_need(out.len <= 2 * size);
	fuzz_need(h.bytes <= size);
	(void)talk_free(t);
	buf_done(&in);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct heard whole, pieces;
	bool is_base64;
	size_t step;

	if (size < 1)
		return 0;
	is_base64 = (data[0] & 1) != 0;
	step = (size_t)(data[0] >> 1) + 1;
	whole = read_all(data + 1, size - 1, is_base64, size);
	pieces = read_all(data + 1, size - 1, is_base64, step);
	fuzz_need(whole.error == pieces.error);
	/* Of a message that is refused, less or more may have been heard before that was seen. */
	fuzz_need(whole.error < 0 || (whole.messages == pieces.messages &&
				      whole.bytes == pieces.bytes && whole.sum == pieces.sum));
	talk_all(data + 1, size - 1,
		 &(struct upgrade){ .kind = UPGRADE_CHANNELS,
				    .is_websocket = true,
				    .is_base64 = is_base64,
				    .version = 5 });
	talk_all(data + 1, size - 1,
		 &(struct upgrade){ .kind = UPGRADE_TUNNEL, .is_websocket = true });
	return 0;
}
