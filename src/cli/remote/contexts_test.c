/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/contexts.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "unit.h"

static int parse(struct contexts **ret, const char *text, struct error *err)
{
	return contexts_parse(ret, text, strlen(text), "file", err);
}

static void reads(void)
{
	_cleanup_(contexts_freep) struct contexts *all = NULL;
	struct context *c;

	CHECK_INT(
		parse(&all,
		      "{\"current\":\"a\",\"contexts\":{\"a\":{\"host\":\"h:1\",\"tls-ca\":\"/x\","
		      "\"more\":1},\"b\":{\"socket\":\"/s\"}}}",
		      NULL),
		0);
	if (!all)
		return;
	CHECK_INT(all->n, 2);
	CHECK_STR(all->current, "a");
	c = contexts_find(all, "a");
	CHECK(c && strcmp(c->fields[CONTEXT_HOST], "h:1") == 0);
	CHECK(c && strcmp(c->fields[CONTEXT_TLS_CA], "/x") == 0);
	CHECK(c && !c->fields[CONTEXT_TLS_KEY]);
	if (c)
		contexts_remove(all, c);
	CHECK(!all->current && all->n == 1);
	CHECK(!contexts_find(all, "a") && contexts_find(all, "b"));
}

static void refuses(void)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"contexts\":[]}",
		"{\"contexts\":{\"a\":1}}",
		"{\"contexts\":{\"a\":{}}}",
		"{\"contexts\":{\"a\":{\"host\":\"x\",\"socket\":\"/s\"}}}",
		"{\"contexts\":{\"a/b\":{\"host\":\"x\"}}}",
		"{\"contexts\":{\"\":{\"host\":\"x\"}}}",
		"{\"contexts\":{\"-a\":{\"host\":\"x\"}}}",
		"{\"contexts\":{\"a\":{\"host\":1}}}",
		"{\"contexts\":{\"a\":{\"host\":\"x\"}",
		"\xff",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error err = ERROR_INIT;
		struct contexts *all = NULL;

		CHECK_INT(parse(&all, texts[i], &err), -EINVAL);
		CHECK(strncmp(err.text, "file: ", 6) == 0);
		CHECK(!all);
	}
}

static void is_bounded(void)
{
	static char text[64 * (CONTEXTS_MAX + 2)];
	struct contexts *all = NULL;
	size_t len = (size_t)snprintf(text, sizeof(text), "{\"contexts\":{");

	for (int i = 0; i < CONTEXTS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\"c%d\":{\"host\":\"h\"},",
					i);
	(void)snprintf(text + len - 1, sizeof(text) - len, "}}");
	CHECK_INT(parse(&all, text, NULL), 0);
	CHECK(all && !contexts_add(all, "more"));
	all = contexts_free(all);
	(void)snprintf(text + len, sizeof(text) - len, "\"last\":{\"host\":\"h\"}}}");
	text[len - 1] = ',';
	CHECK_INT(parse(&all, text, NULL), -EINVAL);
}

UNIT_MAIN({ "reads", reads }, { "refuses", refuses }, { "is_bounded", is_bounded })
