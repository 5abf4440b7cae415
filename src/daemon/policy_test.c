/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/policy.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "unit.h"

#define USER "spiffe://nacre.local/user/"
#define LIST "/nacre.v1.WorkloadService/List"
#define STOP "/nacre.v1.WorkloadService/Stop"
#define PULL "/nacre.v1.ImageService/Pull"

static int parse(struct policy **ret, const char *text, struct error *err)
{
	return policy_parse(ret, text, strlen(text), "file", err);
}

static void allows(void)
{
	static const char text[] =
		USER "alice: admin\n" USER "bob: reader\n" USER "ci-*: [ reader, " PULL
		     ", \"/aurae.*\" ]\n" USER "bob: " PULL "\n";
	struct policy *p = NULL;
	struct error err = ERROR_INIT;

	CHECK_INT(parse(&p, text, &err), 0);
	CHECK_STR(err.text, "");
	if (!p)
		return;
	CHECK(policy_allows(p, USER "alice", STOP));
	CHECK(policy_allows(p, USER "alice", "/any.thing/At"));
	CHECK(policy_allows(p, USER "bob", LIST));
	CHECK(policy_allows(p, USER "bob", PULL));
	CHECK(!policy_allows(p, USER "bob", STOP));
	CHECK(policy_allows(p, USER "ci-7", PULL));
	CHECK(policy_allows(p, USER "ci-7", "/aurae.runtime.v0.RuntimeService/RunPod"));
	CHECK(!policy_allows(p, USER "ci-7", STOP));
	CHECK(!policy_allows(p, USER "ci", LIST));
	CHECK(!policy_allows(p, USER "alice2", LIST));
	CHECK(!policy_allows(p, USER "alic", LIST));
	CHECK(!policy_allows(p, "spiffe://other.local/user/alice", LIST));
	(void)policy_free(p);
}

static void an_empty_one_allows_nothing(void)
{
	static const char *const texts[] = { "", "\n", "# nothing\n", "{}\n" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct policy *p = NULL;

		CHECK_INT(parse(&p, texts[i], NULL), 0);
		CHECK(p && !policy_allows(p, USER "alice", LIST));
		(void)policy_free(p);
	}
}

static void refuses(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ USER "alice: king\n", "file:1: expected admin" },
		{ "\n\nalice: admin\n", "file:3: expected a SPIFFE id" },
		{ USER "alice: admin\n" USER "b*b: admin\n", "file:2: expected a SPIFFE id" },
		{ "spiffe://nacre.local: admin\n", "file:1: expected a SPIFFE id" },
		{ "*: admin\n", "file:1: " },
		{ "\"*\": admin\n", "file:1: expected a SPIFFE id" },
		{ USER "alice: { a: b }\n", "file:1: expected a word" },
		{ USER "alice: [ [ admin ] ]\n", "file:1: a list has no place" },
		{ USER "alice: /a*b\n", "file:1: expected admin" },
		{ USER "alice: nacre.v1/List\n", "file:1: expected admin" },
		{ "- admin\n", "file:1: a list has no place" },
		{ "admin\n", "file:1: expected ids" },
		{ USER "a: &x admin\n" USER "b: *x\n", "file:2: aliases" },
		{ USER "a: \"adm\\0in\"\n", "file:1: expected ids" },
		{ USER "a: [ admin\n", "file:" },
		{ "\x01\x02", "file:" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		struct policy *p = NULL;

		CHECK_INT(parse(&p, cases[i].text, &err), -EINVAL);
		CHECK(strstr(err.text, cases[i].why) == err.text);
		if (strstr(err.text, cases[i].why) != err.text)
			printf("# %zu: %s\n", i, err.text);
		CHECK(!p);
	}
}

static void is_bounded(void)
{
	static char text[64 * (POLICY_RULES_MAX + 1) + 1];
	struct error err = ERROR_INIT;
	struct policy *p = NULL;
	size_t len = 0;

	for (int i = 0; i < POLICY_RULES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, USER "u%d: admin\n", i);
	CHECK_INT(parse(&p, text, NULL), 0);
	p = policy_free(p);
	(void)snprintf(text + len, sizeof(text) - len, USER "last: admin\n");
	CHECK_INT(parse(&p, text, &err), -EINVAL);
	CHECK_STR(err.text, "file:1025: more than 1024 rules");
}

UNIT_MAIN({ "allows", allows }, { "an_empty_one_allows_nothing", an_empty_one_allows_nothing },
	  { "refuses", refuses }, { "is_bounded", is_bounded })
