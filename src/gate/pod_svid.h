/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_POD_SVID_H
#define NACRE_GATE_POD_SVID_H

#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/time/clock.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

/*
 * The identity of a pod, as its metadata service tells it: a JSON object of the certificate, its
 * key and the bundle, each in PEM, with the names that SPIFFE's Workload API gives them (x509_svid,
 * x509_svid_key, bundle), and expires_at in seconds since 1970. Made when it is asked for, and told
 * again for POD_SVID_FRESH. Values inside their owners.
 */

#define POD_SVID_FRESH (60 * NSEC_PER_SEC)

struct key;
struct pod_svid;

struct pod_svids {
	struct loop *loop;
	/* Asks the daemon, whose answer comes by pod_svids_signed() or pod_svids_denied(). */
	void (*tell)(void *userdata, const struct gatemsg *m);
	void *userdata;
	struct list all;
	uint32_t last_request;
	struct buf bundle; /* empty: not known yet */
};

struct pod_svid {
	struct list siblings;
	struct pod_svids *all;
	void (*on_text)(struct pod_svid *s, const struct buf *text); /* NULL: there is none now */
	struct key *key;
	uint32_t request; /* that a certificate was asked for with; 0: none was */
	struct buf text;
	nsec_t until; /* clock_mono(): it is told again before */
	struct loop_timer patience;
};

void pod_svids_init(struct pod_svids *all, struct loop *loop,
		    void (*tell)(void *userdata, const struct gatemsg *m), void *userdata);
/* Sets the bundle; what was made with another one is not told any more. 0 or -ENOMEM. */
int pod_svids_know(struct pod_svids *all, const struct gate_bytes *bundle);
void pod_svids_signed(struct pod_svids *all, const struct gatemsg *m);
void pod_svids_denied(struct pod_svids *all, const struct gatemsg *m);

void pod_svid_init(struct pod_svid *s, struct pod_svids *all,
		   void (*on_text)(struct pod_svid *s, const struct buf *text));
void pod_svid_done(struct pod_svid *s);
/* The text; NULL: it is asked for, and on_text() tells it (at once where nothing can be asked).
 * number: of the pod. */
const struct buf *pod_svid_get(struct pod_svid *s, uint32_t number);

#endif
