/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "rpc/server/server.h"
#include "runtime/core/pool_call.h"
#include "runtime/services.h"
#include "volumes/secrets.h"

/* All of them wait for the disk, on a thread. */
struct secret_call {
	struct pool_call pool;
	int dir_fd, sets_fd;
	char name[SECRET_NAME_MAX + 1];
	void *data; /* of a new one */
	size_t len;
	bool replace;
	struct secret_info *list;
	size_t n;
	struct error err;
};

static void secret_call_free(struct pool_call *p)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);

	if (c->data)
		explicit_bzero(c->data, c->len);
	free(c->data);
	free(c->list);
	free(c);
}

/* name: NULL for a call about all. NULL: the call has failed. */
static struct secret_call *secret_call_new(const struct secret_service *s, struct rpc_call *call,
					   const char *name)
{
	struct secret_call *c = calloc(1, sizeof(*c));
	struct error err = ERROR_INIT;
	int r = 0;

	if (!c)
		r = error_set(&err, -ENOMEM, "look at secrets");
	else if (name && str_empty(name))
		r = error_field(&err, ERROR_INVALID, "name", "required");
	else if (name)
		r = secret_check_name("name", name, &err);
	if (r < 0) {
		free(c);
		rpc_call_fail(call, &err);
		return NULL;
	}
	c->dir_fd = s->dir_fd;
	c->sets_fd = s->sets_fd;
	if (name)
		(void)str_copy(c->name, sizeof(c->name), name);
	return c;
}

/* ---- answers ---- */

static void secret_message(const struct secret_info *from, Nacre__V1__Secret *to)
{
	nacre__v1__secret__init(to);
	to->name = (char *)(uintptr_t)from->name;
	to->id = (char *)(uintptr_t)from->id;
	to->created_at = from->created_at;
	to->updated_at = from->updated_at;
	to->size = from->size;
}

/* True: the call has failed. */
static bool secret_has_failed(struct secret_call *c, struct rpc_call *call)
{
	if (c->err.code)
		rpc_call_fail(call, &c->err);
	return c->err.code != 0;
}

static void secret_create_reply(struct pool_call *p, struct rpc_call *call)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);
	Nacre__V1__CreateSecretResponse m = NACRE__V1__CREATE_SECRET_RESPONSE__INIT;
	Nacre__V1__Secret secret;

	if (secret_has_failed(c, call))
		return;
	secret_message(c->list, &secret);
	m.secret = &secret;
	rpc_call_reply(call, &m.base);
}

static void secret_inspect_reply(struct pool_call *p, struct rpc_call *call)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);
	Nacre__V1__InspectSecretResponse m = NACRE__V1__INSPECT_SECRET_RESPONSE__INIT;
	Nacre__V1__Secret secret;

	if (secret_has_failed(c, call))
		return;
	secret_message(c->list, &secret);
	m.secret = &secret;
	rpc_call_reply(call, &m.base);
}

static int secret_compare(const void *a, const void *b)
{
	return strcmp(((const struct secret_info *)a)->name, ((const struct secret_info *)b)->name);
}

static void secret_list_reply(struct pool_call *p, struct rpc_call *call)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);
	Nacre__V1__ListSecretsResponse m = NACRE__V1__LIST_SECRETS_RESPONSE__INIT;
	Nacre__V1__Secret *all = arena_zalloc(rpc_call_arena(call), c->n + 1, sizeof(*all));
	Nacre__V1__Secret **list = arena_zalloc(rpc_call_arena(call), c->n + 1, sizeof(*list));

	if (!c->err.code && (!all || !list))
		(void)error_set(&c->err, -ENOMEM, "answer");
	if (secret_has_failed(c, call))
		return;
	qsort(c->list, c->n, sizeof(*c->list), secret_compare);
	for (size_t i = 0; i < c->n; i++) {
		secret_message(&c->list[i], &all[i]);
		list[i] = &all[i];
	}
	m.secrets = list;
	m.n_secrets = c->n;
	rpc_call_reply(call, &m.base);
}

static void secret_remove_reply(struct pool_call *p, struct rpc_call *call)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);
	const Nacre__V1__RemoveSecretResponse m = NACRE__V1__REMOVE_SECRET_RESPONSE__INIT;

	if (!secret_has_failed(c, call))
		rpc_call_reply(call, &m.base);
}

