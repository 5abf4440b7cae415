/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/health.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "image/image.h"
#include "runtime/core/check.h"
#include "runtime/start/settings.h"
#include "wire/message/fetchmsg.h"
#include "wire/message/probe.h"

#define HEALTH_INTERVAL (30 * NSEC_PER_SEC)
#define HEALTH_TIMEOUT (30 * NSEC_PER_SEC)
#define HEALTH_START_INTERVAL (5 * NSEC_PER_SEC)
#define HEALTH_RETRIES 3

static const char *const health_actions[] = {
	[HEALTH_DO_NOTHING] = "none",
	[HEALTH_KILL] = "kill",
	[HEALTH_STOP] = "stop",
	[HEALTH_RESTART] = "restart",
};

static enum health_action health_action_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(health_actions); i++)
		if (str_eq(health_actions[i], word))
			return (enum health_action)i;
	return HEALTH_DO_NOTHING;
}

/* ---- the request ---- */

static size_t health_n_kinds(const Aurae__Runtime__V0__HealthCheck *h)
{
	return (h->n_command > 0) + !str_empty(h->shell) + (h->http != NULL) + (h->tcp_port != 0) +
	       (h->grpc != NULL);
}

/* Some field beside `disabled`. */
static bool health_says_more(const Aurae__Runtime__V0__HealthCheck *h)
{
	return health_n_kinds(h) || h->interval_ms || h->timeout_ms || h->start_period_ms ||
	       h->start_interval_ms || h->retries || !str_empty(h->on_failure);
}

static int health_check_port(const char *field, uint32_t port, struct error *err)
{
	return port >= 1 && port <= UINT16_MAX
		       ? 0
		       : error_field(err, ERROR_INVALID, field, "%u is not from 1 to 65535", port);
}

/* Nothing that ends a line, or a word of one. */
static int health_check_ascii(const char *field, const char *text, size_t n_max, struct error *err)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return error_field(err, ERROR_INVALID, field,
					   "only printable ASCII without blanks");
	return n <= n_max ? 0
			  : error_field(err, ERROR_INVALID, field,
					"%zu bytes are more than the limit of %zu", n, n_max);
}

struct health_field {
	char name[ERROR_FIELD_MAX];
};

static struct health_field health_field(size_t i, const char *member)
{
	struct health_field f = { .name = "" };

	(void)str_printf(f.name, sizeof(f.name), "containers[%zu].health%s%s", i,
			 *member ? "." : "", member);
	return f;
}

static int health_check_times(const Aurae__Runtime__V0__HealthCheck *h, size_t i, struct error *err)
{
	const struct {
		const char *name;
		uint64_t ms;
	} times[] = {
		{ "interval_ms", h->interval_ms },
		{ "timeout_ms", h->timeout_ms },
		{ "start_period_ms", h->start_period_ms },
		{ "start_interval_ms", h->start_interval_ms },
	};
	const uint64_t min = HEALTH_TIME_MIN / NSEC_PER_MSEC, max = HEALTH_TIME_MAX / NSEC_PER_MSEC;

	for (size_t k = 0; k < ARRAY_SIZE(times); k++)
		if (times[k].ms && (times[k].ms < min || times[k].ms > max))
			return error_field(err, ERROR_INVALID, health_field(i, times[k].name).name,
					   "%llu ms; it is %llu ms to a day",
					   (unsigned long long)times[k].ms,
					   (unsigned long long)min);
	if (h->retries > HEALTH_RETRIES_MAX)
		return error_field(err, ERROR_INVALID, health_field(i, "retries").name,
				   "%u are more than the limit of %d", h->retries,
				   HEALTH_RETRIES_MAX);
	return 0;
}

