/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/share.h"

#include <unistd.h>

#include "rpc/exchange/exchange.h"
#include "unit.h"

static const struct rpc_peer own_process = { .pid = 1 }, own_other = { .pid = 2 };

static struct share_pool pool_of(size_t connections)
{
	return (struct share_pool){ .limit = { [SHARE_CONNECTIONS] = connections,
					       [SHARE_CALLS] = 10,
					       [SHARE_BYTES] = 100 } };
}

static size_t take_all(struct share *s, enum share_kind kind)
{
	size_t n = 0;

	while (share_take(s, kind, 1))
		n++;
	return n;
}

static void give_all(struct share *s)
{
	for (size_t i = 0; i < SHARE_KIND_COUNT; i++)
		share_give(s, (enum share_kind)i, s->used[i]);
	share_unref(s);
}

static struct share *share_as(struct share_pool *p, const struct rpc_peer *who, bool own)
{
	struct rpc_peer as = *who;
	struct share *s;

	as.uid = own ? geteuid() : geteuid() + 1;
	CHECK_INT(share_new(&s, p, &as), 0);
	return s;
}

static void a_peer_has_what_it_leaves_to_others(void)
{
	struct share_pool p = pool_of(1000);
	struct share *a, *b, *c, *d;

	share_pool_init(&p);
	a = share_as(&p, &own_process, true);
	CHECK_INT(take_all(a, SHARE_CONNECTIONS), 500);
	b = share_as(&p, &own_other, true);
	CHECK(a != b);
	CHECK_INT(take_all(b, SHARE_CONNECTIONS), 250);
	/* Processes of another user have one share. */
	c = share_as(&p, &own_process, false);
	d = share_as(&p, &own_other, false);
	CHECK(c == d);
	CHECK_INT(take_all(c, SHARE_CONNECTIONS), 125);
	CHECK(!share_take(d, SHARE_CONNECTIONS, 1));
	CHECK(!share_is_crowded_out(c, SHARE_CONNECTIONS));
	share_give(a, SHARE_CONNECTIONS, 400);
	CHECK_INT(take_all(d, SHARE_CONNECTIONS), 200);
	CHECK(share_take(a, SHARE_BYTES, 50));
	CHECK(!share_take(a, SHARE_BYTES, 1));
	CHECK(!share_take(b, SHARE_BYTES, 51));
	CHECK(share_take(b, SHARE_BYTES, 50));
	CHECK_INT(p.used[SHARE_BYTES], 100);
	give_all(a);
	give_all(b);
	share_unref(d);
	give_all(c);
	CHECK(list_empty(&p.shares));
}

static void the_last_place_is_for_who_has_none(void)
{
	struct share_pool p = pool_of(2);
	struct share *a, *b, *c;

	share_pool_init(&p);
	a = share_as(&p, &own_process, true);
	b = share_as(&p, &own_other, true);
	CHECK_INT(take_all(a, SHARE_CONNECTIONS), 1);
	CHECK_INT(take_all(b, SHARE_CONNECTIONS), 1);
	c = share_as(&p, &own_process, false);
	CHECK_INT(take_all(c, SHARE_CONNECTIONS), 0);
	CHECK(share_is_crowded_out(c, SHARE_CONNECTIONS));
	CHECK(!share_is_crowded_out(a, SHARE_CONNECTIONS));
	p.undivided = true;
	CHECK(share_is_crowded_out(a, SHARE_CONNECTIONS));
	share_give(b, SHARE_CONNECTIONS, 1);
	CHECK(share_take(a, SHARE_CONNECTIONS, 1));
	give_all(a);
	give_all(b);
	give_all(c);
}

static void bytes_are_given_back(void)
{
	struct share_pool p = pool_of(1);
	struct exchange a, b;
	struct share *s;

	share_pool_init(&p);
	p.undivided = true;
	s = share_as(&p, &own_process, true);
	exchange_init(&a, NULL, NULL, NULL);
	exchange_init(&b, NULL, NULL, NULL);
	a.share = b.share = s;
	CHECK(exchange_charge(&a, 60));
	CHECK(exchange_charge(&b, 40));
	CHECK(!exchange_charge(&b, 1));
	exchange_release(&a);
	exchange_release(&a);
	CHECK_INT(p.used[SHARE_BYTES], 40);
	CHECK(exchange_charge(&b, 60));
	exchange_release(&b);
	CHECK_INT(p.used[SHARE_BYTES], 0);
	share_unref(s);
}

UNIT_MAIN({ "a peer has what it leaves to others", a_peer_has_what_it_leaves_to_others },
	  { "the last place is for who has none", the_last_place_is_for_who_has_none },
	  { "bytes are given back", bytes_are_given_back })
