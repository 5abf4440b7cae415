/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/challenge.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void bearer(void)
{
	struct challenge c = { .basic = false };

	CHECK_INT(challenge_add(
			  &c,
			  "Bearer "
			  "realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\","
			  "scope=\"repository:library/x:pull,push\", error=\"insufficient_scope\"",
			  NULL),
		  0);
	CHECK(c.bearer && !c.basic);
	CHECK_STR(c.realm, "https://auth.docker.io/token");
	CHECK_STR(c.service, "registry.docker.io");
	CHECK_STR(c.scope, "repository:library/x:pull,push");
}

static void several(void)
{
	struct challenge c = { .basic = false };

	CHECK_INT(
		challenge_add(&c, "basic realm=\"r\" , BEARER Realm = x, service=\"a\\\"b\"", NULL),
		0);
	CHECK_INT(challenge_add(&c, "Bearer realm=\"second\"", NULL), 0);
	CHECK_INT(challenge_add(&c, "Digest realm=\"d\", nonce=\"n\"", NULL), 0);
	CHECK(c.bearer && c.basic);
	CHECK_STR(c.realm, "x");
	CHECK_STR(c.service, "a\"b");
	CHECK_STR(c.scope, "");
}

static void alone(void)
{
	struct challenge c = { .basic = false };

	CHECK_INT(challenge_add(&c, "Basic", NULL), 0);
	CHECK(c.basic && !c.bearer);
	CHECK_INT(challenge_add(&c, "", NULL), 0);
}

static void refuses(void)
{
	static char longest[CHALLENGE_REALM_MAX + 32] = "Bearer realm=\"";
	static const char *const bad[] = {
		"=",
		"Bearer realm=",
		"Bearer realm=\"x",
		"Bearer realm=\"x\\",
		"Bearer realm=\"a\nb\"",
		"Bearer realm=\"\377\"",
		"\"x\"",
		longest,
	};
	const size_t begin = strlen(longest);

	memset(longest + begin, 'x', CHALLENGE_REALM_MAX + 1);
	longest[begin + CHALLENGE_REALM_MAX + 1] = '"';
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct challenge c = { .basic = false };

		CHECK_INT(challenge_add(&c, bad[i], NULL), -EINVAL);
	}
	longest[begin + CHALLENGE_REALM_MAX] = '"';
	longest[begin + CHALLENGE_REALM_MAX + 1] = '\0';
	CHECK_INT(challenge_add(&(struct challenge){ .basic = false }, longest, NULL), 0);
}

UNIT_MAIN({ "bearer", bearer }, { "several", several }, { "alone", alone }, { "refuses", refuses })
