/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/url.h"

#include <errno.h>

#include "base/text/str.h"
#include "unit.h"

static void takes_apart(void)
{
	static const struct {
		const char *text, *again;
		bool tls;
		const char *host;
		unsigned port;
	} good[] = {
		{ "https://a.b", "https://a.b/", true, "a.b", 443 },
		{ "http://A.B:5000/v2/?q=%41", "http://a.b:5000/v2/?q=%41", false, "a.b", 5000 },
		{ "https://[::1]:443/x", "https://[::1]/x", true, "::1", 443 },
		{ "http://a?x=y@z", "http://a/?x=y@z", false, "a", 80 },
		{ "https://r_1-a.example:65535", "https://r_1-a.example:65535/", true,
		  "r_1-a.example", 65535 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char text[URL_SIZE];
		struct url u;

		CHECK_INT(url_parse(&u, good[i].text, NULL), 0);
		CHECK_INT(u.tls, good[i].tls);
		CHECK_STR(u.host, good[i].host);
		CHECK_INT(u.port, good[i].port);
		url_format(&u, text);
		CHECK_STR(text, good[i].again);
	}
}

static void refuses(void)
{
	static const char *const bad[] = {
		"",
		"a.b",
		"ftp://a/",
		"file:///etc/passwd",
		"https:///x",
		"https://u@a/",
		"https://u:p@a/",
		"https://a:0/",
		"https://a:65536/",
		"https://a:123456/",
		"https://a:/",
		"https://a b/",
		"https://a/\r\nX: y",
		"https://a/x y",
		"https://a/#f",
		"https://a\\@b/",
		"https://a/\\",
		"https://-a/",
		"https://.a/",
		"https://a..b/",
		"https://[::1/",
		"https://[::1%25lo]/",
		"https://[1]/",
		"https://a\x80/",
		"HTTPS://a/",
		"https://a/\x7f",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct url u;

		CHECK_INT(url_parse(&u, bad[i], NULL), -EINVAL);
	}
}

static void joins(void)
{
	static const struct {
		const char *text, *whole;
	} good[] = {
		{ "/x?y=1", "https://a.b:5000/x?y=1" },
		{ "x", "https://a.b:5000/v2/n/x" },
		{ "?n=2", "https://a.b:5000/v2/n/tags?n=2" },
		{ "//c/x", "https://c/x" },
		{ "http://c/x", "http://c/x" },
		{ "/x?u=http://z", "https://a.b:5000/x?u=http://z" },
	};
	struct url base, u;
	char text[URL_SIZE];

	CHECK_INT(url_parse(&base, "https://a.b:5000/v2/n/tags?n=1/2", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK_INT(url_join(&u, &base, good[i].text, NULL), 0);
		url_format(&u, text);
		CHECK_STR(text, good[i].whole);
	}
	CHECK_INT(url_join(&u, &base, "", NULL), -EINVAL);
	CHECK_INT(url_join(&u, &base, "file://x/y", NULL), -EINVAL);
	CHECK_INT(url_join(&u, &base, "/a\nb", NULL), -EINVAL);
}

static bool same_owner(const char *a, const char *b)
{
	struct url u, v;

	CHECK_INT(url_of_host(&u, a, true, NULL), 0);
	CHECK_INT(url_of_host(&v, b, true, NULL), 0);
	CHECK_INT(url_same_owner(&u, &v), url_same_owner(&v, &u));
	return url_same_owner(&u, &v);
}

static void owners(void)
{
	CHECK(same_owner("docker.io", "auth.docker.io"));
	CHECK(same_owner("localhost:5000", "localhost:5001"));
	CHECK(same_owner("a.b.co.uk", "c.b.co.uk"));
	CHECK(same_owner("10.0.0.1", "10.0.0.1:5"));
	CHECK(!same_owner("a.co.uk", "b.co.uk"));
	CHECK(!same_owner("docker.io", "evil.io"));
	CHECK(!same_owner("a.docker.io", "docker.io.evil.com"));
	CHECK(!same_owner("10.0.0.1", "11.0.0.1"));
	CHECK(!same_owner("1.1.0.1", "2.1.0.1"));
	CHECK(!same_owner("a.0x7f", "b.0x7f"));
	CHECK(!same_owner("a", "b"));
	CHECK(!same_owner("co.uk", "x.co.uk"));
}

static void reaches(void)
{
	static const struct {
		const char *host;
		enum url_reach reach;
	} cases[] = {
		{ "localhost:5", URL_LOOPBACK },
		{ "a.localhost", URL_LOOPBACK },
		{ "127.9.9.9", URL_LOOPBACK },
		{ "0.0.0.0", URL_LOOPBACK },
		{ "[::1]", URL_LOOPBACK },
		{ "[::ffff:127.0.0.1]", URL_LOOPBACK },
		{ "169.254.169.254", URL_LINK_LOCAL },
		{ "[fe80::1]", URL_LINK_LOCAL },
		{ "[::ffff:169.254.1.1]", URL_LINK_LOCAL },
		{ "10.0.0.1", URL_FAR },
		{ "localhost.evil", URL_FAR },
		{ "docker.io", URL_FAR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct url u;

		CHECK_INT(url_of_host(&u, cases[i].host, false, NULL), 0);
		CHECK_INT(url_reach(&u), cases[i].reach);
	}
}

static void hosts_and_escapes(void)
{
	char text[URL_SIZE];
	struct url u;

	CHECK_INT(url_of_host(&u, "docker.io", true, NULL), 0);
	url_format_origin(&u, text);
	CHECK_STR(text, "https://registry-1.docker.io");
	CHECK_INT(url_of_host(&u, "a/b", true, NULL), -EINVAL);
	url_escape(text, "a b&c=/\303\244~");
	CHECK_STR(text, "a%20b%26c%3D%2F%C3%A4~");
}

UNIT_MAIN({ "takes_apart", takes_apart }, { "refuses", refuses }, { "joins", joins },
	  { "owners", owners }, { "reaches", reaches }, { "hosts_and_escapes", hosts_and_escapes })
