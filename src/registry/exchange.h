/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_EXCHANGE_H
#define NACRE_REGISTRY_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/time/clock.h"
#include "registry/registry.h"
#include "registry/token.h"
#include "registry/transfer.h"

/*
 * One question to a registry, taken through mirrors, redirects, tokens, pauses and further attempts
 * until there is an answer, or none to be had. Everything happens in client_turn().
 */

struct exchange;

struct exchange_ops {
	/* An attempt begins: `from` may be set to what is there already, and what was heard before
	 * counts no more. May be NULL. */
	void (*on_attempt)(struct exchange *x);
	/* The head of an answer of 2xx, in x->transfer.head. A negative errno: this answer is not
	 * to be had from there, and the next endpoint is asked. */
	int (*on_head)(struct exchange *x, struct error *err);
	int (*on_data)(struct exchange *x, const void *data, size_t len, struct error *err);
	/* Last and once. */
	void (*on_end)(struct exchange *x, const struct error *err);
};

struct exchange_request {
	const char *method;
	const char *what;   /* for errors and notes: "manifest latest" */
	const char *path;   /* behind the repository: "/manifests/latest" */
	uint32_t need;      /* FETCH_CAN_* of the endpoints that are asked */
	const char *accept; /* or NULL */
	const char *content_type;
	const char *content_range; /* of a piece of an upload; or NULL */
	/* An answer that is no document of some seconds, but gets a connection for as long as it
	 * goes on. */
	bool is_long;
	bool once; /* a failed request is not tried again: the caller tries elsewhere */
	bool has_body;
	int body_fd;
	uint64_t body_at;
	const void *body;
	uint64_t body_len;
	/* Bytes that the whole has, with what is there already; 0: not known. Less is a cut. */
	uint64_t whole;
	size_t first; /* endpoint to begin with, modulo their number */
	/* Where an upload goes on: at the Location of the answer before, on the endpoint that gave
	 * it. */
	const struct url *at;
	size_t endpoint;
};

struct exchange {
	struct registry *registry;
	const struct exchange_ops *ops;
	struct exchange_request request; /* its texts live until on_end */
	struct list link;
	struct transfer transfer;
	uint64_t from; /* asked for by Range */
	bool no_range; /* the server does not know it */
	size_t endpoint;
	struct url url; /* of this attempt */
	bool stranger;  /* behind a redirect to another origin */
	unsigned n_redirects, n_challenges, n_failures, n_attempts;
	uint64_t begins;       /* of the file: the first byte of this answer */
	uint64_t throttled_ms; /* that were waited for a registry that answered 429 */
	uint64_t n_heard;      /* of this attempt; many: the next failure counts as the first */
	nsec_t due;            /* of the next attempt; 0: none waits */
	bool asks_token, running;
	unsigned told; /* the token that this attempt has shown (token.h, made); 0: none */
	struct token_request token;
	struct buf body;  /* of an answer that is an error, or of a token server */
	struct error err; /* the worst so far */
};

/* on_end follows, never from within. Names and pointers of the request live until then. */
int exchange_start(struct exchange *x, struct registry *r, const struct exchange_request *request,
		   const struct exchange_ops *ops, struct error *err);
/* Without a word. */
void exchange_stop(struct exchange *x);
/* The URL of the answer: what a Location or Link on it is relative to. */
static inline const struct url *exchange_url(const struct exchange *x)
{
	return &x->url;
}

/* Begins what is due; from client_turn() alone. */
void exchange_turn(struct registry *r);
/* Milliseconds until something is due, at most max. */
int exchange_wait(const struct registry *r, int max);

#endif
