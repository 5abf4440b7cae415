/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/hosts.h"

#include <errno.h>
#include <string.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "registry/limits.h"
#include "unit.h"
#include "wire/message/fetchmsg.h"

static void everything(void)
{
	static const char text[] = "# a comment\n"
				   "server = \"https://a.b\" # another\r\n"
				   "ca = [\"x.pem\",\n  'y.pem',]\n"
				   "[header]\n"
				   "x-top = \"1\"\n"
				   "[host.\"https://m1:5000\"]\n"
				   "  capabilities = [\"pull\", \"resolve\"]\n"
				   "  client = [[\"/c.pem\", \"/c.key\"], [\"/d.pem\", \"\"]]\n"
				   "  skip_verify = true\n"
				   "  dial_timeout = \"3s\"\n"
				   "[ host . 'http://m2/base' ]\n"
				   "override_path=true\n"
				   "client = \"both.pem\"\n"
				   "[host.\"http://m2/base\".header]\n"
				   "Authorization = \"a \\\"b\\\"\"\n"
				   "x = [\"1\", \"2\"]\n";
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct error err = ERROR_INIT;
	struct hosts h;

	if (hosts_parse(&h, &arena, text, sizeof(text) - 1, &err) < 0) {
		CHECK_STR(err.text, "");
		return;
	}
	CHECK_STR(h.server.url, "https://a.b");
	CHECK_INT(h.server.can, FETCH_CAN_FLAGS);
	CHECK_INT(h.server.n_ca, 2);
	CHECK_STR(h.server.ca[1], "y.pem");
	CHECK_STR(h.server.headers[0], "x-top: 1");
	CHECK_INT(h.n_entries, 2);
	CHECK_STR(h.entries[0].url, "https://m1:5000");
	CHECK_INT(h.entries[0].can, FETCH_CAN_PULL | FETCH_CAN_RESOLVE);
	CHECK_INT(h.entries[0].n_client, 4);
	CHECK_STR(h.entries[0].client[1], "/c.key");
	CHECK_STR(h.entries[0].client[3], "/d.pem");
	CHECK(h.entries[0].skip_verify && !h.entries[1].skip_verify);
	CHECK_INT(h.entries[0].dial_ms, 3000);
	CHECK(h.entries[1].override_path);
	CHECK_STR(h.entries[1].client[1], "both.pem");
	CHECK_STR(h.entries[1].headers[0], "Authorization: a \"b\"");
	CHECK_STR(h.entries[1].headers[2], "x: 2");
	CHECK(h.entries[1].headers[3] == NULL);
}

static void refuses(void)
{
	static const char *const bad[] = {
		"servr = \"x\"\n",
		"server = x\n",
		"server = \"x\n",
		"server = \"x\" y\n",
		"server = \"x\"\nserver = \"x\"\n",
		"server = \"\\u0041\"\n",
		"server = \"\\",
		"server = \"a\x01\"\n",
		"server = \"\xff\"\n",
		"server\n",
		"skip_verify = \"true\"\n",
		"skip_verify = truee\n",
		"[host]\n",
		"[host.\"a\"\n",
		"[host.\"a\".b]\n",
		"[host.\"a\".header.c]\n",
		"[host.\"a\".header]\nx = \"y\"\n",
		"[host.\"a\"]\n[host.\"a\"]\n",
		"[host.\"a\"]\nserver = \"x\"\n",
		"[host.\"a\"]\n[header]\n",
		"[host.\"a\"]\n[host.\"b\".header]\n",
		"[header]\n\"a b\" = \"x\"\n",
		"[header]\n\"a\\r\\nb\" = \"x\"\n",
		"[header]\na = \"x\\r\\nb\"\n",
		"[plugins]\n",
		"capabilities = [\"run\"]\n",
		"capabilities = [\"pull\"\n",
		"capabilities = [\"pull\" \"push\"]\n",
		"dial_timeout = \"5\"\n",
		"dial_timeout = \"99999999999999999999s\"\n",
		"dial_timeout = \"0s\"\n",
		"client = [[\"a\", \"b\", \"c\"]]\n",
		"client = [[]]\n",
		"ca = { a = \"b\" }\n",
		"[[host]]\n",
		"= \"x\"\n",
	};
	struct error err = ERROR_INIT;
	struct hosts h;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		int r = hosts_parse(&h, &arena, bad[i], strlen(bad[i]), &err);

		CHECK(r == -EINVAL || r == -ENOMEM);
		if (r == -EINVAL)
			CHECK(str_has_prefix(err.text, "hosts.toml, line "));
		else
			printf("# case %zu\n", i);
	}
}

static void names_the_key(void)
{
	static const char text[] = "server = \"x\"\n\nservr = \"x\"\n";
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct error err = ERROR_INIT;
	struct hosts h;
	int r = hosts_parse(&h, &arena, text, sizeof(text) - 1, &err);

	CHECK(r == -EINVAL || r == -ENOMEM);
	if (r == -EINVAL)
		CHECK_STR(err.text, "hosts.toml, line 3: the key \"servr\" is not known here");
}

static void limits(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct hosts h;
	int r = 0;

	for (int i = 0; i < REGISTRY_HOSTS_MAX; i++)
		r = r < 0 ? r : buf_addf(&b, "[host.\"h%d\"]\n", i);
	CHECK_INT(r, 0);
	CHECK_INT(hosts_parse(&h, &arena, (const char *)buf_data(&b), b.len, NULL), 0);
	CHECK_INT(h.n_entries, REGISTRY_HOSTS_MAX);
	CHECK_INT(buf_addf(&b, "[host.\"h\"]\n"), 0);
	CHECK_INT(hosts_parse(&h, &arena, (const char *)buf_data(&b), b.len, NULL), -EINVAL);
	buf_clear(&b);
	CHECK_INT(buf_addf(&b, "ca = ["), 0);
	for (int i = 0; i < HOSTS_LIST_MAX; i++)
		CHECK_INT(buf_addf(&b, "\"a\",\n"), 0);
	CHECK_INT(buf_addf(&b, "]"), 0);
	CHECK_INT(hosts_parse(&h, &arena, (const char *)buf_data(&b), b.len, NULL), 0);
	CHECK_INT(h.server.n_ca, HOSTS_LIST_MAX);
}

UNIT_MAIN({ "everything", everything }, { "refuses", refuses }, { "names the key", names_the_key },
	  { "limits", limits })
