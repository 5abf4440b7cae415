/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/probe.h"

#include <assert.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

enum probe_frame { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_RST_STREAM = 3, FRAME_SETTINGS = 4 };

#define FLAG_END_STREAM 0x1
#define FLAG_END_HEADERS 0x4
#define FLAG_PADDED 0x8
#define FRAME_MAX 16384 /* as long as nobody allows more */
#define OUR_STREAM 1
#define MESSAGE_HEAD 5 /* of gRPC: compressed or not, and four bytes of length */
#define SERVING 1

/* ---- HTTP/1.1 ---- */

size_t probe_http_request(uint8_t ret[PROBE_REQUEST_MAX], unsigned port, const char *path)
{
	int n = str_printf((char *)ret, PROBE_REQUEST_MAX,
			   "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: nacre-probe\r\n"
			   "Accept: */*\r\nConnection: close\r\n\r\n",
			   path, port);

	assert(n > 0);
	return (size_t)n;
}

static bool probe_is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.x NNN" and what ends that. */
static bool probe_http_fits(const uint8_t *h)
{
	return memcmp(h, "HTTP/1.", 7) == 0 && probe_is_digit(h[7]) && h[8] == ' ' && h[9] >= '1' &&
	       h[9] <= '9' && probe_is_digit(h[10]) && probe_is_digit(h[11]) &&
	       (h[12] == ' ' || h[12] == '\r' || h[12] == '\n');
}

enum probe_verdict probe_http_feed(struct probe_http *p, const uint8_t *data, size_t len)
{
	size_t n = MIN(len, sizeof(p->head) - p->n);

	memcpy(p->head + p->n, data, n);
	p->n += (unsigned)n;
	if (p->n < sizeof(p->head))
		return PROBE_MORE;
	if (!probe_http_fits(p->head))
		return PROBE_BAD;
	p->status = (unsigned)(p->head[9] - '0') * 100 + (unsigned)(p->head[10] - '0') * 10 +
		    (unsigned)(p->head[11] - '0');
	return p->status >= 200 && p->status < 400 ? PROBE_GOOD : PROBE_BAD;
}

/* ---- gRPC ---- */

static uint8_t *probe_put(uint8_t *to, const void *bytes, size_t n)
{
	memcpy(to, bytes, n);
	return to + n;
}

static uint8_t *probe_put_frame(uint8_t *to, size_t len, enum probe_frame type, uint8_t flags,
				uint8_t stream)
{
	const uint8_t head[] = { (uint8_t)(len >> 16),
				 (uint8_t)(len >> 8),
				 (uint8_t)len,
				 (uint8_t)type,
				 flags,
				 0,
				 0,
				 0,
				 stream };

	return probe_put(to, head, sizeof(head));
}

/* A text of RFC 7541 without Huffman's code, shorter than 127. */
static uint8_t *probe_put_text(uint8_t *to, const char *text)
{
	size_t n = strlen(text);

	assert(n < 127);
	*to++ = (uint8_t)n;
	return probe_put(to, text, n);
}

/* The fields by their numbers in the static table; nothing goes into the dynamic one. */
static size_t probe_fields(uint8_t *to)
{
	uint8_t *at = to;

	*at++ = 0x80 | 3; /* :method POST */
	*at++ = 0x80 | 6; /* :scheme http */
	*at++ = 4;        /* :path */
	at = probe_put_text(at, "/grpc.health.v1.Health/Check");
	*at++ = 1; /* :authority */
	at = probe_put_text(at, "localhost");
	*at++ = 0x0f; /* content-type, which is 31: past the four bits */
	*at++ = 31 - 15;
	at = probe_put_text(at, "application/grpc");
	*at++ = 0;
	at = probe_put_text(at, "te");
	at = probe_put_text(at, "trailers");
	return (size_t)(at - to);
}

size_t probe_grpc_request(uint8_t ret[PROBE_REQUEST_MAX], const char *service)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const uint8_t no_push[] = { 0, 2, 0, 0, 0, 0 };
	size_t n = strlen(service), n_message = n ? n + 2 : 0;
	uint8_t fields[128], *at = ret;
	const uint8_t message[] = { 0, 0, 0, 0, (uint8_t)n_message };
	size_t n_fields = probe_fields(fields);

	assert(n <= PROBE_SERVICE_MAX);
	at = probe_put(at, preface, sizeof(preface) - 1);
	at = probe_put_frame(at, sizeof(no_push), FRAME_SETTINGS, 0, 0);
	at = probe_put(at, no_push, sizeof(no_push));
	at = probe_put_frame(at, n_fields, FRAME_HEADERS, FLAG_END_HEADERS, OUR_STREAM);
	at = probe_put(at, fields, n_fields);
	at = probe_put_frame(at, sizeof(message) + n_message, FRAME_DATA, FLAG_END_STREAM,
			     OUR_STREAM);
	at = probe_put(at, message, sizeof(message));
	if (n) {
		*at++ = 1 << 3 | 2;
		at = probe_put_text(at, service);
	}
	return (size_t)(at - ret);
}

