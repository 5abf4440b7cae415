/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_HTTPHEAD_H
#define NACRE_WIRE_HTTPHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The head of a request of HTTP/1.1 or 1.0 without a body (RFC 9110, 9112). A codec; texts point
 * into the data that was given.
 */

#define HTTPHEAD_MAX ((size_t)16384) /* bytes of it */

/* A part of the data; no NUL at its end. */
struct http_text {
	const char *at;
	size_t len;
};

/* Letters of either case. */
bool http_text_is(struct http_text t, const char *word);
/* Without blanks and tabs at both ends. */
struct http_text http_text_trim(struct http_text t);
/* The text before the next `c`; *rest begins behind that. */
struct http_text http_text_cut(struct http_text *rest, char c);
/* 0, or -ENOSPC where it does not fit. */
int http_text_keep(struct http_text t, char *to, size_t size);

struct httphead {
	char method[16];
	bool is_old;             /* HTTP/1.0 */
	struct http_text target; /* begins with a '/' */
	struct http_text fields; /* httphead_next() */
};

/*
 * 1: it is there, *used bytes long with the empty line, and each of its lines is well-formed; 0:
 * more is needed. -EPROTO: that is none, or a body follows; -ENOBUFS: it, or its method, is too
 * long.
 */
int httphead_take(const uint8_t *data, size_t len, size_t *used, struct httphead *ret);

/* The next field of httphead.fields, which it moves; false at their end. */
bool httphead_next(struct http_text *fields, struct http_text *ret_name,
		   struct http_text *ret_value);

#endif
