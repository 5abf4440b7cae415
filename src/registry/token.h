/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_TOKEN_H
#define NACRE_REGISTRY_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/time/clock.h"
#include "registry/challenge.h"
#include "registry/registry.h"

/* How an endpoint is told who asks: what goes into the Authorization header, and the request for a
 * bearer token. */

struct registry_token {
	char *header;   /* "Authorization: ...", or NULL */
	nsec_t expires; /* of the monotonic clock; 0: never */
	unsigned made;  /* how often one was: which one this is */
};

/* The header for an endpoint; NULL: none is known (any more). */
const char *token_header(struct registry *r, size_t endpoint);
void token_forget(struct registry *r, size_t endpoint);
/* Whether credentials of any kind were given for this endpoint. */
bool token_has_credentials(const struct registry *r, size_t endpoint);
/* Credentials that the registry takes as they are: 1 where a header was made of them. */
int token_direct(struct registry *r, size_t endpoint, bool basic, struct error *err);

/* A request to a realm; its texts are owned. */
struct token_request {
	struct url url;
	bool post;
	bool own; /* the realm's host is the endpoint's */
	char *headers[4];
	struct buf body;
};

/*
 * Should: refuse a realm that is nearer than the registry or less protected, and show it
 * credentials only where they belong. A realm that may not see them is asked without.
 */
int token_request(struct token_request *ret, struct registry *r, size_t endpoint,
		  const struct challenge *c, struct error *err);
void token_request_done(struct token_request *q);
/* The answer of the realm. */
int token_take(struct registry *r, size_t endpoint, const struct buf *answer, struct error *err);

#endif
