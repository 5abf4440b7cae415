/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/chain.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "plugin/book.h"
#include "plugin/record.h"
#include "plugin/request.h"
#include "scratch.h"
#include "unit.h"

/*
 * Plugins are shell scripts in a directory of the test. Each notes what it was asked in the file
 * `log` of that.
 */

#define NOTE "cat >/dev/null; echo \"$CNI_COMMAND ${0##*/}\" >>${0%/*}/log\n"
#define RESULT(n)                                                                                  \
	"echo '{\"cniVersion\":\"0.4.0\",\"interfaces\":[{\"name\":\"eth0\",\"sandbox\":\"/x\"}]," \
	"\"ips\":[{\"version\":\"4\",\"address\":\"10.0.0." n "/24\",\"interface\":0}]}'\n"

static char dir[] = "/tmp/nacre-chain-XXXXXX";
static struct arena arena = ARENA_INIT_LIMIT(8 << 20);
static struct cni_config config;

static void put(const char *name, const char *text, mode_t mode)
{
	_cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(rootfd_put(fd, name, mode, text, strlen(text)), 0);
}

static void plugin(const char *name, const char *script)
{
	_cleanup_str_ char *text = str_format("#!/bin/sh\n%s", script);

	CHECK(text);
	put(name, text ? text : "", 0755);
}

/* What was noted, which is forgotten then. */
static char *noted(void)
{
	_cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	(void)fd_read_file(fd, "log", 65536, &b);
	(void)unlinkat(fd, "log", 0);
	return buf_take_str(&b);
}

static void begin(void)
{
	(void)str_copy(dir, sizeof(dir), "/tmp/nacre-chain-XXXXXX");
	CHECK(mkdtemp(dir));
}

static void end(void)
{
	arena_done(&arena);
	CHECK_INT(scratch_remove(dir), 0);
}

/* A chain of those plugins. */
static struct chain chain_of(const char *version, const char *plugins)
{
	_cleanup_str_ char *text = str_format("{\"cniVersion\":\"%s\",\"name\":\"net\","
					      "\"plugins\":[%s]}",
					      version, plugins);
	struct error err = ERROR_INIT;
	char *copy = arena_strdup(&arena, text ? text : "");

	CHECK_INT(cni_config_parse(&config, &arena, copy, strlen(copy), &err), 0);
	CHECK_STR(err.text, "");
	return (struct chain){ .config = &config,
			       .bin_dirs = dir,
			       .path = "/usr/bin:/bin",
			       .container = "c1",
			       .netns = "/run/x",
			       .interface = "eth0",
			       .args = "A=b",
			       .arena = &arena,
			       .limit = 20 * NSEC_PER_SEC,
			       .pause = NSEC_PER_MSEC,
			       .cancel_fd = -1 };
}

