/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/websocket.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base64.h>
#include <nettle/sha1.h>

#include "base/macros.h"
#include "base/text/str.h"

#define FRAME_FIN 0x80U
#define FRAME_RESERVED 0x70U
#define FRAME_OPCODE 0x0fU
#define FRAME_CONTROL 0x08U /* of an opcode */
#define FRAME_MASKED 0x80U
#define FRAME_LENGTH 0x7fU
#define FRAME_LENGTH_16 126U
#define FRAME_LENGTH_64 127U
#define MASK_SIZE 4U
#define KEY_SIZE 16U

static_assert(WEBSOCKET_ACCEPT_SIZE == BASE64_ENCODE_RAW_LENGTH(SHA1_DIGEST_SIZE) + 1,
	      "a digest in base64 and a NUL");

struct websocket {
	uint8_t mask[MASK_SIZE];
	unsigned mask_at;
	uint64_t left;    /* of the payload of the data frame that is under way */
	bool fin;         /* that frame is the last of its message */
	bool in_message;  /* more frames of it are due, or more of the last one */
	bool untold;      /* no piece of the message was told yet */
	uint64_t message; /* bytes of it that its frames have announced */
	uint8_t piece[WEBSOCKET_PIECE_MAX];
};

/* The head of a frame. */
struct frame {
	enum websocket_opcode opcode;
	bool fin;
	uint64_t len;
	uint8_t mask[MASK_SIZE];
	size_t size; /* of the head */
};

struct websocket *websocket_new(void)
{
	return calloc(1, sizeof(struct websocket));
}

struct websocket *websocket_free(struct websocket *w)
{
	free(w);
	return NULL;
}

/* ---- what comes ---- */

static bool opcode_is_known(unsigned opcode)
{
	return opcode <= WEBSOCKET_BINARY ||
	       (opcode >= WEBSOCKET_CLOSE && opcode <= WEBSOCKET_PONG);
}

static uint64_t frame_number(const uint8_t *p, size_t size)
{
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		n = n << 8 | p[i];
	return n;
}

/* 1, 0 where more is needed, -EPROTO. A length has to be in its shortest form. */
static int frame_read(struct frame *f, const uint8_t *data, size_t len)
{
	unsigned opcode, n;
	size_t size;

	if (len < 2)
		return 0;
	opcode = data[0] & FRAME_OPCODE;
	n = data[1] & FRAME_LENGTH;
	if (data[0] & FRAME_RESERVED || !opcode_is_known(opcode) || !(data[1] & FRAME_MASKED))
		return -EPROTO;
	f->opcode = (enum websocket_opcode)opcode;
	f->fin = (data[0] & FRAME_FIN) != 0;
	if (opcode & FRAME_CONTROL && (!f->fin || n > WEBSOCKET_CONTROL_MAX))
		return -EPROTO;
	size = n == FRAME_LENGTH_64 ? 8 : n == FRAME_LENGTH_16 ? 2 : 0;
	f->size = 2 + size + MASK_SIZE;
	if (len < f->size)
		return 0;
	f->len = size ? frame_number(data + 2, size) : n;
	if ((size == 2 && f->len < FRAME_LENGTH_16) ||
	    (size == 8 && (f->len <= UINT16_MAX || f->len > INT64_MAX)))
		return -EPROTO;
	memcpy(f->mask, data + 2 + size, MASK_SIZE);
	return 1;
}

static void websocket_unmask(struct websocket *w, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		w->piece[i] = data[i] ^ w->mask[w->mask_at++ % MASK_SIZE];
	w->mask_at %= MASK_SIZE;
}

static int websocket_take_piece(struct websocket *w, const uint8_t *data, size_t len, size_t *used,
				struct websocket_event *ret)
{
	size_t most = MIN(len, sizeof(w->piece));
	size_t n = MIN(most, w->left);

	if (n == 0 && w->left > 0 && !w->untold)
		return *used > 0;
	websocket_unmask(w, data, n);
	w->left -= n;
	*used += n;
	*ret = (struct websocket_event){ .opcode = WEBSOCKET_BINARY,
					 .data = w->piece,
					 .len = n,
					 .begins = w->untold,
					 .ends = w->left == 0 && w->fin };
	w->untold = false;
	w->in_message = !ret->ends;
	return 1;
}

static bool close_code_is_valid(unsigned code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && code != WEBSOCKET_NO_CODE &&
		code != 1006) ||
	       (code >= 3000 && code < 5000);
}

static int close_read(struct websocket_event *e)
{
	e->code = WEBSOCKET_NO_CODE;
	if (e->len == 0)
		return 0;
	if (e->len == 1)
		return -EPROTO;
	e->code = (unsigned)frame_number(e->data, 2);
	e->data += 2;
	e->len -= 2;
	if (!close_code_is_valid(e->code))
		return -EPROTO;
	return str_is_utf8(e->data, e->len) ? 0 : -EILSEQ;
}

