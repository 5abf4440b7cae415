/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/head.h"

#include <errno.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "wire/format/httphead.h"

/* Of a list "a, b" each word. */
static void head_add_words(struct head_words *to, struct http_text value)
{
	while (value.len > 0) {
		struct http_text word = http_text_trim(http_text_cut(&value, ','));

		if (word.len == 0)
			continue;
		if (to->n < HEAD_PROTOCOLS_MAX &&
		    http_text_keep(word, to->words[to->n], HEAD_WORD_MAX) == 0)
			to->n++;
		else
			to->is_cut = true;
	}
}

/* A field that may be there once. */
static int head_set_word(char to[HEAD_WORD_MAX], struct http_text value)
{
	if (*to)
		return -EPROTO;
	(void)http_text_keep(value, to, HEAD_WORD_MAX);
	return 0;
}

static void head_see_connection(struct head *h, struct http_text value)
{
	while (value.len > 0)
		if (http_text_is(http_text_trim(http_text_cut(&value, ',')), "upgrade"))
			h->is_upgrade = true;
}

static int head_see_field(struct head *h, struct http_text name, struct http_text value)
{
	if (http_text_is(name, "connection"))
		head_see_connection(h, value);
	else if (http_text_is(name, "upgrade"))
		(void)http_text_keep(value, h->upgrade, sizeof(h->upgrade));
	else if (http_text_is(name, "x-stream-protocol-version"))
		head_add_words(&h->protocols, value);
	else if (http_text_is(name, "sec-websocket-protocol"))
		head_add_words(&h->subprotocols, value);
	else if (http_text_is(name, "sec-websocket-key"))
		return head_set_word(h->websocket_key, value);
	else if (http_text_is(name, "sec-websocket-version"))
		return head_set_word(h->websocket_version, value);
	return 0;
}

int head_take(const uint8_t *data, size_t len, size_t *used, struct head *ret)
{
	struct http_text name, value, path;
	struct httphead h;
	int r = httphead_take(data, len, used, &h);

	*ret = (struct head){ .is_old = h.is_old };
	if (r <= 0)
		return r;
	path = http_text_cut(&h.target, '?');
	(void)str_copy(ret->method, sizeof(ret->method), h.method);
	if (http_text_keep(path, ret->path, sizeof(ret->path)) < 0)
		return -ENOBUFS;
	while (r > 0 && httphead_next(&h.fields, &name, &value))
		if (head_see_field(ret, name, value) < 0)
			r = -EPROTO;
	return r;
}
