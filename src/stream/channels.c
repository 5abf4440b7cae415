/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/channels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <nettle/base64.h>

#include "base/macros.h"

struct channels {
	bool is_base64;
	bool has_channel; /* the message under way has told it */
	unsigned channel;
	struct base64_decode_ctx decode;
	uint8_t decoded[BASE64_DECODE_LENGTH(WEBSOCKET_PIECE_MAX)];
};

struct channels *channels_new(bool is_base64)
{
	struct channels *c = calloc(1, sizeof(*c));

	if (c)
		c->is_base64 = is_base64;
	return c;
}

struct channels *channels_free(struct channels *c)
{
	free(c);
	return NULL;
}

static int channels_decode(struct channels *c, const struct websocket_event *e, const char *text,
			   size_t len, size_t *ret_len)
{
	*ret_len = sizeof(c->decoded);
	if (!base64_decode_update(&c->decode, ret_len, c->decoded, len, text) ||
	    (e->ends && !base64_decode_final(&c->decode)))
		return -EBADMSG;
	return 0;
}

int channels_take(struct channels *c, const struct websocket_event *e, unsigned *ret_channel,
		  const uint8_t **ret, size_t *ret_len)
{
	const uint8_t *data = e->data;
	size_t len = e->len;
	int r;

	if (e->begins) {
		c->has_channel = false;
		base64_decode_init(&c->decode);
	}
	if (!c->has_channel && len > 0) {
		c->has_channel = true;
		c->channel = c->is_base64 ? (uint8_t)(*data - '0') : *data;
		data++;
		len--;
	}
	if (!c->has_channel)
		return 0;
	if (c->is_base64) {
		r = channels_decode(c, e, (const char *)data, len, &len);
		if (r < 0)
			return r;
		data = c->decoded;
	}
	*ret_channel = c->channel;
	*ret = data;
	*ret_len = len;
	return 1;
}

static int channels_put_base64(struct buf *to, unsigned channel, const void *data, size_t len)
{
	size_t size = BASE64_ENCODE_RAW_LENGTH(len);
	char first = (char)('0' + channel);
	uint8_t *room;
	int r = websocket_put_head(to, WEBSOCKET_TEXT, size + 1);

	if (r == 0)
		r = buf_add(to, &first, 1);
	if (r == 0)
		r = buf_reserve(to, size + 1, &room);
	if (r < 0)
		return r;
	base64_encode_raw((char *)room, len, data);
	buf_added(to, size);
	return 0;
}

int channels_put(const struct channels *c, struct buf *to, unsigned channel, const void *data,
		 size_t len)
{
	uint8_t first = (uint8_t)channel;
	int r;

	assert(channel <= CHANNEL_MAX);
	if (c->is_base64)
		return channels_put_base64(to, channel, data, len);
	r = websocket_put_head(to, WEBSOCKET_BINARY, len + 1);
	if (r == 0)
		r = buf_add(to, &first, 1);
	return r < 0 ? r : buf_add(to, data, len);
}