static void results_go_through_the_chain(void)
{
	struct error err = ERROR_INIT;
	struct cni_result result;
	_cleanup_str_ char *log = NULL, *again = NULL;
	struct chain c;

	begin();
	plugin("one", NOTE RESULT("1"));
	/* The second says what it got from the first one, and its variables. */
	plugin("two", "in=$(cat); echo \"$CNI_COMMAND two $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME "
		      "$CNI_ARGS\" >>${0%/*}/log\n"
		      "case $CNI_COMMAND:$in in *:*prevResult*10.0.0.1/24*|DEL:*|CHECK:*) ;; "
		      "*) exit 9;; esac\n" RESULT("2"));
	c = chain_of("0.4.0", "{\"type\":\"one\"},{\"type\":\"two\"}");
	CHECK_INT(chain_add(&c, &result, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_STR(result.addresses[0].text, "10.0.0.2");
	CHECK_INT(chain_check(&c, result.tree, &err), 0);
	log = noted();
	CHECK_STR(log,
		  "ADD one\nADD two c1 /run/x eth0 A=b\nCHECK one\nCHECK two c1 /run/x eth0 A=b\n");
	CHECK_INT(chain_del(&c, result.tree, &err), 0);
	CHECK_INT(chain_gc(&c, "[]", &err), 0);
	CHECK_INT(chain_status(&c, &err), 0);
	again = noted();
	CHECK_STR(again, "DEL two c1 /run/x eth0 A=b\nDEL one\n");
	end();
}

static void newer_verbs_are_asked_of_newer_plugins(void)
{
	struct error err = ERROR_INIT;
	_cleanup_str_ char *log = NULL;
	struct chain c;

	begin();
	plugin("one", "in=$(cat); echo \"$CNI_COMMAND\" >>${0%/*}/log\n"
		      "case $CNI_COMMAND in VERSION) echo '{\"cniVersion\":\"1.1.0\","
		      "\"supportedVersions\":[\"1.0.0\",\"1.1.0\"]}';; GC) case $in in "
		      "*'\"cni.dev/valid-attachments\":[7]'*) ;; *) exit 3;; esac;; STATUS) echo "
		      "'{\"code\":50,\"msg\":\"no\"}'; exit 1;; esac\n");
	c = chain_of("1.1.0", "{\"type\":\"one\"}");
	CHECK_INT(chain_version(&c, &err), 0);
	CHECK_INT(chain_gc(&c, "[7]", &err), 0);
	CHECK_STR(err.text, "");
	CHECK(chain_status(&c, &err) < 0);
	CHECK_STR(err.text, "the plugin one failed in STATUS: code 50: no");
	log = noted();
	CHECK_STR(log, "VERSION\nGC\nSTATUS\n");
	c = chain_of("0.3.1", "{\"type\":\"one\"}");
	err = (struct error)ERROR_INIT;
	CHECK(chain_version(&c, &err) < 0);
	CHECK(strstr(err.text, "the plugin one does not speak version 0.3.1"));
	end();
}

/* Plugins that do not do as they should, and the end of what is said of them. */
static void bad_plugins_are_told_of(void)
{
	static const struct {
		const char *script, *says;
		enum error_kind kind;
	} bad[] = {
		{ "echo '{\"code\":7,\"msg\":\"bad\"}'; exit 1\n",
		  "the plugin bad failed in ADD: code 7: bad", ERROR_PRECONDITION },
		{ "echo '{\"code\":11,\"msg\":\"later\"}'; exit 1\n",
		  "the plugin bad failed in ADD: code 11: later", ERROR_UNAVAILABLE },
		{ "echo oops >&2; exit 3\n", "the plugin bad failed in ADD: oops",
		  ERROR_PRECONDITION },
		{ "exit 3\n", "the plugin bad failed in ADD: exit code 3 and not a word",
		  ERROR_PRECONDITION },
		{ "kill -9 $$\n",
		  "the plugin bad was killed by signal 9 in ADD: exit code -1 and not a word",
		  ERROR_PRECONDITION },
		{ "echo hello\n", "the answer of the plugin bad to ADD:", ERROR_INVALID },
		{ ":\n", "the answer of the plugin bad to ADD:", ERROR_INVALID },
		{ "while :; do echo 0123456789012345678901234567890123456789; done\n",
		  "the plugin bad wrote more than the limit of 1048576 bytes", ERROR_INVALID },
		{ "(sleep 100) & sleep 100\n",
		  "the plugin bad did not end within 0.2 seconds and was killed", ERROR_DEADLINE },
		{ "while :; do echo 01234567890123456789 >&2; done\n",
		  "the plugin bad did not end within 0.2 seconds and was killed", ERROR_DEADLINE },
	};

	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	begin();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct chain c = chain_of("1.0.0", "{\"type\":\"bad\"}");
		struct error err = ERROR_INIT;
		struct cni_result result;

		plugin("bad", bad[i].script);
		c.limit = bad[i].kind == ERROR_DEADLINE ? NSEC_PER_SEC / 5 : c.limit;
		CHECK(chain_add(&c, &result, &err) < 0);
		CHECK(str_has_prefix(err.text, bad[i].says));
		if (!str_has_prefix(err.text, bad[i].says))
			CHECK_STR(err.text, bad[i].says);
		CHECK_INT(err.kind, bad[i].kind);
	}
	end();
}

static void one_that_leaves_a_child_is_not_waited_for(void)
{
	struct error err = ERROR_INIT;
	struct cni_result result;
	const nsec_t from = clock_mono();
	struct chain c;

	begin();
	plugin("one", "sleep 30 &\n" RESULT("1"));
	c = chain_of("0.4.0", "{\"type\":\"one\"}");
	CHECK_INT(chain_add(&c, &result, &err), 0);
	CHECK(clock_mono() - from < 15 * NSEC_PER_SEC);
	end();
}

static void one_that_knows_no_container_has_nothing_to_delete(void)
{
	struct error err = ERROR_INIT;
	struct chain c;

	begin();
	plugin("one", "echo '{\"code\":3,\"msg\":\"who\"}'; exit 1\n");
	c = chain_of("0.4.0", "{\"type\":\"one\"}");
	CHECK_INT(chain_del(&c, NULL, &err), 0);
	CHECK_STR(err.text, "");
	c = chain_of("0.4.0", "{\"type\":\"two\"}");
	CHECK(chain_del(&c, NULL, &err) < 0);
	CHECK(str_has_prefix(err.text, "the plugin two is in none of the directories"));
	end();
}

static void records_come_back(void)
{
	static const char text[] = "{\"cniVersion\":\"1.0.0\",\"name\":\"net\",\"type\":\"one\"}";
	struct record r = { .container = "c1",
			    .interface = "eth0",
			    .netns = "/n",
			    .args = "A=b",
			    .boot = "b" },
		      back;
	_cleanup_strv_ char **list = NULL;
	_cleanup_fd_ int fd = -1;
	struct json_value *tree = NULL;
	struct error err = ERROR_INIT;

	begin();
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(json_parse(&tree, &arena, text, strlen(text), &err), 0);
	r.config_tree = tree;
	CHECK_INT(record_save(&r, fd, &err), 0);
	CHECK_INT(record_load(&back, &arena, fd, "c1", false), 0);
	CHECK_STR(back.container, "c1");
	CHECK_STR(back.args, "A=b");
	CHECK_STR(back.config.plugins[0].type, "one");
	CHECK(!back.result && !back.offered);
	CHECK_INT(record_load(&back, &arena, fd, "../c1", false), -EINVAL);
	CHECK_INT(record_mark_gone(fd, "c1"), 0);
	CHECK_INT(record_load(&back, &arena, fd, "c1", false), -ENOENT);
	CHECK_INT(record_load(&back, &arena, fd, "c1", true), 0);
	CHECK_INT(record_list(fd, true, &list), 0);
	CHECK_INT(strv_len(list), 1);
	record_remove(fd, "c1");
	put("c2.json", "{\"container\":", 0600);
	CHECK_INT(record_load(&back, &arena, fd, "c2", false), -EBADMSG);
	end();
}

static void the_first_configuration_serves(void)
{
	struct book b = {
		.path = "/usr/bin:/bin", .conf_dir = dir, .bin_dirs = dir, .cancel_fd = -1
	};
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct error err = ERROR_INIT;

	begin();
	book_init(&b);
	CHECK(book_refresh(&b));
	CHECK(strstr(b.reason, "no CNI configuration file in /tmp/"));
	CHECK(book_find(&b, "", &text, &err) < 0);
	plugin("one", "echo '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n");
	put("20.conflist",
	    "{\"cniVersion\":\"1.0.0\",\"name\":\"b\",\"plugins\":[{\"type\":\"one\"}]}", 0644);
	CHECK(book_refresh(&b));
	CHECK(b.ready);
	CHECK_STR(b.network, "b");
	put("10.conf", "{\"cniVersion\":\"1.0.0\",\"name\":\"a\",\"type\":\"two\"}", 0644);
	put("00.txt", "nothing", 0644);
	CHECK(book_refresh(&b));
	CHECK(!b.ready);
	CHECK(str_has_prefix(b.reason, "the plugin two is in none"));
	plugin("two", "echo '{\"cniVersion\":\"1.0.0\",\"supportedVersions\":[\"1.0.0\"]}'\n");
	CHECK(book_refresh(&b));
	CHECK(b.ready);
	CHECK_STR(b.network, "a");
	/* A broken one never makes another one serve. */
	put("10.conf", "{\"cniVersion\":", 0644);
	CHECK(!book_refresh(&b));
	CHECK(b.ready);
	CHECK_INT(book_find(&b, "b", &text, &err), 0);
	CHECK(book_find(&b, "c", &text, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	book_done(&b);
	end();
}

static void requests_are_said_in_the_words_of_cni(void)
{
	_cleanup_(buf_done) struct buf in = BUF_INIT, args = BUF_INIT, offered = BUF_INIT;
	static const char *const words[][2] = {
		{ "container", "c1" },      { "pod", "web" },
		{ "namespace", "ns" },      { "uid", "u" },
		{ "port", "tcp,,8080,80" }, { "port", "udp,127.0.0.1,53,53" },
		{ "ip", "10.0.0.9" },       { "mac", "02:00:00:00:00:01" },
		{ "rate-in", "8000000" },   { "server", "10.0.0.1" },
		{ "option", "ndots:5" },
	};
	struct error err = ERROR_INIT;
	_cleanup_str_ char *text = NULL;
	struct cnimsg m;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		CHECK_INT(cnimsg_put(&in, words[i][0], "%s", words[i][1]), 0);
	CHECK_INT(cnimsg_read(&m, buf_data(&in), in.len), 0);
	CHECK_INT(request_args(&m, &args, &err), 0);
	CHECK_STR((const char *)buf_data(&args),
		  "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web;"
		  "K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u");
	CHECK_INT(request_capabilities(&m, &offered, &err), 0);
	text = buf_take_str(&offered);
	CHECK_STR(
		text,
		"{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"},"
		"{\"hostPort\":53,\"containerPort\":53,\"protocol\":\"udp\",\"hostIP\":"
		"\"127.0.0.1\"}],\"ips\":[\"10.0.0.9\"],\"mac\":\"02:00:00:00:00:01\","
		"\"bandwidth\":{\"ingressRate\":8000000,\"ingressBurst\":2000000},"
		"\"dns\":{\"servers\":[\"10.0.0.1\"],\"options\":[\"ndots:5\"]}}");
	CHECK_INT(cnimsg_put(&in, "port", "tcp,,0,80"), 0);
	CHECK_INT(cnimsg_read(&m, buf_data(&in), in.len), 0);
	buf_clear(&offered);
	CHECK(request_capabilities(&m, &offered, &err) < 0);
}

UNIT_MAIN({ "results go through the chain", results_go_through_the_chain },
	  { "newer verbs are asked of newer plugins", newer_verbs_are_asked_of_newer_plugins },
	  { "bad plugins are told of", bad_plugins_are_told_of },
	  { "one that leaves a child is not waited for",
	    one_that_leaves_a_child_is_not_waited_for },
	  { "one that knows no container has nothing to delete",
	    one_that_knows_no_container_has_nothing_to_delete },
	  { "records come back", records_come_back },
	  { "the first configuration serves", the_first_configuration_serves },
	  { "requests are said in the words of CNI", requests_are_said_in_the_words_of_cni })
