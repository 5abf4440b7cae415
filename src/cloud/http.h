/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_HTTP_H
#define NACRE_CLOUD_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "registry/url.h"

/*
 * One request at a time over HTTP, by libcurl, which keeps the connection for the next. For one
 * thread. No redirect is followed, no proxy is asked, no cookie is kept.
 */

#define HTTP_PIN_SIZE 32

struct http {
	void *curl;
	const struct buf *authorities; /* certificates (PEM); NULL: there is no TLS */
	/* SHA-256 of the one certificate that a server may show, whoever signed it; NULL: the
	 * authorities decide. */
	const uint8_t *pinned;
};

struct http_request {
	const char *method, *url;
	const char *const *headers; /* "NAME: VALUE", n_headers of them */
	size_t n_headers;
	const void *body; /* of a POST */
	size_t body_len;
	long timeout_ms;
	size_t answer_max;
	/* Over a connection of its own: on an old one that turns out to be dead libcurl sends a
	 * request a second time without a word. */
	bool fresh;
};

struct http_answer {
	int status;
	int64_t date; /* of the server, in seconds since 1970; 0: it tells none */
};

/* Once, before any thread. -ENOMEM. */
int http_begin(struct error *err);
int http_init(struct http *h, const struct buf *authorities, struct error *err);
void http_done(struct http *h);
/* The body goes into `body`. ERROR_UNAVAILABLE where there is no whole answer; *a is as it was. */
int http_ask(struct http *h, const struct http_request *q, struct http_answer *a, struct buf *body,
	     struct error *err);

/* The header of the last answer, the at-th one of that name, where there is one that fits. Until
 * the next request. */
bool http_header(struct http *h, const char *name, size_t at, char *to, size_t size);

/* Where keys are shown: https, or http to a loopback address. ERROR_INVALID says which of both it
 * is not. */
int http_open_endpoint(struct url *ret, const char *text, struct error *err);
/* The certificates in the file at path, or where that is "" in the one that the variable names,
 * else those of the system, if any. */
int http_open_authorities(struct buf *ret, const char *variable, const char *path,
			  struct error *err);
/* "AA:BB:…" of a SHA-256. */
bool http_read_pin(uint8_t ret[HTTP_PIN_SIZE], const char *text);
/* A pause before the next try: from 0.1 s on (*ms 0), doubled to 5 s, with jitter, so that those
 * who were refused together do not come together. */
void http_rest(int *ms);

#endif