static int websocket_take_control(struct websocket *w, const struct frame *f, const uint8_t *data,
				  size_t len, size_t *used, struct websocket_event *ret)
{
	int r = 0;

	if (len < f->len)
		return 0;
	/* No payload of a message is under way between two frames. */
	memcpy(w->mask, f->mask, MASK_SIZE);
	w->mask_at = 0;
	websocket_unmask(w, data, f->len);
	*ret = (struct websocket_event){ .opcode = f->opcode, .data = w->piece, .len = f->len };
	if (f->opcode == WEBSOCKET_CLOSE)
		r = close_read(ret);
	*used = f->size + f->len;
	return r < 0 ? r : 1;
}

int websocket_take(struct websocket *w, const uint8_t *data, size_t len, size_t *used,
		   struct websocket_event *ret)
{
	struct frame f;
	int r;

	*used = 0;
	*ret = (struct websocket_event){ .opcode = WEBSOCKET_PONG };
	if (w->left > 0)
		return websocket_take_piece(w, data, len, used, ret);
	r = frame_read(&f, data, len);
	if (r <= 0)
		return r;
	if (f.opcode & FRAME_CONTROL)
		return websocket_take_control(w, &f, data + f.size, len - f.size, used, ret);
	if ((f.opcode == WEBSOCKET_CONTINUATION) != w->in_message)
		return -EPROTO;
	if (!w->in_message) {
		w->untold = true;
		w->message = 0;
	}
	if (f.len > WEBSOCKET_MESSAGE_MAX - w->message)
		return -EMSGSIZE;
	w->message += f.len;
	w->in_message = true;
	w->fin = f.fin;
	w->left = f.len;
	memcpy(w->mask, f.mask, MASK_SIZE);
	w->mask_at = 0;
	*used = f.size;
	return websocket_take_piece(w, data + f.size, len - f.size, used, ret);
}

unsigned websocket_code(int error, const char **ret_words)
{
	static const struct {
		int error;
		unsigned code;
		const char *words;
	} known[] = {
		{ -EPROTO, WEBSOCKET_PROTOCOL_ERROR, "that is no masked frame of RFC 6455" },
		{ -EMSGSIZE, WEBSOCKET_TOO_BIG, "a message is longer than 32 MiB" },
		{ -EILSEQ, WEBSOCKET_BAD_DATA, "the reason of a close is not UTF-8" },
		{ -EBADMSG, WEBSOCKET_BAD_DATA, "a message is not in base64" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].error == error) {
			*ret_words = known[i].words;
			return known[i].code;
		}
	*ret_words = strerror(-error);
	return WEBSOCKET_INTERNAL;
}

/* ---- what goes ---- */

int websocket_put_head(struct buf *to, enum websocket_opcode opcode, size_t len)
{
	size_t extended = len > UINT16_MAX ? 8 : len >= FRAME_LENGTH_16 ? 2 : 0;
	uint8_t head[10] = { (uint8_t)(FRAME_FIN | opcode) };

	head[1] = (uint8_t)(extended == 8   ? FRAME_LENGTH_64
			    : extended == 2 ? FRAME_LENGTH_16
					    : len);
	for (size_t i = 0; i < extended; i++)
		head[2 + i] = (uint8_t)((uint64_t)len >> 8 * (extended - 1 - i));
	return buf_add(to, head, 2 + extended);
}

int websocket_put(struct buf *to, enum websocket_opcode opcode, const void *data, size_t len)
{
	int r;

	assert(!(opcode & FRAME_CONTROL) || len <= WEBSOCKET_CONTROL_MAX);
	r = websocket_put_head(to, opcode, len);
	return r < 0 ? r : buf_add(to, data, len);
}

int websocket_put_close(struct buf *to, unsigned code, const char *words)
{
	uint8_t payload[WEBSOCKET_CONTROL_MAX] = { (uint8_t)(code >> 8), (uint8_t)code };
	size_t len = MIN(strlen(words), sizeof(payload) - 2);

	if (code == WEBSOCKET_NO_CODE)
		return websocket_put(to, WEBSOCKET_CLOSE, "", 0);
	memcpy(payload + 2, words, len);
	return websocket_put(to, WEBSOCKET_CLOSE, payload, len + 2);
}

/* ---- the handshake ---- */

static bool key_is_valid(const char *key)
{
	uint8_t bytes[BASE64_DECODE_LENGTH(BASE64_ENCODE_RAW_LENGTH(KEY_SIZE))];
	struct base64_decode_ctx c;
	size_t len = sizeof(bytes);

	if (strlen(key) != BASE64_ENCODE_RAW_LENGTH(KEY_SIZE))
		return false;
	base64_decode_init(&c);
	return base64_decode_update(&c, &len, bytes, strlen(key), key) && base64_decode_final(&c) &&
	       len == KEY_SIZE;
}

int websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT_SIZE])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx c;

	if (!key_is_valid(key))
		return -EINVAL;
	sha1_init(&c);
	sha1_update(&c, strlen(key), (const uint8_t *)key);
	sha1_update(&c, sizeof(guid) - 1, (const uint8_t *)guid);
	sha1_digest(&c, sizeof(digest), digest);
	base64_encode_raw(ret, sizeof(digest), digest);
	ret[WEBSOCKET_ACCEPT_SIZE - 1] = '\0';
	return 0;
}