static int health_check_probe(const Aurae__Runtime__V0__HealthCheck *h, size_t i, struct error *err)
{
	int r = 0;

	if (health_n_kinds(h) > 1)
		return error_field(err, ERROR_INVALID, health_field(i, "").name,
				   "only one of command, shell, http, tcp_port and grpc");
	if (h->n_command > 0)
		return check_words(health_field(i, "command").name, h->command, h->n_command, err);
	if (h->tcp_port)
		return health_check_port(health_field(i, "tcp_port").name, h->tcp_port, err);
	if (h->grpc) {
		r = health_check_port(health_field(i, "grpc.port").name, h->grpc->port, err);
		return r < 0 ? r
			     : health_check_ascii(health_field(i, "grpc.service").name,
						  h->grpc->service, PROBE_SERVICE_MAX, err);
	}
	if (h->http) {
		const struct health_field path = health_field(i, "http.path");

		r = health_check_port(health_field(i, "http.port").name, h->http->port, err);
		if (r == 0)
			r = health_check_ascii(path.name, h->http->path, PROBE_PATH_MAX, err);
		if (r == 0 && !str_empty(h->http->path) && h->http->path[0] != '/')
			r = error_field(err, ERROR_INVALID, path.name, "it begins with a '/'");
	}
	return r < 0 || str_empty(h->shell) ? r
					    : check_words(health_field(i, "shell").name,
							  (char *const *)&h->shell, 1, err);
}

/* What this workload, or this node, cannot do of it. */
static int health_check_able(const Aurae__Runtime__V0__HealthCheck *h, size_t i,
			     const struct workload_spec *spec, bool remote, struct error *err)
{
	const char *member = h->http ? "http" : h->grpc ? "grpc" : "tcp_port";
	enum health_action action = health_action_of(h->on_failure);

	if (!str_empty(h->on_failure) && !str_eq(h->on_failure, health_actions[action]))
		return error_field(err, ERROR_INVALID, health_field(i, "on_failure").name,
				   "\"%.80s\" is none of none, kill, stop and restart",
				   h->on_failure);
	if (action == HEALTH_RESTART && spec->auto_remove)
		return error_field(err, ERROR_INVALID, health_field(i, "on_failure").name,
				   "restart: not with auto_remove: what is removed when it has "
				   "ended cannot be started again");
	if (action == HEALTH_RESTART && remote)
		return error_field(err, ERROR_UNSUPPORTED, health_field(i, "on_failure").name,
				   "restart: not of kind vm, whose files are gone with the machine "
				   "(use kill or stop)");
	if ((h->http || h->grpc || h->tcp_port) && (remote || spec->kind == WORKLOAD_CELL))
		return error_field(err, ERROR_UNSUPPORTED, health_field(i, member).name,
				   "this node does not enter the network of %s: use command",
				   remote ? "an instance of kind vm" : "a cell");
	return 0;
}

static int health_check_image(const Aurae__Runtime__V0__Container *c, size_t i,
			      struct image_store *images, struct error *err)
{
	const struct image *image;

	if (c->health->disabled || health_n_kinds(c->health) > 0 || !health_says_more(c->health))
		return 0;
	/* One that is not there is told by whoever needs it. */
	image = image_store_find(images, c->image, NULL);
	if (!image || strv_len(image->config.health) > FETCH_HEALTH_NUMBERS)
		return 0;
	return error_field(err, ERROR_INVALID, health_field(i, "").name,
			   "it has no probe, and neither has the image %.200s (HEALTHCHECK)",
			   c->image);
}

int health_check_run(Aurae__Runtime__V0__Container *const *containers, size_t n,
		     const struct workload_spec *spec, bool remote, struct image_store *images,
		     struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const Aurae__Runtime__V0__HealthCheck *h = containers[i]->health;

		if (!h)
			continue;
		if (h->disabled && health_says_more(h))
			return error_field(err, ERROR_INVALID, health_field(i, "disabled").name,
					   "not with any other field");
		r = health_check_probe(h, i, err);
		if (r == 0)
			r = health_check_times(h, i, err);
		if (r == 0)
			r = health_check_able(h, i, spec, remote, err);
		if (r == 0)
			r = health_check_image(containers[i], i, images, err);
	}
	return r;
}

/* ---- the rule ---- */

/* As an image has it: 0 says nothing. */
static nsec_t health_image_time(const char *text, nsec_t otherwise)
{
	uint64_t ns;

	if (parse_u64(text, 0, UINT64_MAX, &ns) < 0 || ns == 0)
		return otherwise;
	return MAX(MIN(ns, HEALTH_TIME_MAX), HEALTH_TIME_MIN);
}

