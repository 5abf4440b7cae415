/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/health_options.h"

#include <errno.h>
#include <string.h>

#include "base/text/args.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/table/command.h"
#include "wire/document/jsonread.h"

static const char *const health_options_probes[] = { "health-cmd", "health-http", "health-tcp",
						     "health-grpc" };

/* ["curl", "-f", "http://localhost"]: no shell. */
static int health_options_words(struct health_options *h, const char *text, struct error *err)
{
	struct json_value *list, *word;
	struct error own = ERROR_INIT;
	size_t n = 0;

	if (json_parse(&list, &h->arena, text, strlen(text), &own) < 0)
		return error_refuse(err, ERROR_INVALID, "--health-cmd: %s", error_text(&own));
	h->message.command = arena_zalloc(&h->arena, list->n + 1, sizeof(char *));
	if (!h->message.command)
		return error_set(err, -ENOMEM, "--health-cmd");
	for (word = list->first; word; word = word->next) {
		if (word->kind != JSON_STRING)
			return error_refuse(err, ERROR_INVALID,
					    "--health-cmd: the array has something that is no "
					    "string");
		h->message.command[n++] = (char *)(uintptr_t)word->text;
	}
	h->message.n_command = n;
	return n > 0 ? 0 : error_refuse(err, ERROR_INVALID, "--health-cmd: the array is empty");
}

static int health_options_command(struct health_options *h, char *text, struct error *err)
{
	if (!*text)
		return error_refuse(err, ERROR_INVALID, "--health-cmd: no command");
	if (str_eq(text, "none"))
		h->message.disabled = true;
	else if (*text == '[')
		return health_options_words(h, text, err);
	else
		h->message.shell = text;
	return 0;
}

/* PORT, or PORT and what is behind a '/': with it, or without. */
static int health_options_port(struct health_options *h, const char *option, const char *text,
			       bool with_slash, uint32_t *ret_port, char **ret_rest,
			       struct error *err)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	char *port = arena_strndup(&h->arena, text, n);

	if (!port)
		return error_set(err, -ENOMEM, "--%s", option);
	if (parse_u32(port, ret_port) < 0 || *ret_port < 1 || *ret_port > UINT16_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "--%s: a port is a number from 1 to 65535, not \"%s\"", option,
				    port);
	if (slash)
		*ret_rest = (char *)(uintptr_t)(with_slash ? slash : slash + 1);
	return 0;
}

static int health_options_probe(struct health_options *h, const struct args *a, struct error *err)
{
	char *command = args_value(a, "health-cmd"), *http = args_value(a, "health-http");
	char *tcp = args_value(a, "health-tcp"), *grpc = args_value(a, "health-grpc");
	char *rest = NULL;
	int r = 0;

	if (command)
		r = health_options_command(h, command, err);
	if (http) {
		aurae__runtime__v0__http_probe__init(&h->http);
		h->message.http = &h->http;
		r = health_options_port(h, "health-http", http, true, &h->http.port, &h->http.path,
					err);
	}
	if (tcp) {
		r = health_options_port(h, "health-tcp", tcp, true, &h->message.tcp_port, &rest,
					err);
		if (r == 0 && rest)
			r = error_refuse(err, ERROR_INVALID, "--health-tcp is a port, not \"%s\"",
					 tcp);
	}
	if (grpc) {
		aurae__runtime__v0__grpc_probe__init(&h->grpc);
		h->message.grpc = &h->grpc;
		r = health_options_port(h, "health-grpc", grpc, false, &h->grpc.port,
					&h->grpc.service, err);
	}
	return r;
}

static int health_options_time(const struct args *a, const char *name, uint64_t *to, bool *given,
			       struct error *err)
{
	const char *text = args_value(a, name);
	nsec_t time;

	if (!text)
		return 0;
	*given = true;
	if (parse_duration(text, &time) < 0)
		return error_refuse(err, ERROR_INVALID,
				    "--%s is a time such as 10, 500ms or 5m, not \"%s\"", name,
				    text);
	/* 0 is the default, as docker has it. */
	*to = time / NSEC_PER_MSEC;
	return 0;
}

static int health_options_rest(struct health_options *h, const struct args *a, bool *given,
			       struct error *err)
{
	Aurae__Runtime__V0__HealthCheck *m = &h->message;
	const char *retries = args_value(a, "health-retries");
	int r;

	r = health_options_time(a, "health-interval", &m->interval_ms, given, err);
	if (r == 0)
		r = health_options_time(a, "health-timeout", &m->timeout_ms, given, err);
	if (r == 0)
		r = health_options_time(a, "health-start-period", &m->start_period_ms, given, err);
	if (r == 0)
		r = health_options_time(a, "health-start-interval", &m->start_interval_ms, given,
					err);
	if (r == 0 && retries && (parse_u32(retries, &m->retries) < 0 || !m->retries))
		r = error_refuse(err, ERROR_INVALID,
				 "--health-retries is a number from 1 on, not \"%s\"", retries);
	if (args_value(a, "health-on-failure"))
		m->on_failure = args_value(a, "health-on-failure");
	*given = *given || retries || args_value(a, "health-on-failure");
	return r;
}

int health_options_take(struct health_options *h, Aurae__Runtime__V0__Container *to,
			const struct args *a, struct error *err)
{
	bool off = args_flag(a, "no-healthcheck"), given = false;
	size_t n_probes = 0;
	int r;

	*h = (struct health_options){ .arena = ARENA_INIT };
	aurae__runtime__v0__health_check__init(&h->message);
	for (size_t i = 0; i < ARRAY_SIZE(health_options_probes); i++)
		n_probes += args_value(a, health_options_probes[i]) != NULL;
	if (n_probes > 1)
		return error_refuse(err, ERROR_INVALID,
				    "only one of --health-cmd, --health-http, --health-tcp and "
				    "--health-grpc");
	r = health_options_probe(h, a, err);
	if (r == 0)
		r = health_options_rest(h, a, &given, err);
	if (r < 0)
		return r;
	h->message.disabled = h->message.disabled || off;
	if (h->message.disabled && (given || (off && n_probes > 0)))
		return error_refuse(err, ERROR_INVALID,
				    "%s: not with any other option of health checks",
				    off ? "--no-healthcheck" : "--health-cmd none");
	if (h->message.disabled || given || n_probes > 0)
		to->health = &h->message;
	return 0;
}

int health_options_check_stays(const struct health_options *h, struct error *err)
{
	if (!str_eq(h->message.on_failure, "restart"))
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "--rm and --health-on-failure restart exclude each other: what is "
			    "removed when it has ended cannot be started again");
}

void health_options_done(struct health_options *h)
{
	arena_done(&h->arena);
}
