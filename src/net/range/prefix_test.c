/* SPDX-License-Identifier: Apache-2.0 */
#include "net/range/prefix.h"

#include <errno.h>
#include <sys/socket.h>

#include "unit.h"

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static void texts(void)
{
	static const struct {
		const char *text, *printed; /* NULL: refused */
	} cases[] = {
		{ "10.1.2.3/24", "10.1.2.3/24" },
		{ "10.1.2.3", "10.1.2.3/32" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "255.255.255.255/32", "255.255.255.255/32" },
		{ "fd00::1/64", "fd00::1/64" },
		{ "::/0", "::/0" },
		{ "::1", "::1/128" },
		{ "FD00:0:0:0:0:0:0:1/128", "fd00::1/128" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128" },
		{ "", NULL },
		{ "/", NULL },
		{ "/8", NULL },
		{ "10.1.2.3/", NULL },
		{ "10.1.2.3/33", NULL },
		{ "10.1.2.3/-1", NULL },
		{ "10.1.2.3/08x", NULL },
		{ "10.1.2.3/8/8", NULL },
		{ "10.1.2", NULL },
		{ "10.1.2.256", NULL },
		{ "10.1.2.3 ", NULL },
		{ " 10.1.2.3", NULL },
		{ "0x10.1.2.3", NULL },
		{ "::1/129", NULL },
		{ "fe80::1%eth0/64", NULL },
		{ "1:2:3:4:5:6:7:8:9", NULL },
		{ "1111111111111111111111111111111111111111111111111111111111.1.1.1", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prefix p = { .length = 99 };
		char text[PREFIX_TEXT_MAX];
		int r = prefix_parse(cases[i].text, &p);

		CHECK_INT(r, cases[i].printed ? 0 : -EINVAL);
		if (r < 0) {
			CHECK_INT(p.length, 99);
			continue;
		}
		prefix_print(&p, text);
		CHECK_STR(text, cases[i].printed);
		text[strcspn(text, "/")] = '\0';
		{
			char address[PREFIX_TEXT_MAX];

			prefix_print_address(&p, address);
			CHECK_STR(address, text);
		}
	}
	{
		const struct prefix none = { .family = 0 };
		char text[PREFIX_TEXT_MAX];

		prefix_print(&none, text);
		CHECK_STR(text, "none");
		CHECK_INT(prefix_size(&none), 0);
	}
}

static void networks(void)
{
	static const struct {
		const char *text, *network;
	} cases[] = {
		{ "10.255.255.255/0", "0.0.0.0/0" },
		{ "10.255.255.255/1", "0.0.0.0/1" },
		{ "10.255.255.255/7", "10.0.0.0/7" },
		{ "10.255.255.255/8", "10.0.0.0/8" },
		{ "10.255.255.255/9", "10.128.0.0/9" },
		{ "10.255.255.255/30", "10.255.255.252/30" },
		{ "10.255.255.255/32", "10.255.255.255/32" },
		{ "fd00:ffff::ffff/17", "fd00:8000::/17" },
		{ "fd00::ffff/127", "fd00::fffe/127" },
		{ "fd00::ffff/0", "::/0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prefix p = of(cases[i].text), network = prefix_network(&p);
		char text[PREFIX_TEXT_MAX];

		prefix_print(&network, text);
		CHECK_STR(text, cases[i].network);
		CHECK(prefix_has(&p, &network) && prefix_has(&network, &p));
	}
}

static void comparisons(void)
{
	struct prefix net = of("169.254.74.0/30"), a = of("169.254.74.2/30"),
		      b = of("169.254.74.2"), out = of("169.254.74.4"),
		      six = of("::ffff:169.254.74.2"), all = of("::/0");

	CHECK(prefix_same_address(&a, &b) && !prefix_eq(&a, &b) && prefix_eq(&a, &a));
	CHECK(prefix_has(&net, &a) && prefix_has(&net, &b) && prefix_has(&a, &net));
	CHECK(!prefix_has(&net, &out) && !prefix_has(&net, &six) && !prefix_has(&all, &a));
	CHECK(prefix_has(&all, &six));
	CHECK(!prefix_same_address(&a, &out));
}

UNIT_MAIN({ "texts", texts }, { "networks", networks }, { "comparisons", comparisons })
