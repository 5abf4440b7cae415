/* SPDX-License-Identifier: Apache-2.0 */
#include "svid/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "gate/gate_identity.h"
#include "identity/cert.h"
#include "identity/key.h"
#include "loop/loop.h"
#include "rpc/server/server.h"
#include "svid/workload.pb-c.h"

struct svid {
	char *id;
	uint32_t request; /* that its next certificate was asked for with; 0: none was */
	uint8_t chain[GATE_CHAIN_MAX], next[GATE_CHAIN_MAX];
	size_t len, next_len; /* 0: there is none */
};

struct caller {
	struct list siblings;
	struct callers *all;
	uint32_t number;
	int fd;
	char *refusal; /* why it has no identity; "": it has */
	struct svid svids[GATE_SVID_COUNT];
	struct key *key, *next; /* of the certificates, and of those that are asked for */
	uint64_t not_after;     /* of those that end first; seconds since 1970 */
	nsec_t retry;
	struct loop_timer timer;
	struct list watchers;
};

/* A stream, in the arena of its call. */
struct watcher {
	struct list siblings;
	struct caller *caller;
	struct rpc_call *call;
	bool bundles; /* it is told of these alone */
	bool due;     /* there is something that it was not told */
};

/* ---- what streams are told ---- */

static struct gate_bytes callers_bundle(const struct callers *all)
{
	return (struct gate_bytes){ buf_data(&all->bundle), all->bundle.len };
}

static int watcher_send_bundles(const struct watcher *w)
{
	const struct gate_bytes bundle = callers_bundle(w->caller->all);
	char id[SPIFFE_SIZE];
	X509BundlesResponse__BundlesEntry entry = X509_BUNDLES_RESPONSE__BUNDLES_ENTRY__INIT;
	X509BundlesResponse__BundlesEntry *entries[] = { &entry };
	X509BundlesResponse m = X509_BUNDLES_RESPONSE__INIT;

	(void)str_printf(id, sizeof(id), "spiffe://%s", w->caller->all->domain);
	entry.key = id;
	entry.value = (ProtobufCBinaryData){ bundle.len, (uint8_t *)(uintptr_t)bundle.data };
	m.bundles = entries;
	m.n_bundles = 1;
	return rpc_call_send(w->call, &m.base);
}

static int watcher_send_svids(const struct watcher *w)
{
	static const char *const hints[GATE_SVID_COUNT] = { [GATE_SVID_INSTANCE] = "instance" };
	const struct gate_bytes bundle = callers_bundle(w->caller->all);
	struct caller *c = w->caller;
	X509SVID svids[GATE_SVID_COUNT], *list[GATE_SVID_COUNT];
	X509SVIDResponse m = X509_SVIDRESPONSE__INIT;
	uint8_t key[KEY_PKCS8_MAX];
	int len = key_pkcs8(c->key, key, NULL);
	int r;

	if (len < 0)
		return len;
	for (size_t i = 0; i < GATE_SVID_COUNT; i++) {
		x509_svid__init(&svids[i]);
		svids[i].spiffe_id = c->svids[i].id;
		svids[i].x509_svid = (ProtobufCBinaryData){ c->svids[i].len, c->svids[i].chain };
		svids[i].x509_svid_key = (ProtobufCBinaryData){ (size_t)len, key };
		svids[i].bundle =
			(ProtobufCBinaryData){ bundle.len, (uint8_t *)(uintptr_t)bundle.data };
		if (hints[i])
			svids[i].hint = (char *)(uintptr_t)hints[i];
		list[i] = &svids[i];
	}
	m.svids = list;
	m.n_svids = GATE_SVID_COUNT;
	r = rpc_call_send(w->call, &m.base);
	key_wipe(key, sizeof(key));
	return r;
}

/* Ends the call. */
static void watcher_end(struct watcher *w, enum error_kind kind, const char *words)
{
	struct error err = ERROR_INIT;

	list_remove(&w->siblings);
	rpc_call_on_cancel(w->call, NULL, NULL);
	rpc_call_on_writable(w->call, NULL, NULL);
	(void)error_refuse(&err, kind, "%s", words);
	rpc_call_fail(w->call, &err);
}

/* What is due, once it is known and the client has taken what was told before. */
static void watcher_tell(struct watcher *w)
{
	const struct caller *c = w->caller;
	int r;

	if (!w->due || c->all->bundle.len == 0 || (!w->bundles && !c->key) ||
	    !rpc_call_writable(w->call))
		return;
	w->due = false;
	r = w->bundles ? watcher_send_bundles(w) : watcher_send_svids(w);
	if (r < 0)
		watcher_end(w, ERROR_EXHAUSTED, "out of memory");
}

