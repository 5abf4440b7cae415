/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/socket.h>

#include "base/text/str.h"
#include "unit.h"
#include "wire/document/cni_config.h"
#include "wire/document/cni_result.h"
#include "wire/message/cnimsg.h"

#define LIST(version, rest) "{\"cniVersion\":\"" version "\",\"name\":\"net\"," rest "}"
#define ONE "\"plugins\":[{\"type\":\"bridge\"}]"

static struct arena arena = ARENA_INIT_LIMIT(4 << 20);

static int config_of(struct cni_config *c, const char *text, struct error *err)
{
	*err = (struct error)ERROR_INIT;
	arena_done(&arena);
	return cni_config_parse(c, &arena, text, strlen(text), err);
}

static void lists_and_single_plugins_are_read(void)
{
	struct error err = ERROR_INIT;
	struct cni_config c;

	CHECK_INT(config_of(&c, LIST("0.4.0", "\"disableCheck\":\"true\"," ONE), &err), 0);
	CHECK_STR(err.text, "");
	CHECK_STR(c.name, "net");
	CHECK_STR(c.version, "0.4.0");
	CHECK(c.disable_check && !c.disable_gc);
	CHECK_INT(c.n_plugins, 1);
	CHECK_STR(c.plugins[0].type, "bridge");
	CHECK_INT(config_of(&c, LIST("0.3.1", "\"type\":\"ptp\""), &err), 0);
	CHECK_STR(c.plugins[0].type, "ptp");
	CHECK_INT(config_of(&c,
			    LIST("0.4.0", "\"cniVersions\":[\"0.3.1\",\"1.1.0\",\"9.0.0\"]," ONE),
			    &err),
		  0);
	CHECK_STR(c.version, "1.1.0");
	arena_done(&arena);
}

static void what_is_wrong_with_a_configuration_is_named(void)
{
	static const struct {
		const char *text, *part;
	} wrong[] = {
		{ "", "" },
		{ "[]", "no JSON object" },
		{ "{\"cniVersion\":\"1.0.0\"," ONE "}", "name:" },
		{ "{\"cniVersion\":\"1.0.0\",\"name\":\"a/b\"," ONE "}", "name:" },
		{ LIST("2.0.0", ONE), "cniVersion: \"2.0.0\"" },
		{ LIST("0.1.0", ONE), "cniVersion: \"0.1.0\"" },
		{ LIST("1.0.0", "\"cniVersions\":3," ONE), "cniVersions:" },
		{ LIST("1.0.0", "\"disableGC\":7," ONE), "disableGC:" },
		{ LIST("1.0.0", "\"plugins\":[]"), "plugins:" },
		{ LIST("1.0.0", "\"plugins\":[7]"), "plugins[0]:" },
		{ LIST("1.0.0", "\"plugins\":[{\"type\":\"../sh\"}]"), "plugins[0].type:" },
		{ LIST("1.0.0", "\"plugins\":[{\"type\":\"..\"}]"), "plugins[0].type:" },
		{ LIST("1.0.0", "\"plugins\":[{\"type\":\"a\",\"capabilities\":[]}]"),
		  "plugins[0].capabilities:" },
	};
	struct error err;
	struct cni_config c;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECK(config_of(&c, wrong[i].text, &err) < 0);
		CHECK(strstr(err.text, wrong[i].part));
	}
	arena_done(&arena);
}

static void a_plugin_is_sent_what_was_written(void)
{
	static const char text[] = LIST(
		"1.0.0",
		"\"plugins\":[{\"type\":\"a\",\"n\":18446744073709551616,\"q\":\"\\u0001\\\"\","
		"\"capabilities\":{\"mac\":true,\"dns\":false},\"cniVersion\":\"0.1.0\"}]");
	static const char offered[] = "{\"mac\":\"02:00:00:00:00:01\",\"dns\":{},\"ips\":[]}";
	static const char want[] =
		"{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"a\","
		"\"n\":18446744073709551616,\"q\":\"\\u0001\\\"\",\"runtimeConfig\":"
		"{\"mac\":\"02:00:00:00:00:01\"},\"prevResult\":{\"a\":[1,null]}}";
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *got = NULL;
	struct json_value *offer = NULL, *previous = NULL;
	struct error err;
	struct cni_config c;

	CHECK_INT(config_of(&c, text, &err), 0);
	CHECK_INT(json_parse(&offer, &arena, offered, strlen(offered), &err), 0);
	CHECK_INT(json_parse(&previous, &arena, "{\"a\":[1,null]}", 14, &err), 0);
	CHECK_INT(cni_request_print(&b, &(struct cni_request){ .config = &c,
							       .previous = previous,
							       .offered = offer }),
		  0);
	got = buf_take_str(&b);
	CHECK_STR(got, want);
	arena_done(&arena);
}

