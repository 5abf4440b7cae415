/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/pb.h"

#include <errno.h>
#include <string.h>

int pb_read_varint(struct pb_reader *r, uint64_t *ret)
{
	uint64_t value = 0;
	uint8_t byte;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (r->at == r->end)
			return -EBADMSG;
		byte = *r->at++;
		if (shift == 63 && byte > 1)
			return -EBADMSG;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return 0;
		}
	}
	return -EBADMSG;
}

static int pb_read_fixed(struct pb_reader *r, size_t n, uint64_t *ret)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < n)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)r->at[i] << (8 * i);
	r->at += n;
	*ret = value;
	return 0;
}

static int pb_read_bytes(struct pb_reader *r, struct pb_field *f)
{
	uint64_t len;

	if (pb_read_varint(r, &len) < 0 || len > (size_t)(r->end - r->at))
		return -EBADMSG;
	f->data = r->at;
	f->len = (size_t)len;
	r->at += len;
	return 0;
}

int pb_next(struct pb_reader *r, struct pb_field *ret)
{
	uint64_t tag;
	int e = -EBADMSG;

	if (r->at == r->end)
		return 0;
	if (pb_read_varint(r, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > PB_NUMBER_MAX)
		return -EBADMSG;
	*ret = (struct pb_field){ .number = (uint32_t)(tag >> 3), .wire = (enum pb_wire)(tag & 7) };
	if (ret->wire == PB_VARINT)
		e = pb_read_varint(r, &ret->value);
	else if (ret->wire == PB_FIXED64)
		e = pb_read_fixed(r, 8, &ret->value);
	else if (ret->wire == PB_FIXED32)
		e = pb_read_fixed(r, 4, &ret->value);
	else if (ret->wire == PB_BYTES)
		e = pb_read_bytes(r, ret);
	return e < 0 ? e : 1;
}

int pb_find(const void *data, size_t len, uint32_t number, struct pb_field *ret)
{
	struct pb_reader r = pb_reader(data, len);
	struct pb_field f;
	int n;

	for (;;) {
		n = pb_next(&r, &f);
		if (n <= 0)
			return n;
		if (f.number == number && f.wire == PB_BYTES) {
			*ret = f;
			return 1;
		}
	}
}

bool pb_is(const struct pb_field *f, const char *text)
{
	return f->len == strlen(text) && memcmp(f->data, text, f->len) == 0;
}

static int pb_put_raw_varint(struct buf *b, uint64_t value)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n] = (uint8_t)(value & 0x7f);
		value >>= 7;
		if (value)
			bytes[n] |= 0x80;
		n++;
	} while (value);
	return buf_add(b, bytes, n);
}

int pb_put_varint(struct buf *b, uint32_t number, uint64_t value)
{
	int r = pb_put_raw_varint(b, (uint64_t)number << 3 | PB_VARINT);

	return r < 0 ? r : pb_put_raw_varint(b, value);
}

int pb_put_bytes(struct buf *b, uint32_t number, const void *data, size_t len)
{
	int r = pb_put_raw_varint(b, (uint64_t)number << 3 | PB_BYTES);

	if (r == 0)
		r = pb_put_raw_varint(b, len);
	return r < 0 ? r : buf_add(b, data, len);
}

int pb_put_str(struct buf *b, uint32_t number, const char *s)
{
	return pb_put_bytes(b, number, s, strlen(s));
}