static void caller_tell(struct caller *c, bool svids_alone)
{
	struct watcher *w;

	list_for_each (w, &c->watchers, struct watcher, siblings) {
		w->due = w->due || !w->bundles || !svids_alone;
		watcher_tell(w);
	}
}

static void watcher_writable(struct rpc_call *call, void *data)
{
	(void)call;
	watcher_tell(data);
}

static void watcher_cancelled(struct rpc_call *call, void *data)
{
	struct watcher *w = data;

	(void)call;
	watcher_end(w, ERROR_CANCELLED, "the call was cancelled");
}

/* ---- keys and certificates ---- */

static void caller_forget_next(struct caller *c)
{
	c->next = key_free(c->next);
	for (size_t i = 0; i < GATE_SVID_COUNT; i++) {
		c->svids[i].request = 0;
		c->svids[i].next_len = 0;
	}
}

/* Tried again later; before the old certificates end those who have them are told that there are no
 * more, and others at once. */
static void caller_fail(struct caller *c, const char *why)
{
	bool over = !c->key || gate_identity_now() + CALLERS_MARGIN >= c->not_after;
	struct watcher *w;

	caller_forget_next(c);
	if (over)
		c->key = key_free(c->key);
	c->retry = MIN(c->retry ? 2 * c->retry : CALLERS_RETRY, CALLERS_RETRY_MAX);
	loop_timer_set(&c->timer, over ? NSEC_NEVER : c->retry);
	list_for_each (w, &c->watchers, struct watcher, siblings)
		if (over && !w->bundles)
			watcher_end(w, ERROR_UNAVAILABLE, why);
}

static int caller_ask_for(struct caller *c, size_t i, const uint8_t *spki, size_t len)
{
	struct callers *all = c->all;
	struct gatemsg m = { .type = GATEMSG_WISH,
			     .wish = { .caller = c->number, .whose = (uint32_t)i } };

	if (++all->last_request == 0)
		all->last_request = 1;
	c->svids[i].request = all->last_request;
	m.wish.request = all->last_request;
	m.wish.spki = (struct gate_bytes){ spki, len };
	all->wish(all->userdata, &m);
	return 0;
}

static void caller_ask(struct caller *c)
{
	uint8_t spki[KEY_SPKI_MAX];
	int len;

	if (c->next)
		return;
	len = key_new_user(&c->next, NULL) < 0 ? -ENOMEM : key_spki(c->next, spki, NULL);
	if (len < 0) {
		caller_fail(c, "no key could be made");
		return;
	}
	for (size_t i = 0; i < GATE_SVID_COUNT; i++)
		(void)caller_ask_for(c, i, spki, (size_t)len);
	loop_timer_set(&c->timer, CALLERS_RETRY_MAX);
}

/* They are due, or the daemon has not answered. */
static void caller_on_timer(struct loop_timer *t)
{
	struct caller *c = container_of(t, struct caller, timer);

	if (c->next)
		caller_fail(c, "the node has not signed the certificates");
	else
		caller_ask(c);
}

/* Both are there. */
static void caller_renewed(struct caller *c)
{
	uint64_t first = UINT64_MAX, begin, end;

	for (size_t i = 0; i < GATE_SVID_COUNT; i++) {
		const struct svid *s = &c->svids[i];

		if (cert_check_key(s->next, s->next_len, c->next, NULL) < 0 ||
		    cert_times(s->next, s->next_len, &begin, &end, NULL) < 0) {
			caller_fail(c, "the node has signed another key");
			return;
		}
		first = MIN(first, end);
	}
	c->key = key_free(c->key);
	c->key = c->next;
	c->next = NULL;
	for (size_t i = 0; i < GATE_SVID_COUNT; i++) {
		struct svid *s = &c->svids[i];

		memcpy(s->chain, s->next, s->next_len);
		s->len = s->next_len;
		s->next_len = 0;
	}
	c->not_after = first;
	c->retry = 0;
	loop_timer_set(&c->timer, gate_identity_renew_at(first) - clock_mono());
	caller_tell(c, true);
}

static struct caller *callers_waiting(const struct callers *all, uint32_t request,
				      struct svid **ret)
{
	struct caller *c;

	list_for_each (c, (struct list *)(uintptr_t)&all->all, struct caller, siblings)
		for (size_t i = 0; i < GATE_SVID_COUNT; i++)
			if (c->svids[i].request == request) {
				*ret = &c->svids[i];
				return c;
			}
	return NULL;
}