/* words: of wire/message/fetchmsg.h. 1, 0 where there is no probe in them, or -ENOMEM. */
static int health_take_image(struct health_rule *rule, char *const *words)
{
	size_t n = words ? strv_len(words) : 0;
	char *const *test = words + FETCH_HEALTH_NUMBERS;
	uint64_t retries;

	if (n <= FETCH_HEALTH_NUMBERS)
		return 0;
	rule->interval = health_image_time(words[0], rule->interval);
	rule->timeout = health_image_time(words[1], rule->timeout);
	rule->start_period = health_image_time(words[2], rule->start_period);
	rule->start_interval = health_image_time(words[3], rule->start_interval);
	if (parse_u64(words[4], 1, UINT32_MAX, &retries) == 0)
		rule->retries = (unsigned)MIN(retries, (uint64_t)HEALTH_RETRIES_MAX);
	if (n < FETCH_HEALTH_NUMBERS + 2)
		return 0;
	if (str_eq(test[0], "CMD"))
		rule->kind = HEALTH_COMMAND;
	else if (str_eq(test[0], "CMD-SHELL"))
		rule->kind = HEALTH_SHELL;
	else
		return 0;
	rule->words = strv_copy(test + 1);
	return rule->words ? 1 : -ENOMEM;
}

static int health_take_words(struct health_rule *rule, enum health_kind kind, char *const *words,
			     size_t n)
{
	strv_free(TAKE_PTR(rule->words));
	rule->kind = kind;
	for (size_t i = 0; i < n; i++)
		if (strv_add(&rule->words, words[i]) < 0)
			return -ENOMEM;
	return 1;
}

static int health_take_path(struct health_rule *rule, const char *path)
{
	char *word = (char *)(uintptr_t)(str_empty(path) ? "/" : path);

	return health_take_words(rule, HEALTH_HTTP, &word, 1);
}

/* 1, 0 where it says nothing of a probe, or -ENOMEM. */
static int health_take_probe(struct health_rule *rule, const Aurae__Runtime__V0__HealthCheck *h)
{
	rule->port = (uint16_t)(h->http ? h->http->port : h->grpc ? h->grpc->port : h->tcp_port);
	if (h->n_command > 0)
		return health_take_words(rule, HEALTH_COMMAND, h->command, h->n_command);
	if (!str_empty(h->shell))
		return health_take_words(rule, HEALTH_SHELL, (char *const *)&h->shell, 1);
	if (h->http)
		return health_take_path(rule, h->http->path);
	if (h->grpc)
		return health_take_words(rule, HEALTH_GRPC, (char *const *)&h->grpc->service, 1);
	return h->tcp_port ? health_take_words(rule, HEALTH_TCP, NULL, 0) : 0;
}

static nsec_t health_time(uint64_t ms, nsec_t otherwise)
{
	return ms ? ms * NSEC_PER_MSEC : otherwise;
}

static void health_take_rest(struct health_rule *rule, const Aurae__Runtime__V0__HealthCheck *h)
{
	rule->interval = health_time(h->interval_ms, rule->interval);
	rule->timeout = health_time(h->timeout_ms, rule->timeout);
	rule->start_period = health_time(h->start_period_ms, rule->start_period);
	rule->start_interval = health_time(h->start_interval_ms, rule->start_interval);
	rule->retries = h->retries ?: rule->retries;
	rule->action = health_action_of(h->on_failure);
}

/* What a request says goes over what the image says. */
static int health_merge(struct health_rule *rule, const Aurae__Runtime__V0__HealthCheck *h,
			char *const *image)
{
	int r = h && h->disabled ? 0 : health_take_image(rule, image), own;

	if (r < 0 || !h || h->disabled)
		return r;
	own = health_take_probe(rule, h);
	health_take_rest(rule, h);
	return own ? own : r;
}

