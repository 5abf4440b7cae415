/* SPDX-License-Identifier: Apache-2.0 */
#include "net/range/address_pool.h"

#include <errno.h>

#include "base/text/str.h"
#include "unit.h"

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static struct address_pool *pool_of(const char *network)
{
	struct prefix n = of(network);
	struct address_pool *p = NULL;
	int r = address_pool_new(&p, &n);

	CHECK(r == 0 || r == -ENOMEM);
	return p;
}

/* The text of the next one, or why there is none. */
static const char *next(struct address_pool *p)
{
	static char text[ERROR_TEXT_MAX];
	struct error err = ERROR_INIT;
	struct prefix got;

	if (address_pool_get(p, &got, &err) < 0) {
		CHECK_INT(err.kind, ERROR_EXHAUSTED);
		return str_copy(text, sizeof(text), error_text(&err)) < 0 ? "" : text;
	}
	prefix_print(&got, text);
	return text;
}

static void next_first(void)
{
	_cleanup_(address_pool_freep) struct address_pool *p = pool_of("10.1.2.77/29");
	struct prefix second = of("10.1.2.74"), fourth = of("10.1.2.76/29");

	if (!p)
		return;
	CHECK_INT(address_pool_size(p), 6);
	CHECK_STR(next(p), "10.1.2.73/29");
	CHECK_STR(next(p), "10.1.2.74/29");
	CHECK_STR(next(p), "10.1.2.75/29");
	CHECK_STR(next(p), "10.1.2.76/29");
	CHECK_STR(next(p), "10.1.2.77/29");
	CHECK_INT(address_pool_put(p, &fourth, NULL), 0);
	CHECK_INT(address_pool_put(p, &second, NULL), 0);
	CHECK_INT(address_pool_taken(p), 3);
	/* What came back is not another one's while there are others. */
	CHECK_STR(next(p), "10.1.2.78/29");
	CHECK_STR(next(p), "10.1.2.74/29");
	CHECK_STR(next(p), "10.1.2.76/29");
	CHECK_STR(next(p), "all 6 addresses of the pool 10.1.2.72/29 are taken");
	CHECK_INT(address_pool_taken(p), 6);
}

/* As one does that comes up again and finds them in use. */
static void adopted(void)
{
	_cleanup_(address_pool_freep) struct address_pool *p = pool_of("10.1.2.0/29");
	struct prefix first = of("10.1.2.1"), third = of("10.1.2.3");
	struct error err = ERROR_INIT;

	if (!p)
		return;
	CHECK_INT(address_pool_take(p, &third, &err), 0);
	CHECK_INT(address_pool_take(p, &first, &err), 0);
	CHECK(address_pool_take(p, &first, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXISTS);
	CHECK_STR(error_text(&err), "the address 10.1.2.1 is taken");
	CHECK_STR(next(p), "10.1.2.2/29");
	CHECK_STR(next(p), "10.1.2.4/29");
	CHECK_INT(address_pool_put(p, &third, &err), 0);
	CHECK(address_pool_put(p, &third, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK_INT(address_pool_taken(p), 3);
}

static void out_of_range(void)
{
	static const char *const others[] = { "10.1.2.72", "10.1.2.79",  "10.1.2.71", "10.1.2.80",
					      "10.9.2.73", "::a01:0249", "0.0.0.0" };
	_cleanup_(address_pool_freep) struct address_pool *p = pool_of("10.1.2.72/29");
	const struct prefix none = { .family = 0 };
	struct address_pool *nothing = NULL;
	struct error err = ERROR_INIT;

	if (!p)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct prefix a = of(others[i]);

		CHECK_INT(address_pool_take(p, &a, &err), -EINVAL);
		CHECK_INT(address_pool_put(p, &a, &err), -EINVAL);
	}
	CHECK_STR(error_text(&err), "0.0.0.0 is not an address of the pool 10.1.2.72/29");
	CHECK_INT(address_pool_take(p, &none, &err), -EINVAL);
	CHECK_INT(address_pool_taken(p), 0);
	CHECK_INT(address_pool_new(&nothing, &none), -EINVAL);
}

static void sizes(void)
{
	static const struct {
		const char *network;
		size_t size;
		const char *first;
	} cases[] = {
		{ "10.1.2.3/32", 1, "10.1.2.3/32" },
		{ "10.1.2.3/31", 2, "10.1.2.2/31" },
		{ "10.1.2.3/30", 2, "10.1.2.1/30" },
		{ "10.1.0.0/16", 65534, "10.1.0.1/16" },
		{ "10.0.0.0/8", ADDRESS_POOL_MAX, "10.0.0.1/8" },
		{ "0.0.0.0/0", ADDRESS_POOL_MAX, "0.0.0.1/0" },
		{ "fd00::7/128", 1, "fd00::7/128" },
		{ "fd00::7/127", 2, "fd00::6/127" },
		{ "fd00::7/126", 3, "fd00::5/126" },
		{ "fd00::/64", ADDRESS_POOL_MAX, "fd00::1/64" },
		{ "::/0", ADDRESS_POOL_MAX, "::1/0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(address_pool_freep) struct address_pool *p = pool_of(cases[i].network);

		if (!p)
			continue;
		CHECK_INT(address_pool_size(p), cases[i].size);
		CHECK_STR(next(p), cases[i].first);
		for (size_t k = 1; k < cases[i].size; k++) {
			struct prefix got = { .family = 0 };

			CHECK_INT(address_pool_get(p, &got, NULL), 0);
			CHECK_INT(address_pool_take(p, &got, NULL), -EEXIST);
		}
		CHECK(strstr(next(p), "are taken"));
	}
}

/* Beyond what a pool uses, and where only the end of an address is the same. */
static void far_up(void)
{
	_cleanup_(address_pool_freep) struct address_pool *p = pool_of("fd00::/48");
	struct prefix last = of("fd00::1:0"), beyond = of("fd00::1:1"), twin = of("fd00:0:0:7::1"),
		      zero = of("fd00::");

	if (!p)
		return;
	CHECK_INT(address_pool_take(p, &last, NULL), 0);
	CHECK_INT(address_pool_take(p, &beyond, NULL), -EINVAL);
	CHECK_INT(address_pool_take(p, &twin, NULL), -EINVAL);
	CHECK_INT(address_pool_take(p, &zero, NULL), -EINVAL);
}

UNIT_MAIN({ "next_first", next_first }, { "adopted", adopted }, { "out_of_range", out_of_range },
	  { "sizes", sizes }, { "far_up", far_up })
