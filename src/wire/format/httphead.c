/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/httphead.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "base/text/str.h"

bool http_text_is(struct http_text t, const char *word)
{
	return t.len == strlen(word) && strncasecmp(t.at, word, t.len) == 0;
}

struct http_text http_text_trim(struct http_text t)
{
	while (t.len > 0 && (*t.at == ' ' || *t.at == '\t')) {
		t.at++;
		t.len--;
	}
	while (t.len > 0 && (t.at[t.len - 1] == ' ' || t.at[t.len - 1] == '\t'))
		t.len--;
	return t;
}

struct http_text http_text_cut(struct http_text *rest, char c)
{
	const char *end = rest->len ? memchr(rest->at, c, rest->len) : NULL;
	struct http_text t = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
	size_t n = MIN(t.len + 1, rest->len);

	rest->at += n;
	rest->len -= n;
	return t;
}

int http_text_keep(struct http_text t, char *to, size_t size)
{
	if (t.len >= size)
		return -ENOSPC;
	return MIN(str_printf(to, size, "%.*s", (int)t.len, t.at), 0);
}

/* A line without its end. */
static int httphead_line(struct http_text *rest, struct http_text *ret)
{
	*ret = http_text_cut(rest, '\n');
	if (ret->len == 0 || ret->at[ret->len - 1] != '\r')
		return -EPROTO;
	ret->len--;
	for (size_t i = 0; i < ret->len; i++)
		if (((unsigned char)ret->at[i] < ' ' && ret->at[i] != '\t') || ret->at[i] == 0x7f)
			return -EPROTO;
	return 0;
}

static int httphead_read_request(struct httphead *h, struct http_text line)
{
	struct http_text method = http_text_cut(&line, ' ');

	h->target = http_text_cut(&line, ' ');
	h->is_old = http_text_is(line, "HTTP/1.0");
	if (method.len == 0 || h->target.len == 0 || h->target.at[0] != '/' ||
	    (!h->is_old && !http_text_is(line, "HTTP/1.1")))
		return -EPROTO;
	return http_text_keep(method, h->method, sizeof(h->method)) < 0 ? -ENOBUFS : 0;
}

static int httphead_read_field(struct http_text line, struct http_text *name,
			       struct http_text *value)
{
	*value = line;
	*name = http_text_cut(value, ':');
	if (name->len == 0 || name->len == line.len || memchr(name->at, ' ', name->len) ||
	    memchr(name->at, '\t', name->len))
		return -EPROTO;
	*value = http_text_trim(*value);
	return 0;
}

/* No request has a body here. */
static int httphead_check_field(struct http_text line)
{
	struct http_text name, value;
	int r = httphead_read_field(line, &name, &value);

	if (r < 0)
		return r;
	if (http_text_is(name, "transfer-encoding") ||
	    (http_text_is(name, "content-length") && !http_text_is(value, "0")))
		return -EPROTO;
	return 0;
}

int httphead_take(const uint8_t *data, size_t len, size_t *used, struct httphead *ret)
{
	const char *end = memmem(data, MIN(len, HTTPHEAD_MAX), "\r\n\r\n", 4);
	struct http_text rest = { (const char *)data, 0 }, line;
	int r;

	*ret = (struct httphead){ .is_old = false };
	*used = 0;
	if (!end)
		return len >= HTTPHEAD_MAX ? -ENOBUFS : 0;
	rest.len = (size_t)(end - rest.at) + 2;
	r = httphead_line(&rest, &line);
	if (r == 0)
		r = httphead_read_request(ret, line);
	ret->fields = rest;
	while (r == 0 && rest.len > 0) {
		r = httphead_line(&rest, &line);
		if (r == 0)
			r = httphead_check_field(line);
	}
	*used = (size_t)(end - (const char *)data) + 4;
	return r < 0 ? r : 1;
}

bool httphead_next(struct http_text *fields, struct http_text *ret_name,
		   struct http_text *ret_value)
{
	struct http_text line;

	return fields->len > 0 && httphead_line(fields, &line) == 0 &&
	       httphead_read_field(line, ret_name, ret_value) == 0;
}
