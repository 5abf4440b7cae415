/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/buf.h"

#include <errno.h>

#include "unit.h"

static void empty_is_harmless(void)
{
	struct buf b = BUF_INIT;
	uint8_t *to;

	CHECK(!buf_data(&b));
	buf_consume(&b, 0);
	CHECK_INT(buf_add(&b, NULL, 0), 0);
	CHECK(!b.base);
	CHECK_INT(buf_reserve(&b, 0, &to), 0);
	buf_added(&b, 0);
	buf_clear(&b);
	buf_done(&b);
	buf_done(&b);
}

/* A queue of numbers, filled and drained in odd steps: nothing is lost or turned around. */
static void keeps_order(void)
{
	struct buf b = BUF_INIT;
	uint32_t in = 0, out = 0, got;

	for (unsigned step = 0; step < 2000; step++) {
		for (unsigned i = 0; i < step * 7 % 23; i++, in++)
			CHECK(buf_add(&b, &in, sizeof(in)) == 0);
		for (unsigned i = 0; i < step * 5 % 19 && b.len; i++, out++) {
			memcpy(&got, buf_data(&b), sizeof(got));
			CHECK(got == out);
			buf_consume(&b, sizeof(got));
		}
		CHECK_INT(b.len, (in - out) * sizeof(in));
		CHECK(b.head + b.len <= b.size);
	}
	buf_done(&b);
}

/* A full queue that moves on by one byte at a time does not copy itself each time. */
static void memory_stays_in_proportion(void)
{
	struct buf b = BUF_INIT;
	char block[1000] = "";
	size_t n_moved = 0, head = 0;

	CHECK(buf_add(&b, block, sizeof(block)) == 0);
	buf_consume(&b, 1);
	for (unsigned i = 0; i < 100000; i++) {
		CHECK(buf_add(&b, "x", 1) == 0);
		n_moved += b.head < head ? b.len : 0;
		buf_consume(&b, 1);
		head = b.head;
	}
	CHECK_INT(b.len, sizeof(block) - 1);
	CHECK(b.size <= 4 * sizeof(block));
	CHECK(n_moved <= 200000);
	buf_consume(&b, b.len);
	CHECK(!b.base);
	buf_done(&b);
}

static void limit_is_exact(void)
{
	struct buf b = BUF_INIT_LIMIT(5);
	uint8_t *to;

	CHECK_INT(buf_add_str(&b, "abcdef"), -ENOBUFS);
	CHECK_INT(b.len, 0);
	CHECK_INT(buf_addf(&b, "%s", "abcde"), 0);
	CHECK_INT(buf_addf(&b, "f"), -ENOBUFS);
	CHECK_INT(buf_add(&b, "f", 1), -ENOBUFS);
	buf_consume(&b, 2);
	CHECK_INT(buf_reserve(&b, 2, &to), 0);
	CHECK_INT(buf_reserve(&b, 3, &to), -ENOBUFS);
	CHECK_INT(buf_reserve(&b, SIZE_MAX, &to), -ENOBUFS);
	CHECK_INT(buf_add_str(&b, "fg"), 0);
	CHECK(memcmp(buf_data(&b), "cdefg", 5) == 0);
	buf_done(&b);
	CHECK_INT(b.limit, 5);
	CHECK_INT(buf_add_str(&b, "abcdef"), -ENOBUFS);
	buf_done(&b);
}

static void becomes_a_string(void)
{
	struct buf b = BUF_INIT;
	char *s = buf_take_str(&b);

	CHECK_STR(s, "");
	free(s);
	for (int i = 0; i < 3; i++)
		CHECK_INT(buf_addf(&b, "%d,", i), 0);
	buf_consume(&b, 2);
	s = buf_take_str(&b);
	CHECK_STR(s, "1,2,");
	CHECK_INT(b.len, 0);
	CHECK(!b.base);
	free(s);
}

UNIT_MAIN({ "empty is harmless", empty_is_harmless }, { "keeps order", keeps_order },
	  { "memory stays in proportion", memory_stays_in_proportion },
	  { "the limit is exact", limit_is_exact }, { "becomes a string", becomes_a_string })
