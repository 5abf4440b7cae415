/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/net_words.h"

#include "base/text/str.h"
#include "unit.h"

static const struct arg_option options[] = { OPTIONS_NET, { NULL, 0, NULL, NULL } };

struct bed {
	struct args args;
	struct net_words words;
	Aurae__Runtime__V0__PodNetwork *message;
	struct error err;
};

static int take(struct bed *b, const char *option, const char *value)
{
	char *argv[] = { (char *)(uintptr_t)option, (char *)(uintptr_t)value };
	int r;

	*b = (struct bed){ .message = NULL };
	r = args_parse(&b->args, options, NULL, ARGS_VERBATIM_NEVER, option ? 2 : 0, argv, &b->err);
	return r < 0 ? r : net_words_init(&b->words, &b->args, &b->message, &b->err);
}

static void done(struct bed *b)
{
	net_words_done(&b->words);
	args_done(&b->args);
}

static void ports(void)
{
	static const struct {
		const char *text, *host_ip;
		uint32_t host_port, port, count;
		const char *protocol;
	} cases[] = {
		{ "80", "", 0, 80, 1, "" },
		{ "8080:80", "", 8080, 80, 1, "" },
		{ "8080:80/udp", "", 8080, 80, 1, "udp" },
		{ "127.0.0.1:8080:80/sctp", "127.0.0.1", 8080, 80, 1, "sctp" },
		{ "127.0.0.1::80", "127.0.0.1", 0, 80, 1, "" },
		{ "[::1]:53:53/tcp", "::1", 53, 53, 1, "tcp" },
		{ "8000-8002:80-82", "", 8000, 80, 3, "" },
		{ "[fd00::1]:1-65535:1-65535", "fd00::1", 1, 1, 65535, "" },
		{ "80-81", "", 0, 80, 2, "" },
	};
	static const char *const wrong[] = { "",         "x",       "0",         "65536",
					     ":80",      "80:",     "1:2:3:4",   "80-79",
					     "80-",      "1-3:1-2", "::1:1:80",  "[::1]:80x",
					     "[::1:1:2", "-80",     "8080:80-81" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const Aurae__Runtime__V0__PublishedPort *p;
		struct bed b;

		CHECK_INT(take(&b, "--publish", cases[i].text), 0);
		CHECK(b.message && b.message->n_publish == 1);
		p = b.words.message.publish[0];
		CHECK_STR(p->host_ip, cases[i].host_ip);
		CHECK_INT(p->host_port, cases[i].host_port);
		CHECK_INT(p->port, cases[i].port);
		CHECK_INT(p->count, cases[i].count);
		CHECK_STR(p->protocol, cases[i].protocol);
		done(&b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct bed b;

		CHECK(take(&b, "-p", wrong[i]) < 0);
		CHECK(str_has_prefix(b.err.text, "--publish: "));
		done(&b);
	}
}

static void others(void)
{
	struct bed b;

	CHECK_INT(take(&b, NULL, NULL), 0);
	CHECK(!b.message);
	done(&b);
	CHECK_INT(take(&b, "--add-host", "db:fd00::7"), 0);
	CHECK_STR(b.message->hosts[0]->name, "db");
	CHECK_STR(b.message->hosts[0]->address, "fd00::7");
	done(&b);
	CHECK_INT(take(&b, "--add-host", "db=[::1]"), 0);
	CHECK_STR(b.message->hosts[0]->address, "::1");
	done(&b);
	CHECK(take(&b, "--add-host", "db") < 0);
	done(&b);
	CHECK_INT(take(&b, "--bandwidth", "100m"), 0);
	CHECK(b.message->rate_to_pod == 100000000 && b.message->rate_from_pod == 100000000);
	done(&b);
	CHECK_INT(take(&b, "--bandwidth", "1G:9600"), 0);
	CHECK(b.message->rate_to_pod == 1000000000 && b.message->rate_from_pod == 9600);
	done(&b);
	CHECK(take(&b, "--bandwidth", "1t") < 0);
	done(&b);
	CHECK(take(&b, "--bandwidth", ":") < 0);
	done(&b);
	CHECK_INT(take(&b, "--user-data", "/dev/null"), 0);
	CHECK(b.message && b.message->metadata && b.message->metadata->user_data.len == 0);
	CHECK(!b.message->metadata->identity);
	done(&b);
	CHECK(take(&b, "--user-data", "/dev/null/nothing") < 0);
	CHECK_STR(b.err.text, "--user-data: read /dev/null/nothing: Not a directory");
	done(&b);
}

static void words(void)
{
	Aurae__Runtime__V0__PublishedPort p[] = { AURAE__RUNTIME__V0__PUBLISHED_PORT__INIT,
						  AURAE__RUNTIME__V0__PUBLISHED_PORT__INIT,
						  AURAE__RUNTIME__V0__PUBLISHED_PORT__INIT };
	Aurae__Runtime__V0__PublishedPort *list[] = { &p[0], &p[1], &p[2] };
	_cleanup_str_ char *all = NULL, *none = net_words_ports(NULL, 0), *host = NULL;
	char tcp[] = "tcp", v6[] = "::1";

	for (uint32_t i = 0; i < ARRAY_SIZE(p); i++) {
		p[i].host_port = 8000 + i;
		p[i].port = 80 + i;
		p[i].protocol = tcp;
	}
	p[2].host_ip = v6;
	all = net_words_ports(list, ARRAY_SIZE(list));
	CHECK_STR(all, "8000-8001->80-81/tcp, [::1]:8002->82/tcp");
	CHECK_STR(none, "");
	host = net_words_host(&p[2]);
	CHECK_STR(host, "[::1]:8002");
}

/* "take" without the message: further ones are beside it. */
static void networks(void)
{
	Aurae__Runtime__V0__RunPodRequest q = AURAE__RUNTIME__V0__RUN_POD_REQUEST__INIT;
	static const char *const wrong[] = { "a:", "a:ip", "a:ip=", "a:name=x", "a:ip=1.2.3.4,," };
	struct bed b;

	CHECK_INT(take(&b, "--network", "back:ip=10.0.0.5,ip=fd00::5,mac=02:00:00:00:00:05"), 0);
	CHECK_INT(net_words_networks(&b.words, &b.args, &q, &b.err), 0);
	CHECK_STR(q.network, "back");
	CHECK(q.pod_network && q.n_further_networks == 0);
	CHECK_STR(q.pod_network->ip, "10.0.0.5");
	CHECK_STR(q.pod_network->ip6, "fd00::5");
	CHECK_STR(q.pod_network->mac, "02:00:00:00:00:05");
	done(&b);
	CHECK_INT(take(&b, "--network", "cni:other"), 0);
	CHECK_INT(net_words_networks(&b.words, &b.args, &q, &b.err), 0);
	CHECK_STR(q.network, "cni:other");
	done(&b);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECK_INT(take(&b, "--network", wrong[i]), 0);
		CHECK(net_words_networks(&b.words, &b.args, &q, &b.err) < 0);
		CHECK(str_has_prefix(b.err.text, "--network: "));
		done(&b);
	}
}

UNIT_MAIN({ "ports", ports }, { "networks", networks }, { "others", others }, { "words", words })
