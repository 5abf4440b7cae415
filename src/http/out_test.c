/* SPDX-License-Identifier: Apache-2.0 */
#include "http/out.h"

#include "unit.h"

static uint8_t lent[2 * HTTP_OUT_LEND_MIN];

static void must_be(const struct http_out *o, size_t skip, const char *before, size_t n_lent,
		    const char *behind)
{
	struct buf want = BUF_INIT, rest = BUF_INIT;

	CHECK(buf_add_str(&want, before) == 0);
	CHECK(buf_add(&want, lent, n_lent) == 0);
	CHECK(buf_add_str(&want, behind) == 0);
	CHECK(http_out_rest(o, skip, &rest) == 0);
	CHECK_INT(rest.len, want.len - skip);
	CHECK(rest.len == 0 || memcmp(buf_data(&rest), buf_data(&want) + skip, rest.len) == 0);
	CHECK_INT(o->len, want.len);
	buf_done(&want);
	buf_done(&rest);
}

static void what_is_lent_keeps_its_place(void)
{
	struct http_out o = HTTP_OUT_INIT;
	struct iovec parts[HTTP_OUT_PARTS];

	for (size_t i = 0; i < sizeof(lent); i++)
		lent[i] = (uint8_t)(i * 7);
	CHECK(http_out_add(&o, "head", 4) == 0);
	CHECK(http_out_add(&o, "er", 2) == 0);
	CHECK(http_out_lend(&o, lent, sizeof(lent)) == 0);
	CHECK(http_out_add(&o, "tail", 4) == 0);
	CHECK_INT(http_out_iov(&o, parts), 3);
	CHECK(parts[1].iov_base == lent);
	CHECK_INT(parts[1].iov_len, sizeof(lent));
	for (size_t skip = 0; skip < 9; skip++)
		must_be(&o, skip, "header", sizeof(lent), "tail");
	must_be(&o, 6 + sizeof(lent), "header", sizeof(lent), "tail");
	must_be(&o, o.len, "header", sizeof(lent), "tail");

	CHECK(http_out_own(&o) == 0);
	CHECK_INT(http_out_iov(&o, parts), 1);
	CHECK(parts[0].iov_base != lent);
	must_be(&o, 0, "header", sizeof(lent), "tail");
	CHECK(http_out_add(&o, "ed", 2) == 0);
	must_be(&o, 3, "header", sizeof(lent), "tailed");
	http_out_done(&o);
	CHECK_INT(o.len, 0);
}

static void what_is_short_is_copied(void)
{
	struct http_out o = HTTP_OUT_INIT;
	struct iovec parts[HTTP_OUT_PARTS];

	CHECK(http_out_lend(&o, lent, HTTP_OUT_LEND_MIN - 1) == 0);
	CHECK(http_out_add(&o, "x", 1) == 0);
	CHECK_INT(http_out_iov(&o, parts), 1);
	must_be(&o, 0, "", HTTP_OUT_LEND_MIN - 1, "x");
	http_out_done(&o);
}

/* What finds no part is copied, and nothing is lost. */
static void parts_run_out(void)
{
	struct http_out o = HTTP_OUT_INIT;
	struct iovec parts[HTTP_OUT_PARTS];
	size_t n = 4 * (size_t)HTTP_OUT_PARTS;

	for (size_t i = 0; i < n; i++) {
		CHECK(http_out_add(&o, "y", 1) == 0);
		CHECK(http_out_lend(&o, lent, HTTP_OUT_LEND_MIN) == 0);
	}
	CHECK(http_out_iov(&o, parts) <= HTTP_OUT_PARTS);
	CHECK_INT(o.len, n * (1 + HTTP_OUT_LEND_MIN));
	http_out_done(&o);
}

UNIT_MAIN({ "what is lent keeps its place", what_is_lent_keeps_its_place },
	  { "what is short is copied", what_is_short_is_copied },
	  { "parts run out", parts_run_out })
