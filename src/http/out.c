/* SPDX-License-Identifier: Apache-2.0 */
#include "http/out.h"

#include <assert.h>

void http_out_done(struct http_out *o)
{
	buf_done(&o->own);
	*o = (struct http_out)HTTP_OUT_INIT;
}

int http_out_add(struct http_out *o, const void *data, size_t len)
{
	int r = buf_add(&o->own, data, len);

	if (r < 0)
		return r;
	if (o->n_parts == 0 || o->parts[o->n_parts - 1].lent) {
		assert(o->n_parts < HTTP_OUT_PARTS);
		o->parts[o->n_parts].lent = NULL;
		o->parts[o->n_parts].len = 0;
		o->n_parts++;
	}
	o->parts[o->n_parts - 1].len += len;
	o->len += len;
	return 0;
}

int http_out_lend(struct http_out *o, const uint8_t *data, size_t len)
{
	/* One part more stays free, for what is added behind. */
	if (len < HTTP_OUT_LEND_MIN || o->n_parts + 2 > HTTP_OUT_PARTS)
		return http_out_add(o, data, len);
	o->parts[o->n_parts].lent = data;
	o->parts[o->n_parts].len = len;
	o->n_parts++;
	o->len += len;
	return 0;
}

size_t http_out_iov(const struct http_out *o, struct iovec to[HTTP_OUT_PARTS])
{
	const uint8_t *own = buf_data(&o->own), *at;

	for (size_t i = 0; i < o->n_parts; i++) {
		at = o->parts[i].lent;
		if (!at) {
			at = own;
			own += o->parts[i].len;
		}
		to[i] = (struct iovec){
			/* What is sent is not changed; the type only lacks the const. */
			.iov_base = (void *)(uintptr_t)at,
			.iov_len = o->parts[i].len,
		};
	}
	return o->n_parts;
}

int http_out_rest(const struct http_out *o, size_t n, struct buf *rest)
{
	struct iovec parts[HTTP_OUT_PARTS];
	size_t n_parts = http_out_iov(o, parts);
	uint8_t *to;
	size_t skip;
	int r;

	assert(n <= o->len);
	/* At once, so that nothing is moved while it grows. */
	if (n < o->len) {
		r = buf_reserve(rest, o->len - n, &to);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < n_parts; i++) {
		skip = MIN(n, parts[i].iov_len);
		n -= skip;
		r = buf_add(rest, (const uint8_t *)parts[i].iov_base + skip,
			    parts[i].iov_len - skip);
		if (r < 0)
			return r;
	}
	return 0;
}

int http_out_own(struct http_out *o)
{
	struct buf all = BUF_INIT;
	int r;

	if (o->own.len == o->len)
		return 0;
	r = http_out_rest(o, 0, &all);
	if (r < 0) {
		buf_done(&all);
		return r;
	}
	buf_done(&o->own);
	*o = (struct http_out){ .own = all, .n_parts = 1, .len = all.len };
	o->parts[0].len = all.len;
	return 0;
}
