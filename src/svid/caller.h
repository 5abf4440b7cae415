/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_SVID_CALLER_H
#define NACRE_SVID_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/time/clock.h"
#include "wire/message/gatemsg.h"

/*
 * Connections of workloads, each with who is at its other end by the daemon's word, its identities,
 * and the streams that are told of them. A key is made here for each connection, at its first
 * FetchX509SVID, and anew for each renewal; it is in memory alone, and is overwritten at its end.
 * Certificates are renewed at half of their life. Where that cannot be had it is tried again, and
 * CALLERS_MARGIN before the old ones end the streams end.
 */

#define CALLERS_MAX 1024
#define CALLERS_MARGIN 30 /* seconds */
#define CALLERS_RETRY (1 * NSEC_PER_SEC)
#define CALLERS_RETRY_MAX (60 * NSEC_PER_SEC)

struct caller;
struct loop;
struct rpc_call;

/* A value; what it points to is its owner's. */
struct callers {
	struct loop *loop;
	/* Asks for a certificate, which comes by callers_signed() or callers_denied(). */
	void (*wish)(void *userdata, const struct gatemsg *m);
	void *userdata;
	struct list all;
	size_t n;
	uint32_t last_request;
	char domain[SPIFFE_DOMAIN_MAX + 1];
	struct buf bundle; /* empty: not known yet */
};

void callers_init(struct callers *all, struct loop *loop,
		  void (*wish)(void *userdata, const struct gatemsg *m), void *userdata);
/* Sets the trust domain of their certificates and the bundle that these are verified against, at
 * first and whenever it changes. 0 or -ENOMEM. */
int callers_know(struct callers *all, const char *domain, const struct gate_bytes *bundle);
/* fd: of its connection, only to end it; taken over. 0 or -ENOMEM, or -ENOSPC past CALLERS_MAX. */
int caller_new(struct callers *all, const struct gatemsg *m, int fd);
/* Its streams must have ended. NULL is fine. */
struct caller *caller_free(struct caller *c);
struct caller *callers_find(const struct callers *all, uint32_t number);
/* Ends its connection. */
void caller_end(const struct caller *c);
void callers_signed(struct callers *all, const struct gatemsg *m);
void callers_denied(struct callers *all, const struct gatemsg *m);

/* A call that is told of bundles alone, or of identities, until it ends: ends it. */
void caller_watch(struct caller *c, struct rpc_call *call, bool bundles);

#endif