void callers_signed(struct callers *all, const struct gatemsg *m)
{
	struct svid *s = NULL;
	struct caller *c = callers_waiting(all, m->signed_.request, &s);

	if (!c || m->signed_.chain.len > sizeof(s->next))
		return;
	s->request = 0;
	memcpy(s->next, m->signed_.chain.data, m->signed_.chain.len);
	s->next_len = m->signed_.chain.len;
	for (size_t i = 0; i < GATE_SVID_COUNT; i++)
		if (c->svids[i].next_len == 0)
			return;
	caller_renewed(c);
}

void callers_denied(struct callers *all, const struct gatemsg *m)
{
	struct svid *s = NULL;
	struct caller *c = callers_waiting(all, m->denied.request, &s);

	if (c)
		caller_fail(c, m->denied.text);
}

/* ---- the interface ---- */

void callers_init(struct callers *all, struct loop *loop,
		  void (*wish)(void *userdata, const struct gatemsg *m), void *userdata)
{
	*all = (struct callers){ .loop = loop, .wish = wish, .userdata = userdata };
	list_init(&all->all);
}

int callers_know(struct callers *all, const char *domain, const struct gate_bytes *bundle)
{
	struct caller *c;

	buf_clear(&all->bundle);
	if (str_copy(all->domain, sizeof(all->domain), domain) < 0 ||
	    buf_add(&all->bundle, bundle->data, bundle->len) < 0)
		return -ENOMEM;
	list_for_each (c, &all->all, struct caller, siblings) {
		caller_tell(c, false);
		/* What it has may be signed by an authority that is gone by now. */
		if (c->key)
			caller_ask(c);
	}
	return 0;
}

int caller_new(struct callers *all, const struct gatemsg *m, int fd)
{
	_cleanup_fd_ int owned = fd;
	struct caller *c = all->n < CALLERS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return all->n < CALLERS_MAX ? -ENOMEM : -ENOSPC;
	c->all = all;
	c->number = m->caller.caller;
	c->fd = TAKE_FD(owned);
	list_init(&c->watchers);
	list_init(&c->siblings);
	list_add_tail(&all->all, &c->siblings);
	all->n++;
	loop_timer_init(&c->timer, all->loop, caller_on_timer);
	c->refusal = strdup(m->caller.refusal);
	c->svids[GATE_SVID_STABLE].id = strdup(m->caller.id);
	c->svids[GATE_SVID_INSTANCE].id = strdup(m->caller.instance_id);
	if (c->refusal && c->svids[GATE_SVID_STABLE].id && c->svids[GATE_SVID_INSTANCE].id)
		return 0;
	(void)caller_free(c);
	return -ENOMEM;
}

struct caller *caller_free(struct caller *c)
{
	if (!c)
		return NULL;
	list_remove(&c->siblings);
	c->all->n--;
	loop_timer_done(&c->timer);
	c->key = key_free(c->key);
	caller_forget_next(c);
	for (size_t i = 0; i < GATE_SVID_COUNT; i++)
		free(c->svids[i].id);
	free(c->refusal);
	(void)fd_close(c->fd);
	free(c);
	return NULL;
}

struct caller *callers_find(const struct callers *all, uint32_t number)
{
	struct caller *c;

	list_for_each (c, (struct list *)(uintptr_t)&all->all, struct caller, siblings)
		if (c->number == number)
			return c;
	return NULL;
}

void caller_end(const struct caller *c)
{
	(void)shutdown(c->fd, SHUT_RDWR);
}

void caller_watch(struct caller *c, struct rpc_call *call, bool bundles)
{
	struct watcher *w = arena_alloc(rpc_call_arena(call), sizeof(*w));
	struct error err = ERROR_INIT;

	if (!w)
		(void)error_set(&err, -ENOMEM, "watch the identities");
	else if (*c->refusal)
		(void)error_refuse(&err, ERROR_DENIED, "no identity issued: %s", c->refusal);
	if (err.code) {
		rpc_call_fail(call, &err);
		return;
	}
	*w = (struct watcher){ .caller = c, .call = call, .bundles = bundles, .due = true };
	list_init(&w->siblings);
	list_add_tail(&c->watchers, &w->siblings);
	rpc_call_on_cancel(call, watcher_cancelled, w);
	rpc_call_on_writable(call, watcher_writable, w);
	if (!bundles && !c->key)
		caller_ask(c);
	else
		watcher_tell(w);
}