static void results_of_each_version_are_read(void)
{
	static const char old[] =
		"{\"cniVersion\":\"0.3.1\",\"interfaces\":[{\"name\":\"br0\"},{\"name\":\"eth0\","
		"\"mac\":\"02:00:00:00:00:07\",\"sandbox\":\"/x\"}],\"ips\":[{\"version\":\"4\","
		"\"address\":\"10.1.0.5/16\",\"interface\":1},{\"version\":\"4\",\"address\":"
		"\"10.9.0.5/16\",\"interface\":0}],\"routes\":[{\"dst\":\"0.0.0.0/"
		"0\"}],\"dns\":{}}";
	static const char new[] =
		"{\"cniVersion\":\"1.1.0\",\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/x\","
		"\"mtu\":1400}],\"ips\":[{\"address\":\"FD00::0005/64\"}]}";
	struct error err = ERROR_INIT;
	struct cni_result r;

	CHECK_INT(cni_result_parse(&r, &arena, old, strlen(old), "eth0", &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(r.n_addresses, 1);
	CHECK_STR(r.addresses[0].text, "10.1.0.5");
	CHECK_INT(r.addresses[0].length, 16);
	CHECK_STR(r.mac, "02:00:00:00:00:07");
	CHECK_INT(r.n_routes, 1);
	CHECK_INT(cni_result_parse(&r, &arena, new, strlen(new), "eth0", &err), 0);
	CHECK_STR(r.addresses[0].text, "fd00::5");
	CHECK_INT(r.addresses[0].family, AF_INET6);
	CHECK_INT(r.mtu, 1400);
	arena_done(&arena);
}

#define RESULT(rest) "{\"cniVersion\":\"1.0.0\"," rest "}"

static void a_plugin_that_lies_is_told_of(void)
{
	static const char *const wrong[] = {
		"",
		"hello",
		"7",
		"{}",
		"{\"cniVersion\":\"7.0.0\"}",
		RESULT("\"ips\":{}"),
		RESULT("\"ips\":[3]"),
		RESULT("\"ips\":[{}]"),
		RESULT("\"ips\":[{\"address\":\"10.0.0.1\"}]"),
		RESULT("\"ips\":[{\"address\":\"10.0.0.1/33\"}]"),
		RESULT("\"ips\":[{\"address\":\"10.0.0.1/-1\"}]"),
		RESULT("\"ips\":[{\"address\":\"10.0.0.1/\\u0000\"}]"),
		RESULT("\"routes\":[{\"dst\":\"world\"}]"),
		RESULT("\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"x\",\"mac\":\"zz\"}]"),
		RESULT("\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"x\",\"mtu\":-1}]"),
	};
	struct error err;
	struct cni_result r;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err = (struct error)ERROR_INIT;
		CHECK(cni_result_parse(&r, &arena, wrong[i], strlen(wrong[i]), "eth0", &err) < 0);
		CHECK(err.text[0]);
	}
	arena_done(&arena);
}

static void errors_are_read(void)
{
	static const char said[] = "{\"code\":7,\"msg\":\"bad\\n\\u001b[1m\",\"details\":\"more\"}";
	char text[CNI_ERROR_TEXT_MAX];
	unsigned code;

	CHECK_INT(cni_error_parse(text, &code, said, strlen(said)), 0);
	CHECK_INT(code, 7);
	CHECK(str_has_prefix(text, "code 7: bad"));
	CHECK(str_has_suffix(text, "; more"));
	CHECK(str_is_clean(text));
	CHECK_INT(cni_error_parse(text, &code, "{}", 2), -EBADMSG);
	CHECK_INT(cni_error_parse(text, &code, "{\"code\":0}", 10), -EBADMSG);
	CHECK_INT(cni_error_parse(text, &code, "[", 1), -EBADMSG);
}

static void messages_go_and_come(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const char *at = NULL;
	struct cnimsg m;

	CHECK_INT(cnimsg_put(&b, "verb", "%s", "add"), 0);
	CHECK_INT(cnimsg_put(&b, "ip", "10.0.0.%d", 1), 0);
	CHECK_INT(cnimsg_put(&b, "ip", "10.0.0.%d", 2), 0);
	CHECK_INT(cnimsg_put(&b, "text", "a=b"), 0);
	CHECK_INT(cnimsg_put(&b, "word", "x"), -EINVAL);
	CHECK_INT(cnimsg_put(&b, "text", "a\nb"), -EINVAL);
	CHECK_INT(cnimsg_read(&m, buf_data(&b), b.len), 0);
	CHECK_STR(cnimsg_get(&m, "verb"), "add");
	CHECK_STR(cnimsg_get(&m, "text"), "a=b");
	CHECK_STR(cnimsg_get(&m, "mac"), "");
	CHECK_STR(cnimsg_next(&m, "ip", &at), "10.0.0.1");
	CHECK_STR(cnimsg_next(&m, "ip", &at), "10.0.0.2");
	CHECK(!cnimsg_next(&m, "ip", &at));
}

static void other_packets_are_none(void)
{
	static const struct {
		const char *data;
		size_t len;
	} wrong[] = {
		{ "", 0 },           { "verb=add", 8 },      { "verb", 5 },    { "\0", 1 },
		{ "verb=a\0\0", 8 }, { "evil=a", 7 },        { "text=\n", 7 }, { "text=\xff", 7 },
		{ "=a", 3 },         { "verb=a\0text", 11 },
	};
	struct cnimsg m;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK_INT(cnimsg_read(&m, wrong[i].data, wrong[i].len), -EBADMSG);
}

UNIT_MAIN({ "lists and single plugins are read", lists_and_single_plugins_are_read },
	  { "what is wrong with a configuration is named",
	    what_is_wrong_with_a_configuration_is_named },
	  { "a plugin is sent what was written", a_plugin_is_sent_what_was_written },
	  { "results of each version are read", results_of_each_version_are_read },
	  { "a plugin that lies is told of", a_plugin_that_lies_is_told_of },
	  { "errors are read", errors_are_read }, { "messages go and come", messages_go_and_come },
	  { "other packets are none", other_packets_are_none })
