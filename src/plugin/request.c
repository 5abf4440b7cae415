/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/request.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/document/jsonwrite.h"

/* Bits that may pass at once: what a quarter of a second lets through, and 64 KiB at least. */
#define REQUEST_BURST_MIN (UINT64_C(64) * 1024 * 8)
#define REQUEST_BURST_SHARE 4

static int request_bad(const char *what, struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "%s: makes no sense", what);
}

static int request_texts(struct buf *b, const struct cnimsg *m, const char *key, const char *name)
{
	const char *at = NULL, *value = cnimsg_next(m, key, &at);
	int r = 0;

	if (!value)
		return 0;
	r = json_write_name(b, name);
	for (const char *sep = "["; value && r == 0; sep = ",") {
		r = buf_add_str(b, sep);
		if (r == 0)
			r = json_write_text(b, value);
		value = cnimsg_next(m, key, &at);
	}
	return r < 0 ? r : buf_add_str(b, "]");
}

static int request_number(struct buf *b, const char *name, uint64_t n)
{
	int r = json_write_name(b, name);

	return r < 0 ? r : buf_addf(b, "%llu", (unsigned long long)n);
}

static int request_text(struct buf *b, const char *name, const char *value)
{
	int r = json_write_name(b, name);

	return r < 0 ? r : json_write_text(b, value);
}

/* "tcp,127.0.0.1,8080,80" */
static int request_port(struct buf *b, const char *text)
{
	char word[128], *at = word;
	const char *protocol, *host, *of_host, *of_pod;
	uint64_t from, to;
	int r;

	if (str_copy(word, sizeof(word), text) < 0)
		return -EINVAL;
	protocol = strsep(&at, ",");
	host = strsep(&at, ",");
	of_host = strsep(&at, ",");
	of_pod = strsep(&at, ",");
	if (at || !of_pod || parse_u64(of_host, 1, UINT16_MAX, &from) < 0 ||
	    parse_u64(of_pod, 1, UINT16_MAX, &to) < 0)
		return -EINVAL;
	r = buf_add_str(b, "{");
	if (r == 0)
		r = request_number(b, "hostPort", from);
	if (r == 0)
		r = request_number(b, "containerPort", to);
	if (r == 0)
		r = request_text(b, "protocol", protocol);
	if (r == 0 && *host)
		r = request_text(b, "hostIP", host);
	return r < 0 ? r : buf_add_str(b, "}");
}

static int request_ports(struct buf *b, const struct cnimsg *m)
{
	const char *at = NULL, *value = cnimsg_next(m, "port", &at);
	int r = 0;

	if (!value)
		return 0;
	r = json_write_name(b, "portMappings");
	for (const char *sep = "["; value && r == 0; sep = ",") {
		r = buf_add_str(b, sep);
		if (r == 0)
			r = request_port(b, value);
		value = cnimsg_next(m, "port", &at);
	}
	return r < 0 ? r : buf_add_str(b, "]");
}

static int request_rate(struct buf *b, const char *rate_name, const char *burst_name,
			const char *text)
{
	uint64_t rate, burst;
	int r;

	if (parse_u64(text, 1, UINT64_MAX, &rate) < 0)
		return -EINVAL;
	burst = rate / REQUEST_BURST_SHARE;
	r = request_number(b, rate_name, rate);
	return r < 0 ? r
		     : request_number(b, burst_name,
				      burst < REQUEST_BURST_MIN ? REQUEST_BURST_MIN : burst);
}

static int request_rates(struct buf *b, const struct cnimsg *m)
{
	const char *in = cnimsg_get(m, "rate-in"), *out = cnimsg_get(m, "rate-out");
	int r = 0;

	if (!*in && !*out)
		return 0;
	r = json_write_name(b, "bandwidth");
	if (r == 0)
		r = buf_add_str(b, "{");
	if (r == 0 && *in)
		r = request_rate(b, "ingressRate", "ingressBurst", in);
	if (r == 0 && *out)
		r = request_rate(b, "egressRate", "egressBurst", out);
	return r < 0 ? r : buf_add_str(b, "}");
}

static int request_names(struct buf *b, const struct cnimsg *m)
{
	int r;

	if (!*cnimsg_get(m, "server") && !*cnimsg_get(m, "search") && !*cnimsg_get(m, "option"))
		return 0;
	r = json_write_name(b, "dns");
	if (r == 0)
		r = buf_add_str(b, "{");
	if (r == 0)
		r = request_texts(b, m, "server", "servers");
	if (r == 0)
		r = request_texts(b, m, "search", "searches");
	if (r == 0)
		r = request_texts(b, m, "option", "options");
	return r < 0 ? r : buf_add_str(b, "}");
}

int request_capabilities(const struct cnimsg *m, struct buf *ret, struct error *err)
{
	const char *mac = cnimsg_get(m, "mac");
	int r = buf_add_str(ret, "{");

	if (r == 0)
		r = request_ports(ret, m);
	if (r == 0)
		r = request_texts(ret, m, "ip", "ips");
	if (r == 0 && *mac)
		r = request_text(ret, "mac", mac);
	if (r == 0)
		r = request_rates(ret, m);
	if (r == 0)
		r = request_names(ret, m);
	if (r == 0)
		r = buf_add_str(ret, "}");
	return r == -EINVAL ? request_bad("a port or rate of the request", err)
	       : r < 0      ? error_set(err, r, "the arguments of a network")
			    : 0;
}

int request_args(const struct cnimsg *m, struct buf *ret, struct error *err)
{
	static const char *const args[][2] = { { "K8S_POD_NAMESPACE", "namespace" },
					       { "K8S_POD_NAME", "pod" },
					       { "K8S_POD_INFRA_CONTAINER_ID", "container" },
					       { "K8S_POD_UID", "uid" } };
	int r = buf_add_str(ret, "IgnoreUnknown=1");

	for (size_t i = 0; i < ARRAY_SIZE(args) && r == 0; i++) {
		const char *value = cnimsg_get(m, args[i][1]);

		if (strpbrk(value, ";="))
			return request_bad(args[i][1], err);
		r = buf_addf(ret, ";%s=%s", args[i][0], value);
	}
	if (r == 0)
		r = buf_add(ret, "", 1);
	return r < 0 ? error_set(err, r, "the arguments of a network") : 0;
}
