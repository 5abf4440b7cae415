/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/share.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/str.h"

static bool share_is_of(const struct share *s, const struct rpc_peer *peer)
{
	if (s->peer.remote || peer->remote)
		return s->peer.remote && peer->remote &&
		       str_eq(s->peer.remote->id, peer->remote->id);
	return s->peer.uid == peer->uid && (peer->uid != geteuid() || s->peer.pid == peer->pid);
}

static struct share *share_find(const struct share_pool *p, const struct rpc_peer *peer)
{
	struct share *s;

	list_for_each (s, (struct list *)(uintptr_t)&p->shares, struct share, member)
		if (share_is_of(s, peer))
			return s;
	return NULL;
}

void share_pool_init(struct share_pool *p)
{
	list_init(&p->shares);
}

int share_new(struct share **ret, struct share_pool *p, const struct rpc_peer *peer)
{
	struct share *s = share_find(p, peer);

	if (s) {
		*ret = share_ref(s);
		return 0;
	}
	s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct share){ .pool = p, .peer = *peer, .refs = 1 };
	(void)rpc_remote_ref(s->peer.remote);
	list_init(&s->member);
	list_add_tail(&p->shares, &s->member);
	*ret = s;
	return 0;
}

struct share *share_ref(struct share *s)
{
	s->refs++;
	return s;
}

struct share *share_unref(struct share *s)
{
	if (!s || --s->refs > 0)
		return NULL;
	for (size_t i = 0; i < SHARE_KIND_COUNT; i++)
		assert(s->used[i] == 0);
	list_remove(&s->member);
	(void)rpc_remote_unref(s->peer.remote);
	free(s);
	return NULL;
}

bool share_take(struct share *s, enum share_kind kind, size_t n)
{
	struct share_pool *p = s->pool;
	size_t mine = p->undivided ? 0 : s->used[kind];

	if (n > share_left(p->limit[kind], p->used[kind], mine))
		return false;
	s->used[kind] += n;
	p->used[kind] += n;
	return true;
}

void share_give(struct share *s, enum share_kind kind, size_t n)
{
	assert(s->used[kind] >= n);
	s->used[kind] -= n;
	s->pool->used[kind] -= n;
}

bool share_is_crowded_out(const struct share *s, enum share_kind kind)
{
	const struct share_pool *p = s->pool;

	return p->used[kind] == p->limit[kind] && (p->undivided || s->used[kind] == 0);
}

static const struct {
	const char *name;
	const char *advice;
} share_words[] = {
	[SHARE_CONNECTIONS] = { "connections", "close some, or make the call on one of them" },
	[SHARE_CALLS] = { "calls", "end some first" },
	[SHARE_BYTES] = { "bytes of requests", "wait until some of its calls have ended" },
};
static_assert(ARRAY_SIZE(share_words) == SHARE_KIND_COUNT, "words for each kind");

int share_refuse(const struct share_pool *p, const struct rpc_peer *peer, enum share_kind kind,
		 struct error *err)
{
	const struct share *s = share_find(p, peer);
	const char *name = share_words[kind].name;
	size_t mine = s ? s->used[kind] : 0;

	if (mine == 0)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%s: all %zu are in use by other clients (try again later)",
				    name, p->limit[kind]);
	if (peer->remote)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%s: %.200s has %zu of the %zu for all clients, its share (%s)",
				    name, peer->remote->id, mine, p->limit[kind],
				    share_words[kind].advice);
	if (peer->uid != geteuid())
		return error_refuse(
			err, ERROR_EXHAUSTED,
			"%s: user %u has %zu of the %zu for all clients, its share (%s)", name,
			(unsigned)peer->uid, mine, p->limit[kind], share_words[kind].advice);
	return error_refuse(err, ERROR_EXHAUSTED,
			    "%s: process %d has %zu of the %zu for all clients, its share (%s)",
			    name, (int)peer->pid, mine, p->limit[kind], share_words[kind].advice);
}
