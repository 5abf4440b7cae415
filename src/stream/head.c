/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "base/text/str.h"

/* A part of the text; no NUL at its end. */
struct slice {
	const char *at;
	size_t len;
};

static bool slice_is(struct slice s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static struct slice slice_trim(struct slice s)
{
	while (s.len > 0 && (*s.at == ' ' || *s.at == '\t')) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* What is before the next `c`; *rest begins behind that. */
static struct slice slice_cut(struct slice *rest, char c)
{
	const char *end = rest->len ? memchr(rest->at, c, rest->len) : NULL;
	struct slice s = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
	size_t n = MIN(s.len + 1, rest->len);

	rest->at += n;
	rest->len -= n;
	return s;
}

/* -ENOSPC where it does not fit. */
static int slice_keep(struct slice s, char *to, size_t size)
{
	if (s.len >= size)
		return -ENOSPC;
	return MIN(str_printf(to, size, "%.*s", (int)s.len, s.at), 0);
}

/* Of a list "a, b" each word. */
static void head_add_words(struct head_words *to, struct slice value)
{
	while (value.len > 0) {
		struct slice word = slice_trim(slice_cut(&value, ','));

		if (word.len == 0)
			continue;
		if (to->n < HEAD_PROTOCOLS_MAX &&
		    slice_keep(word, to->words[to->n], HEAD_WORD_MAX) == 0)
			to->n++;
		else
			to->is_cut = true;
	}
}

/* A field that may be there once. */
static int head_set_word(char to[HEAD_WORD_MAX], struct slice value)
{
	if (*to)
		return -EPROTO;
	(void)slice_keep(value, to, HEAD_WORD_MAX);
	return 0;
}

static void head_see_connection(struct head *h, struct slice value)
{
	while (value.len > 0)
		if (slice_is(slice_trim(slice_cut(&value, ',')), "upgrade"))
			h->is_upgrade = true;
}

static int head_read_field(struct head *h, struct slice line)
{
	struct slice value = line;
	struct slice name = slice_cut(&value, ':');

	if (name.len == 0 || name.len == line.len || slice_trim(name).len != name.len)
		return -EPROTO;
	value = slice_trim(value);
	if (slice_is(name, "connection"))
		head_see_connection(h, value);
	else if (slice_is(name, "upgrade"))
		(void)slice_keep(value, h->upgrade, sizeof(h->upgrade));
	else if (slice_is(name, "x-stream-protocol-version"))
		head_add_words(&h->protocols, value);
	else if (slice_is(name, "sec-websocket-protocol"))
		head_add_words(&h->subprotocols, value);
	else if (slice_is(name, "sec-websocket-key"))
		return head_set_word(h->websocket_key, value);
	else if (slice_is(name, "sec-websocket-version"))
		return head_set_word(h->websocket_version, value);
	/* No request has a body here. */
	else if (slice_is(name, "transfer-encoding") ||
		 (slice_is(name, "content-length") && !slice_is(value, "0")))
		return -EPROTO;
	return 0;
}

static int head_read_request(struct head *h, struct slice line)
{
	struct slice method = slice_cut(&line, ' '), target = slice_cut(&line, ' ');
	struct slice path = slice_cut(&target, '?');

	if (method.len == 0 || path.len == 0 || path.at[0] != '/' ||
	    (!slice_is(line, "HTTP/1.1") && !slice_is(line, "HTTP/1.0")))
		return -EPROTO;
	h->is_old = slice_is(line, "HTTP/1.0");
	if (slice_keep(method, h->method, sizeof(h->method)) < 0 ||
	    slice_keep(path, h->path, sizeof(h->path)) < 0)
		return -ENOBUFS;
	return 0;
}

int head_take(const uint8_t *data, size_t len, size_t *used, struct head *ret)
{
	const char *end = memmem(data, MIN(len, HEAD_MAX), "\r\n\r\n", 4);
	struct slice rest = { (const char *)data, 0 };
	bool first = true;
	int r = 0;

	*ret = (struct head){ .is_upgrade = false };
	*used = 0;
	if (!end)
		return len >= HEAD_MAX ? -ENOBUFS : 0;
	rest.len = (size_t)(end - rest.at) + 2;
	if (memchr(rest.at, '\0', rest.len))
		return -EPROTO;
	while (rest.len > 0 && r == 0) {
		struct slice line = slice_cut(&rest, '\n');

		if (line.len == 0 || line.at[line.len - 1] != '\r')
			return -EPROTO;
		line.len--;
		r = first ? head_read_request(ret, line) : head_read_field(ret, line);
		first = false;
	}
	*used = (size_t)(end - (const char *)data) + 4;
	return r < 0 ? r : 1;
}
