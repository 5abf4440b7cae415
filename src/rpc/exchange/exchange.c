/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/exchange/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/message/frame.h"
#include "rpc/message/gzip.h"
#include "rpc/server/share.h"

static void exchange_news(struct exchange *x)
{
	if (x->conn)
		conn_item_ready(x->conn, &x->item);
}

static void exchange_item(struct conn_item *item)
{
	struct exchange *x = container_of(item, struct exchange, item);

	x->ready(x);
}

/* ---- what comes from the session ---- */

void exchange_on_field(struct http_stream *s, const char *name, const char *value)
{
	struct exchange *x = http_stream_data(s);

	x->field(x, name, value);
}

void exchange_on_headers(struct http_stream *s)
{
	struct exchange *x = http_stream_data(s);

	x->headers = true;
	x->oversized = http_stream_oversized(s);
	exchange_news(x);
}

/* As much room as the message that begins here will want, so that it is not moved while it grows;
 * but not for more than its first part: that somebody announces much costs us nothing yet. */
static int exchange_add(struct exchange *x, const uint8_t *data, size_t len)
{
	bool compressed;
	uint8_t *to;
	size_t n;

	if (x->rx.len == 0 && len >= FRAME_PREFIX) {
		(void)frame_prefix_read(data, &n, &compressed);
		n = MAX(len, MIN(FRAME_PREFIX + n, (size_t)HTTP_WINDOW));
		if (buf_reserve(&x->rx, n, &to) < 0)
			return -ENOMEM;
	}
	return buf_add(&x->rx, data, len);
}

void exchange_on_data(struct http_stream *s, const uint8_t *data, size_t len)
{
	struct exchange *x = http_stream_data(s);

	if (!x->overrun && (!exchange_charge(x, len) || exchange_add(x, data, len) < 0))
		x->overrun = true;
	x->held += len;
	exchange_news(x);
}

void exchange_on_end(struct http_stream *s)
{
	struct exchange *x = http_stream_data(s);

	x->ended = true;
	exchange_news(x);
}

void exchange_on_close(struct http_stream *s, uint32_t code)
{
	struct exchange *x = http_stream_data(s);

	x->http = NULL;
	x->closed = true;
	x->close_code = code;
	exchange_news(x);
}

void exchange_on_drain(struct http_stream *s)
{
	struct exchange *x = http_stream_data(s);

	x->drained = true;
	exchange_news(x);
}

/* ---- what the owner asks for ---- */

void exchange_init(struct exchange *x, struct conn *conn,
		   void (*field)(struct exchange *x, const char *name, const char *value),
		   void (*ready)(struct exchange *x))
{
	*x = (struct exchange){ .conn = conn, .rx = BUF_INIT, .field = field, .ready = ready };
	conn_item_init(&x->item, exchange_item);
}

static void exchange_discharge(struct exchange *x, size_t n)
{
	if (!x->share)
		return;
	share_give(x->share, SHARE_BYTES, n);
	x->charged -= n;
}

void exchange_release(struct exchange *x)
{
	if (x->http) {
		http_stream_detach(x->http);
		conn_touch(x->conn);
	}
	x->http = NULL;
	x->conn = NULL;
	list_remove(&x->item.member);
	buf_done(&x->rx);
	buf_done(&x->plain);
	exchange_discharge(x, x->charged);
	x->share = NULL;
}

bool exchange_charge(struct exchange *x, size_t n)
{
	if (!x->share)
		return true;
	if (!share_take(x->share, SHARE_BYTES, n))
		return false;
	x->charged += n;
	return true;
}

static int exchange_inflate(struct exchange *x, const uint8_t **data, size_t *len,
			    struct error *err)
{
	int r;

	buf_done(&x->plain);
	r = gzip_inflate(&x->plain, *data, *len, RPC_MESSAGE_MAX);
	if (r == -EMSGSIZE)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "a compressed message stands for more than %u bytes",
				    RPC_MESSAGE_MAX);
	if (r == -EBADMSG)
		return error_refuse(err, ERROR_FAULT, "what came is not compressed with gzip");
	if (r < 0)
		return error_set(err, r, "inflate a message");
	*data = buf_data(&x->plain);
	*len = x->plain.len;
	return 1;
}

int exchange_next(struct exchange *x, const uint8_t **ret, size_t *ret_len, struct error *err)
{
	bool compressed, valid;
	size_t len;

	if (x->overrun)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "too much memory is held by messages that wait");
	if (x->paused || x->rx.len < FRAME_PREFIX)
		return 0;
	valid = frame_prefix_read(buf_data(&x->rx), &len, &compressed);
	if (!valid)
		return error_refuse(err, ERROR_FAULT, "what came is not framed as gRPC");
	if (compressed && !x->gzip_in)
		return error_refuse(err, ERROR_FAULT,
				    "a message is marked as compressed, without a grpc-encoding");
	if (len > RPC_MESSAGE_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "a message of %zu bytes, at most %u", len,
				    RPC_MESSAGE_MAX);
	if (x->rx.len - FRAME_PREFIX < len)
		return 0;
	*ret = buf_data(&x->rx) + FRAME_PREFIX;
	*ret_len = len;
	x->framed = FRAME_PREFIX + len;
	return compressed ? exchange_inflate(x, ret, ret_len, err) : 1;
}

