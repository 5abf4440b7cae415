/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/health_view.h"

#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

const char *health_view_word(const Nacre__V1__Workload *w)
{
	static const char *const words[] = { "", "healthy", "starting", "unhealthy" };
	size_t worst = 0;

	for (size_t i = 0; i < w->n_containers; i++) {
		const Nacre__V1__Container *c = w->containers[i];

		if (!c->health_status || !str_eq(c->state, "running"))
			continue;
		for (size_t k = worst; k < ARRAY_SIZE(words); k++)
			if (str_eq(words[k], c->health_status->status))
				worst = k;
	}
	return words[worst];
}

/* Up to a NUL. */
static void health_view_output(struct json *j, const char *key, const Nacre__V1__HealthResult *r)
{
	_cleanup_str_ char *text = xformat("%.*s", (int)r->output.len,
					   r->output.len ? (const char *)r->output.data : "");

	json_put_string(j, key, text);
}

void health_view_result(struct json *j, const Nacre__V1__HealthResult *r)
{
	json_put_time(j, "started_at", r->started_at);
	json_put_time(j, "ended_at", r->ended_at);
	json_put_integer(j, "exit_code", r->exit_code);
	health_view_output(j, "output", r);
}

static void health_view_check(struct json *j, const Aurae__Runtime__V0__HealthCheck *m)
{
	json_put_object(j, "check");
	json_put_array(j, "command");
	for (size_t i = 0; i < m->n_command; i++)
		json_put_string(j, NULL, m->command[i]);
	json_put_end(j);
	json_put_word(j, "shell", m->shell);
	json_put_unsigned(j, "port",
			  m->http   ? m->http->port
			  : m->grpc ? m->grpc->port
				    : m->tcp_port);
	json_put_word(j, "path", m->http ? m->http->path : "");
	json_put_word(j, "service", m->grpc ? m->grpc->service : "");
	json_put_string(j, "kind",
			m->http       ? "http"
			: m->grpc     ? "grpc"
			: m->tcp_port ? "tcp"
				      : "command");
	json_put_unsigned(j, "interval_ms", m->interval_ms);
	json_put_unsigned(j, "timeout_ms", m->timeout_ms);
	json_put_unsigned(j, "start_period_ms", m->start_period_ms);
	json_put_unsigned(j, "start_interval_ms", m->start_interval_ms);
	json_put_unsigned(j, "retries", m->retries);
	json_put_string(j, "on_failure", m->on_failure);
	json_put_end(j);
}

void health_view(struct json *j, const Nacre__V1__Container *c)
{
	const Nacre__V1__Health *h = c->health_status;

	if (!h || !h->check) {
		json_put_null(j, "health");
		return;
	}
	json_put_object(j, "health");
	json_put_string(j, "status", h->status);
	json_put_unsigned(j, "failing_streak", h->failing_streak);
	health_view_check(j, h->check);
	json_put_array(j, "results");
	for (size_t i = 0; i < h->n_results; i++) {
		json_put_object(j, NULL);
		health_view_result(j, h->results[i]);
		json_put_end(j);
	}
	json_put_end(j);
	json_put_end(j);
}

void health_view_docker(struct json *j, const Nacre__V1__Container *c)
{
	const Nacre__V1__Health *h = c ? c->health_status : NULL;

	if (!h)
		return;
	json_put_object(j, "Health");
	json_put_string(j, "Status", h->status);
	json_put_unsigned(j, "FailingStreak", h->failing_streak);
	json_put_array(j, "Log");
	for (size_t i = 0; i < h->n_results; i++) {
		json_put_object(j, NULL);
		json_put_time(j, "Start", h->results[i]->started_at);
		json_put_time(j, "End", h->results[i]->ended_at);
		json_put_integer(j, "ExitCode", h->results[i]->exit_code);
		health_view_output(j, "Output", h->results[i]);
		json_put_end(j);
	}
	json_put_end(j);
	json_put_end(j);
}
