/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/map.h"

#include <errno.h>

#include "unit.h"

#define N 100000

struct entry {
	char key[16];
	bool in;
};

static struct entry entries[N];

static void entries_init(void)
{
	for (unsigned i = 0; i < N; i++) {
		(void)snprintf(entries[i].key, sizeof(entries[i].key), "key-%u", i);
		entries[i].in = false;
	}
}

static void small(void)
{
	struct map m = MAP_INIT;
	size_t pos = 0;
	int a, b;

	CHECK(!map_get(&m, "a"));
	CHECK(!map_remove(&m, "a"));
	CHECK(!map_next(&m, &pos));
	CHECK_INT(map_add(&m, "a", &a), 0);
	CHECK_INT(map_add(&m, "a", &b), -EEXIST);
	CHECK_INT(map_add(&m, "", &b), 0);
	CHECK(map_get(&m, "a") == &a);
	CHECK(map_get(&m, "") == &b);
	CHECK(map_remove(&m, "a") == &a);
	CHECK(!map_remove(&m, "a"));
	CHECK(!map_get(&m, "a"));
	CHECK_INT(m.n, 1);
	map_done(&m);
	map_done(&m);
}

static void large(void)
{
	struct map m = MAP_INIT;
	unsigned n_wrong = 0;
	size_t full;

	entries_init();
	for (unsigned i = 0; i < N; i++)
		n_wrong += map_add(&m, entries[i].key, &entries[i]) != 0;
	full = m.size;
	for (unsigned i = 0; i < N; i++)
		n_wrong += map_get(&m, entries[i].key) != &entries[i];
	for (unsigned i = 0; i < N; i += 3)
		n_wrong += map_remove(&m, entries[i].key) != &entries[i];
	for (unsigned i = 0; i < N; i++)
		n_wrong += map_get(&m, entries[i].key) != (i % 3 ? &entries[i] : NULL);
	for (unsigned i = 0; i < N; i += 3)
		n_wrong += map_add(&m, entries[i].key, &entries[i]) != 0;
	CHECK_INT(n_wrong, 0);
	CHECK_INT(m.n, N);
	CHECK(full <= 4 * N);
	map_done(&m);
}

/* Comings and goings of few entries do not make the table grow, nor any search endless. */
static void churn(void)
{
	struct map m = MAP_INIT;
	unsigned n_wrong = 0;

	entries_init();
	for (unsigned i = 0; i < N; i++) {
		n_wrong += map_add(&m, entries[i].key, &entries[i]) != 0;
		if (i >= 10)
			n_wrong += map_remove(&m, entries[i - 10].key) != &entries[i - 10];
		n_wrong += map_get(&m, "absent") != NULL;
	}
	CHECK_INT(n_wrong, 0);
	CHECK_INT(m.n, 10);
	CHECK(m.size <= 64);
	map_done(&m);
}

static void walk_with_removal(void)
{
	struct map m = MAP_INIT;
	unsigned n = 0, n_left = 0;
	struct entry *e;
	size_t pos = 0;

	entries_init();
	for (unsigned i = 0; i < 1000; i++)
		CHECK(map_add(&m, entries[i].key, &entries[i]) == 0);
	for (e = map_next(&m, &pos); e; e = map_next(&m, &pos)) {
		CHECK(!e->in);
		e->in = true;
		if (n++ % 2)
			CHECK(map_remove(&m, e->key) == e);
	}
	CHECK_INT(n, 1000);
	pos = 0;
	while (map_next(&m, &pos))
		n_left++;
	CHECK_INT(n_left, 500);
	CHECK_INT(m.n, 500);
	map_done(&m);
}

static void room(void)
{
	struct map m = MAP_INIT;
	const struct map_slot *slots;

	entries_init();
	CHECK_INT(map_reserve(&m, 2), 0);
	slots = m.slots;
	for (size_t i = 0; i < 10; i++) {
		CHECK_INT(map_reserve(&m, 2), 0);
		slots = m.slots;
		CHECK_INT(map_add(&m, entries[i].key, &entries[i]), 0);
		CHECK(map_remove(&m, entries[i].key) == &entries[i]);
		CHECK_INT(map_add(&m, entries[i + 10].key, &entries[i]), 0);
		CHECK(m.slots == slots);
	}
	map_done(&m);
}

UNIT_MAIN({ "small", small }, { "large", large }, { "churn", churn },
	  { "walk with removal", walk_with_removal }, { "room", room })