/* The number at *at, which moves behind it; false: there is none. */
static bool probe_varint(const uint8_t *data, size_t len, size_t *at, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < 64 && *at < len; shift += 7) {
		uint8_t byte = data[(*at)++];

		*ret |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* HealthCheckResponse: its status, where fields that we do not know are passed over. */
static bool probe_status(const uint8_t *data, size_t len, uint64_t *ret)
{
	uint64_t key, value;
	size_t at = 0;

	*ret = 0;
	while (at < len) {
		if (!probe_varint(data, len, &at, &key) || !probe_varint(data, len, &at, &value))
			return false;
		if (key == (1 << 3 | 0))
			*ret = value;
		else if ((key & 7) == 2 && value <= len - at)
			at += (size_t)value;
		else if ((key & 7) != 0)
			return false;
	}
	return true;
}

/* Whether the message is whole decides, and then what it says. */
static enum probe_verdict probe_look(struct probe_grpc *p)
{
	size_t n = p->n_body >= MESSAGE_HEAD ? p->body[4] : 0;

	if (p->n_body < MESSAGE_HEAD)
		return PROBE_MORE;
	/* Compressed without being asked, or longer than any answer is. */
	if (p->body[0] || p->body[1] || p->body[2] || p->body[3] ||
	    n > sizeof(p->body) - MESSAGE_HEAD)
		return PROBE_BAD;
	if (p->n_body < MESSAGE_HEAD + n)
		return PROBE_MORE;
	p->answered = probe_status(p->body + MESSAGE_HEAD, n, &p->status);
	return p->answered && p->status == SERVING ? PROBE_GOOD : PROBE_BAD;
}

/* The head of a frame is there. */
static enum probe_verdict probe_begin(struct probe_grpc *p)
{
	const uint8_t *h = p->head;
	uint32_t stream =
		(uint32_t)(h[5] & 0x7f) << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8];
	uint8_t type = h[3], flags = h[4];
	bool ours = stream == OUR_STREAM;

	p->n_head = 0;
	p->left = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
	if (p->left > FRAME_MAX || (!p->begun && type != FRAME_SETTINGS) ||
	    (ours && type == FRAME_RST_STREAM))
		return PROBE_BAD;
	p->begun = true;
	p->is_answer = ours && type == FRAME_DATA;
	p->pads = p->is_answer && flags & FLAG_PADDED;
	p->padding = 0;
	p->is_last =
		ours && (type == FRAME_DATA || type == FRAME_HEADERS) && flags & FLAG_END_STREAM;
	return p->pads && p->left == 0 ? PROBE_BAD : PROBE_MORE;
}

/* Some of its payload; n <= left. */
static enum probe_verdict probe_payload(struct probe_grpc *p, const uint8_t *data, size_t n)
{
	size_t n_kept;

	p->left -= (uint32_t)n;
	if (p->pads) {
		p->pads = false;
		p->padding = *data;
		return p->padding > p->left ? PROBE_BAD : PROBE_MORE;
	}
	/* What is behind them is padding. */
	if (p->padding > p->left)
		n -= MIN(n, (size_t)(p->padding - p->left));
	n_kept = MIN(n, sizeof(p->body) - p->n_body);
	if (p->is_answer) {
		memcpy(p->body + p->n_body, data, n_kept);
		p->n_body += (unsigned)n_kept;
		return probe_look(p);
	}
	return PROBE_MORE;
}

enum probe_verdict probe_grpc_feed(struct probe_grpc *p, const uint8_t *data, size_t len)
{
	enum probe_verdict verdict = PROBE_MORE;

	while (len > 0 && verdict == PROBE_MORE) {
		size_t n;

		if (p->left) {
			n = p->pads ? 1 : MIN(len, (size_t)p->left);
			verdict = probe_payload(p, data, n);
		} else {
			n = MIN(len, sizeof(p->head) - p->n_head);
			memcpy(p->head + p->n_head, data, n);
			p->n_head += (unsigned)n;
			if (p->n_head == sizeof(p->head))
				verdict = probe_begin(p);
		}
		data += n;
		len -= n;
		p->total += (uint32_t)n;
		if (verdict == PROBE_MORE &&
		    (p->total > PROBE_ANSWER_MAX || (p->is_last && p->left == 0 && p->n_head == 0)))
			return PROBE_BAD;
	}
	return verdict;
}
