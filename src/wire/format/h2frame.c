/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/h2frame.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

enum h2_type {
	H2_DATA,
	H2_HEADERS,
	H2_PRIORITY,
	H2_RST_STREAM,
	H2_SETTINGS,
	H2_PUSH_PROMISE,
	H2_PING,
	H2_GOAWAY,
	H2_WINDOW_UPDATE,
	H2_CONTINUATION,
};

#define H2_FLAG_ACK 0x1
#define H2_FLAG_END_HEADERS 0x4

enum h2_where { H2_ON_STREAM = 1, H2_ON_CONNECTION = 2, H2_ANYWHERE = 3 };

/* RFC 9113, section 6. min == 0 and max == 0: such a frame is refused. */
static const struct {
	const char *name;
	enum h2_where where;
	uint32_t min, max;
} h2_types[] = {
	[H2_DATA] = { "DATA", H2_ON_STREAM, 0, H2FRAME_PAYLOAD_MAX },
	[H2_HEADERS] = { "HEADERS", H2_ON_STREAM, 1, H2FRAME_PAYLOAD_MAX },
	[H2_PRIORITY] = { "PRIORITY", H2_ON_STREAM, 5, 5 },
	[H2_RST_STREAM] = { "RST_STREAM", H2_ON_STREAM, 4, 4 },
	[H2_SETTINGS] = { "SETTINGS", H2_ON_CONNECTION, 0, 240 },
	[H2_PUSH_PROMISE] = { "PUSH_PROMISE", 0, 0, 0 },
	[H2_PING] = { "PING", H2_ON_CONNECTION, 8, 8 },
	[H2_GOAWAY] = { "GOAWAY", H2_ON_CONNECTION, 8, 1024 },
	[H2_WINDOW_UPDATE] = { "WINDOW_UPDATE", H2_ANYWHERE, 4, 4 },
	[H2_CONTINUATION] = { "CONTINUATION", H2_ON_STREAM, 0, H2FRAME_PAYLOAD_MAX },
};

/* What a head says. */
struct h2_head {
	uint32_t len, stream;
	uint8_t type, flags;
};

static struct h2_head h2_head_of(const uint8_t *p)
{
	return (struct h2_head){
		.len = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2],
		.type = p[3],
		.flags = p[4],
		/* The highest bit is reserved, and to be ignored. */
		.stream = (uint32_t)(p[5] & 0x7f) << 24 | (uint32_t)p[6] << 16 |
			  (uint32_t)p[7] << 8 | p[8],
	};
}

static const char *h2_name(const struct h2_head *h)
{
	return h->type < ARRAY_SIZE(h2_types) ? h2_types[h->type].name : "of an unknown type";
}

static int h2frame_check_form(const struct h2frame *f, const struct h2_head *h, struct error *err)
{
	if (f->from_client && h->type >= ARRAY_SIZE(h2_types))
		return h->len <= H2FRAME_PAYLOAD_MAX
			       ? 0
			       : error_set(err, -EPROTO, "an HTTP/2 frame of type %u of %u bytes",
					   h->type, h->len);
	if (h->type >= ARRAY_SIZE(h2_types) || h2_types[h->type].where == 0)
		return error_set(err, -EPROTO, "an HTTP/2 frame of type %u", h->type);
	if (h->len < h2_types[h->type].min || h->len > h2_types[h->type].max)
		return error_set(err, -EPROTO, "an HTTP/2 frame %s of %u bytes",
				 h2_types[h->type].name, h->len);
	if (!(h2_types[h->type].where & (h->stream ? H2_ON_STREAM : H2_ON_CONNECTION)))
		return error_set(err, -EPROTO, "an HTTP/2 frame %s on stream %u",
				 h2_types[h->type].name, h->stream);
	/* The streams of a client are odd, and a server opens none without PUSH_PROMISE. */
	if (h->stream && h->stream % 2 == 0)
		return error_set(err, -EPROTO, "an HTTP/2 frame on stream %u", h->stream);
	if (h->type == H2_SETTINGS && (h->len % 6 || (h->flags & H2_FLAG_ACK && h->len)))
		return error_set(err, -EPROTO, "an HTTP/2 frame SETTINGS of %u bytes", h->len);
	return 0;
}

/* Nothing comes between a HEADERS and the end of its block. */
static int h2frame_check_block(struct h2frame *f, const struct h2_head *h, struct error *err)
{
	if (!f->begun && (h->type != H2_SETTINGS || h->flags & H2_FLAG_ACK))
		return error_set(err, -EPROTO, "an HTTP/2 connection that begins with %s",
				 h2_name(h));
	f->begun = true;
	if ((f->block_stream != 0) != (h->type == H2_CONTINUATION) ||
	    (f->block_stream && f->block_stream != h->stream))
		return error_set(err, -EPROTO, "an HTTP/2 frame %s out of its place", h2_name(h));
	f->asked = f->asked || h->type == H2_HEADERS;
	if (h->type == H2_HEADERS)
		f->continuations = 0;
	if (h->type == H2_CONTINUATION && ++f->continuations > H2FRAME_CONTINUATIONS_MAX)
		return error_set(err, -EPROTO, "HTTP/2 headers of more than %d frames",
				 H2FRAME_CONTINUATIONS_MAX);
	if (h->type == H2_HEADERS || h->type == H2_CONTINUATION)
		f->block_stream = h->flags & H2_FLAG_END_HEADERS ? 0 : h->stream;
	return 0;
}

/* How much of the bytes is the preface of a client, or -EPROTO. */
static int h2frame_take_preface(struct h2frame *f, const uint8_t *data, size_t len,
				struct error *err)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	size_t n = MIN(len, sizeof(preface) - 1 - f->n_preface);

	if (memcmp(data, preface + f->n_preface, n) != 0)
		return error_set(err, -EPROTO, "the beginning of an HTTP/2 connection");
	f->n_preface += (unsigned)n;
	return (int)n;
}

int h2frame_feed(struct h2frame *f, const uint8_t *data, size_t len, struct error *err)
{
	if (f->from_client && len > 0) {
		int n = h2frame_take_preface(f, data, len, err);

		if (n < 0)
			return n;
		data += n;
		len -= (size_t)n;
	}
	while (len > 0) {
		size_t n = f->left ? MIN(len, (size_t)f->left)
				   : MIN(len, (size_t)(H2FRAME_HEAD - f->n_head));

		if (f->left) {
			f->left -= (uint32_t)n;
		} else {
			memcpy(f->head + f->n_head, data, n);
			f->n_head += (unsigned)n;
		}
		data += n;
		len -= n;
		if (f->n_head == H2FRAME_HEAD) {
			struct h2_head h = h2_head_of(f->head);
			int r = h2frame_check_form(f, &h, err);

			if (r == 0)
				r = h2frame_check_block(f, &h, err);
			if (r < 0)
				return r;
			f->left = h.len;
			f->n_head = 0;
		}
	}
	return 0;
}

bool h2frame_is_whole(const struct h2frame *f)
{
	return f->left == 0 && f->n_head == 0;
}