void exchange_drop(struct exchange *x)
{
	buf_done(&x->plain);
	buf_consume(&x->rx, x->framed);
	exchange_discharge(x, x->framed);
}

void exchange_skip(struct exchange *x)
{
	exchange_discharge(x, x->rx.len);
	buf_done(&x->rx);
}

bool exchange_has_rest(const struct exchange *x)
{
	return x->rx.len > 0 || x->overrun;
}

void exchange_give_back(struct exchange *x)
{
	if (!x->http || (x->paused && !x->flushed) || x->held == 0)
		return;
	http_stream_consumed(x->http, x->held);
	x->held = 0;
	conn_touch(x->conn);
}

void exchange_pause(struct exchange *x, bool paused)
{
	if (x->paused == paused)
		return;
	x->paused = paused;
	if (!paused)
		exchange_news(x);
}

void exchange_again(struct exchange *x)
{
	exchange_news(x);
}

/* Queues a frame whose message is written by the caller. */
static int exchange_reserve(struct exchange *x, size_t len, bool compressed, uint8_t **ret)
{
	int r;

	if (len > RPC_MESSAGE_MAX)
		return -EMSGSIZE;
	r = http_stream_reserve(x->http, FRAME_PREFIX + len, ret);
	if (r < 0)
		return -ENOMEM;
	frame_prefix_write(*ret, len, compressed);
	return 0;
}

static void exchange_commit(struct exchange *x, size_t len)
{
	http_stream_commit(x->http, FRAME_PREFIX + len);
	conn_touch(x->conn);
}

static int exchange_send_frame(struct exchange *x, const void *data, size_t len, bool compressed)
{
	uint8_t *to;
	int r = exchange_reserve(x, len, compressed, &to);

	if (r < 0)
		return r;
	if (len)
		memcpy(to + FRAME_PREFIX, data, len);
	exchange_commit(x, len);
	return 0;
}

static bool exchange_compresses(const struct exchange *x, size_t len)
{
	return x->gzip_out && len >= GZIP_WORTH && len <= GZIP_MAX;
}

int exchange_send(struct exchange *x, const void *data, size_t len)
{
	struct buf small = BUF_INIT;
	int r;

	if (!x->http)
		return 0;
	if (!exchange_compresses(x, len))
		return exchange_send_frame(x, data, len, false);
	r = gzip_deflate(&small, data, len);
	if (r < 0)
		r = exchange_send_frame(x, data, len, false);
	else
		r = exchange_send_frame(x, buf_data(&small), small.len, true);
	buf_done(&small);
	return r;
}

static int exchange_send_packed(struct exchange *x, const ProtobufCMessage *message, size_t len)
{
	uint8_t *packed = malloc(len);
	int r;

	if (!packed)
		return -ENOMEM;
	r = exchange_send(x, packed, protobuf_c_message_pack(message, packed));
	free(packed);
	return r;
}

int exchange_send_message(struct exchange *x, const ProtobufCMessage *message)
{
	size_t len;
	uint8_t *to;
	int r;

	if (!x->http)
		return 0;
	len = protobuf_c_message_get_packed_size(message);
	if (exchange_compresses(x, len))
		return exchange_send_packed(x, message, len);
	r = exchange_reserve(x, len, false, &to);
	if (r < 0)
		return r;
	(void)protobuf_c_message_pack(message, to + FRAME_PREFIX);
	exchange_commit(x, len);
	return 0;
}

int exchange_send_text(struct exchange *x, const char *text)
{
	size_t len = strlen(text);
	uint8_t *to;

	if (http_stream_reserve(x->http, len, &to) < 0)
		return -ENOMEM;
	memcpy(to, text, len);
	http_stream_commit(x->http, len);
	return 0;
}

bool exchange_writable(const struct exchange *x)
{
	return x->http && http_stream_writable(x->http);
}

int exchange_finish(struct exchange *x, const struct http_field *trailers, size_t n)
{
	int r;

	if (!x->http)
		return 0;
	r = http_stream_finish(x->http, trailers, n);
	conn_touch(x->conn);
	return r;
}

void exchange_reset(struct exchange *x, uint32_t code)
{
	if (x->http)
		http_stream_reset(x->http, code);
	exchange_release(x);
}
