/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/arena.h"

#include <stdint.h>

#include "unit.h"

static void pieces_do_not_overlap(void)
{
	struct arena a = ARENA_INIT;
	unsigned char *pieces[300];

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		size_t n = i % 50 == 49 ? 10000 : i;

		pieces[i] = arena_alloc(&a, n);
		CHECK(pieces[i] && (uintptr_t)pieces[i] % _Alignof(max_align_t) == 0);
		memset(pieces[i], (int)(i & 0xff), n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		for (size_t k = 0; k < i; k++)
			CHECK(pieces[i][k] == (i & 0xff));
	arena_done(&a);
	arena_done(&a);
	CHECK(!a.blocks);
}

static void strings(void)
{
	struct arena a = ARENA_INIT;
	static const int zero[4];
	int *p;

	CHECK_STR(arena_strdup(&a, ""), "");
	CHECK_STR(arena_strdup(&a, "abc"), "abc");
	CHECK_STR(arena_strndup(&a, "abc", 2), "ab");
	CHECK_STR(arena_strndup(&a, "abc", SIZE_MAX), "abc");
	CHECK_STR(arena_printf(&a, "%s-%d", "x", 7), "x-7");
	p = arena_memdup(&a, &(int){ 9 }, sizeof(int));
	CHECK(p && *p == 9);
	p = arena_zalloc(&a, 4, sizeof(int));
	CHECK(p && memcmp(p, zero, sizeof(zero)) == 0);
	CHECK(arena_memdup(&a, NULL, 0));
	arena_done(&a);
}

static void sizes_are_checked(void)
{
	struct arena a = ARENA_INIT_LIMIT(64);

	CHECK(!arena_zalloc(&a, SIZE_MAX / 2, 3));
	CHECK(!arena_alloc(&a, SIZE_MAX));
	CHECK(!arena_alloc(&a, SIZE_MAX / 2));
	CHECK(!arena_alloc(&a, 65));
	CHECK(arena_alloc(&a, 48));
	CHECK(!arena_alloc(&a, 17));
	CHECK(arena_alloc(&a, 16));
	CHECK(!arena_alloc(&a, 1));
	CHECK_INT(a.used, 64);
	arena_done(&a);
	CHECK(arena_alloc(&a, 64));
	arena_done(&a);
}

UNIT_MAIN({ "pieces do not overlap", pieces_do_not_overlap }, { "strings", strings },
	  { "sizes are checked", sizes_are_checked })