/* ---- on the thread ---- */

static int secret_one(struct secret_call *c)
{
	c->list = calloc(1, sizeof(*c->list));
	return c->list ? 0 : error_set(&c->err, -ENOMEM, "look at a secret");
}

static void secret_create_run(struct pool_call *p)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);

	if (secret_one(c) == 0)
		(void)secret_put(c->dir_fd, c->sets_fd, c->name, c->data, c->len, c->replace,
				 c->list, &c->err);
}

static void secret_inspect_run(struct pool_call *p)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);

	if (secret_one(c) == 0)
		(void)secret_read(c->dir_fd, c->name, NULL, c->list, &c->err);
}

static void secret_list_run(struct pool_call *p)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);

	(void)secrets_list(c->dir_fd, &c->list, &c->n, &c->err);
}

static void secret_remove_run(struct pool_call *p)
{
	struct secret_call *c = container_of(p, struct secret_call, pool);

	(void)secret_remove(c->dir_fd, c->name, &c->err);
}

/* ---- calls ---- */

static void secret_create(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct pool_call_ops ops = { secret_create_run, secret_create_reply,
						  secret_call_free };
	const Nacre__V1__CreateSecretRequest *q =
		(const Nacre__V1__CreateSecretRequest *)(const void *)request;
	const struct secret_service *s = userdata;
	struct secret_call *c = secret_call_new(s, call, q->name);

	if (!c)
		return;
	c->replace = q->replace;
	c->len = q->data.len;
	c->data = malloc(c->len + 1);
	if (!c->data) {
		(void)error_set(&c->err, -ENOMEM, "keep a secret");
		rpc_call_fail(call, &c->err);
		secret_call_free(&c->pool);
		return;
	}
	if (c->len)
		memcpy(c->data, q->data.data, c->len);
	pool_call_start(&c->pool, &ops, s->pool, call);
}

static void secret_list(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct pool_call_ops ops = { secret_list_run, secret_list_reply,
						  secret_call_free };
	const struct secret_service *s = userdata;
	struct secret_call *c = secret_call_new(s, call, NULL);

	(void)request;
	if (c)
		pool_call_start(&c->pool, &ops, s->pool, call);
}

static void secret_inspect(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct pool_call_ops ops = { secret_inspect_run, secret_inspect_reply,
						  secret_call_free };
	const Nacre__V1__InspectSecretRequest *q =
		(const Nacre__V1__InspectSecretRequest *)(const void *)request;
	const struct secret_service *s = userdata;
	struct secret_call *c = secret_call_new(s, call, q->name);

	if (c)
		pool_call_start(&c->pool, &ops, s->pool, call);
}

static void secret_remove_call(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata)
{
	static const struct pool_call_ops ops = { secret_remove_run, secret_remove_reply,
						  secret_call_free };
	const Nacre__V1__RemoveSecretRequest *q =
		(const Nacre__V1__RemoveSecretRequest *)(const void *)request;
	const struct secret_service *s = userdata;
	struct secret_call *c = secret_call_new(s, call, q->name);

	if (c)
		pool_call_start(&c->pool, &ops, s->pool, call);
}

static const struct rpc_method secret_methods[] = {
	{ "CreateSecret", &nacre__v1__create_secret_request__descriptor,
	  &nacre__v1__create_secret_response__descriptor, false, secret_create },
	{ "ListSecrets", &nacre__v1__list_secrets_request__descriptor,
	  &nacre__v1__list_secrets_response__descriptor, false, secret_list },
	{ "InspectSecret", &nacre__v1__inspect_secret_request__descriptor,
	  &nacre__v1__inspect_secret_response__descriptor, false, secret_inspect },
	{ "RemoveSecret", &nacre__v1__remove_secret_request__descriptor,
	  &nacre__v1__remove_secret_response__descriptor, false, secret_remove_call },
};

const struct rpc_service secret_service = {
	.name = "nacre.v1.SecretService",
	.methods = secret_methods,
	.n_methods = ARRAY_SIZE(secret_methods),
};
