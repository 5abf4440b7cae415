/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/text/str.h"
#include "registry/exchange.h"
#include "registry/limits.h"
#include "registry/token.h"

static uint32_t client_or(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void client_settings(struct registry *r)
{
	const struct registry_settings *s = &r->config->settings;

	r->settings = (struct registry_settings){
		.connections = client_or(s->connections, REGISTRY_CONNECTIONS),
		.stall_ms = client_or(s->stall_ms, REGISTRY_STALL_MS),
		.min_rate = client_or(s->min_rate, REGISTRY_MIN_RATE),
		.n_retries = client_or(s->n_retries, REGISTRY_RETRIES),
		.retry_ms = client_or(s->retry_ms, REGISTRY_RETRY_MS),
		.retry_max_ms = client_or(s->retry_max_ms, REGISTRY_RETRY_WAIT_MS),
		.connect_ms = client_or(s->connect_ms, REGISTRY_CONNECT_MS),
		.throttled_ms = client_or(s->throttled_ms, REGISTRY_THROTTLED_MS),
	};
}

int client_open(struct registry *r, const struct registry_config *config, bool pushes,
		struct error *err)
{
	struct endpoint_config endpoints = config->endpoints;
	const char *slash = strchr(config->name, '/');
	int code;

	*r = (struct registry){ .config = config, .pushes = pushes };
	r->transfers = &r->own;
	list_init(&r->exchanges);
	if (!slash || str_printf(r->host, sizeof(r->host), "%.*s", (int)(slash - config->name),
				 config->name) < 0)
		return error_refuse(err, ERROR_INVALID, "\"%.80s\" names no registry",
				    config->name);
	r->path = slash + 1;
	client_settings(r);
	if (getrandom(&r->jitter, sizeof(r->jitter), 0) != sizeof(r->jitter))
		return error_set(err, -errno, "random bytes");
	endpoints.host = r->host;
	code = endpoints_load(&r->endpoints, &endpoints, err);
	if (code == 0)
		code = transfers_prepare(err);
	if (code == 0)
		code = transfers_init(&r->own, err);
	if (code < 0)
		return error_wrap(err, code, "registry %s", r->host);
	r->tokens = calloc(r->endpoints.n, sizeof(*r->tokens));
	return r->tokens ? 0 : error_set(err, -ENOMEM, "registry %s", r->host);
}

void client_close(struct registry *r)
{
	assert(list_empty(&r->exchanges));
	for (size_t i = 0; r->tokens && i < r->endpoints.n; i++)
		token_forget(r, i);
	free(r->tokens);
	r->tokens = NULL;
	transfers_done(&r->own);
	endpoints_done(&r->endpoints);
}

int client_turn(struct registry *r, int fd, int wait_ms, bool *ret_readable, struct error *err)
{
	exchange_turn(r);
	return transfers_turn(r->transfers, fd, exchange_wait(r, wait_ms), ret_readable, err);
}

void client_join(struct registry *r, struct registry *other)
{
	assert(list_empty(&r->exchanges));
	r->transfers = other->transfers;
}

int client_turn_both(struct registry *r, struct registry *joined, int fd, int wait_ms,
		     bool *ret_readable, struct error *err)
{
	exchange_turn(r);
	exchange_turn(joined);
	return transfers_turn(r->transfers, fd, exchange_wait(r, exchange_wait(joined, wait_ms)),
			      ret_readable, err);
}