int health_rule_of(const struct pod_container *c, struct health_rule *ret)
{
	struct health_rule rule = { .interval = HEALTH_INTERVAL,
				    .timeout = HEALTH_TIMEOUT,
				    .start_interval = HEALTH_START_INTERVAL,
				    .retries = HEALTH_RETRIES };
	char *const *image = c->image ? c->image->config.health : NULL;
	struct arena a = ARENA_INIT;
	struct settings_kept kept = { .resources = NULL };
	int r = 0;

	if (str_empty(c->settings) && (!image || !*image))
		return 0;
	/* A record that cannot be read is one of another release: its start would say so. */
	if (!str_empty(c->settings))
		r = settings_read(&a, c->settings, &kept, NULL);
	r = r == -ENOMEM ? r : health_merge(&rule, kept.health, image);
	arena_done(&a);
	if (r > 0)
		*ret = rule;
	else
		health_rule_done(&rule);
	return r;
}

/* ---- what is shown ---- */

static char *health_str(const char *s)
{
	return (char *)(uintptr_t)s;
}

Nacre__V1__HealthResult *health_show_result(struct arena *a, const struct health_result *result)
{
	Nacre__V1__HealthResult *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__health_result__init(m);
	m->started_at = result->started_at;
	m->ended_at = result->ended_at;
	m->exit_code = result->exit_code;
	m->output.data = (uint8_t *)result->output;
	m->output.len = result->n_output;
	return m;
}

static int health_show_probe(struct arena *a, Aurae__Runtime__V0__HealthCheck *m,
			     const struct health_rule *rule)
{
	switch (rule->kind) {
	case HEALTH_COMMAND:
		m->command = rule->words;
		m->n_command = strv_len(rule->words);
		return 0;
	case HEALTH_SHELL:
		m->shell = rule->words[0];
		return 0;
	case HEALTH_TCP:
		m->tcp_port = rule->port;
		return 0;
	case HEALTH_HTTP:
		m->http = arena_alloc(a, sizeof(*m->http));
		if (!m->http)
			return -ENOMEM;
		aurae__runtime__v0__http_probe__init(m->http);
		m->http->port = rule->port;
		m->http->path = rule->words[0];
		return 0;
	case HEALTH_GRPC:
		m->grpc = arena_alloc(a, sizeof(*m->grpc));
		if (!m->grpc)
			return -ENOMEM;
		aurae__runtime__v0__grpc_probe__init(m->grpc);
		m->grpc->port = rule->port;
		m->grpc->service = rule->words[0];
		return 0;
	}
	return 0;
}

static Aurae__Runtime__V0__HealthCheck *health_show_rule(struct arena *a,
							 const struct health_rule *rule)
{
	Aurae__Runtime__V0__HealthCheck *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	aurae__runtime__v0__health_check__init(m);
	m->interval_ms = rule->interval / NSEC_PER_MSEC;
	m->timeout_ms = rule->timeout / NSEC_PER_MSEC;
	m->start_period_ms = rule->start_period / NSEC_PER_MSEC;
	m->start_interval_ms = rule->start_interval / NSEC_PER_MSEC;
	m->retries = rule->retries;
	m->on_failure = health_str(health_actions[rule->action]);
	return health_show_probe(a, m, rule) < 0 ? NULL : m;
}

int health_show(struct arena *a, Nacre__V1__Container *to, const struct pod_container *c)
{
	const struct health *h = c->health;
	Nacre__V1__Health *m;

	if (!h)
		return 0;
	m = arena_alloc(a, sizeof(*m));
	if (!m)
		return -ENOMEM;
	nacre__v1__health__init(m);
	m->status = health_str(health_word(c->health_status));
	m->failing_streak = h->streak;
	m->check = health_show_rule(a, &h->rule);
	m->results = arena_zalloc(a, HEALTH_RESULTS, sizeof(struct Nacre__V1__HealthResult *));
	if (!m->check || !m->results)
		return -ENOMEM;
	for (; m->n_results < h->n_results; m->n_results++) {
		m->results[m->n_results] = health_show_result(a, &h->results[m->n_results]);
		if (!m->results[m->n_results])
			return -ENOMEM;
	}
	to->health_status = m;
	return 0;
}
