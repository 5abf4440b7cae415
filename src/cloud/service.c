/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/service.h"

#include <errno.h>

#include "base/text/str.h"

/* Of one machine; EC2 allows 50. */
#define SERVICE_TAGS_MAX 64

struct service_call {
	const struct cloud_provider *provider;
	void *self;
	const struct cloudmsg *q;
	service_send_fn send;
	struct arena arena;
	struct cloud_fault fault;
};

static int service_begin(struct buf *b, const struct cloudmsg *q, const char *verb)
{
	int r = cloudmsg_put(b, "verb", "%s", verb);

	return r < 0 ? r : cloudmsg_put(b, "number", "%s", cloudmsg_get(q, "number"));
}

static int service_put_machine(struct buf *b, const struct cloud_machine *m)
{
	const struct {
		const char *key, *value;
	} words[] = { { "id", m->id },         { "token", m->token },
		      { "state", m->state },   { "type", m->type },
		      { "zone", m->zone },     { "address", m->address },
		      { "reason", m->reason }, { "launched", m->launched } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words) && r == 0; i++)
		if (!str_empty(words[i].value))
			r = cloudmsg_put(b, words[i].key, "%s", words[i].value);
	for (size_t i = 0; i < MIN(m->n_tags, (size_t)SERVICE_TAGS_MAX) && r == 0; i++)
		r = cloudmsg_put(b, "tag", "%s", m->tags[i]);
	return r;
}

static int service_put_error(struct buf *b, const struct cloud_fault *f, const struct error *err)
{
	int r = cloudmsg_put(b, "kind", "%d", (int)err->kind);

	if (r == 0)
		r = cloudmsg_put(b, "text", "%s", error_text(err));
	if (r == 0 && *f->code)
		r = cloudmsg_put(b, "code", "%s", f->code);
	if (r == 0 && f->unknown)
		r = cloudmsg_put(b, "unknown", "yes");
	if (r == 0 && f->doubt)
		r = cloudmsg_put(b, "doubt", "yes");
	return r;
}

static int service_create(struct service_call *c, struct buf *b, struct error *err)
{
	struct cloud_machine m;
	int r = c->provider->create(c->self, c->q, &c->arena, &m, &c->fault, err);

	if (r == 0 && service_put_machine(b, &m) < 0)
		r = error_set(err, -ENOMEM, "answer");
	return r;
}

static int service_tell_machine(void *userdata, const struct cloud_machine *m)
{
	struct service_call *c = userdata;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = service_begin(&b, c->q, "vm");

	if (r == 0)
		r = service_put_machine(&b, m);
	return r < 0 || c->send(&b) ? r : -EPIPE;
}

static int service_list(struct service_call *c, struct buf *b, struct error *err)
{
	int r = c->provider->list(c->self, c->q, service_tell_machine, c, &c->fault, err);

	(void)b;
	return r < 0 && !err->code ? error_set(err, r, "answer") : r;
}

static int service_terminate(struct service_call *c, struct buf *b, struct error *err)
{
	const char *state;
	int r = c->provider->terminate(c->self, cloudmsg_get(c->q, "id"), &c->arena, &state,
				       &c->fault, err);

	if (r == 0 && cloudmsg_put(b, "state", "%s", state) < 0)
		r = error_set(err, -ENOMEM, "answer");
	return r;
}

static int service_console(struct service_call *c, struct buf *b, struct error *err)
{
	const char *output, *time;
	int r = c->provider->console(c->self, cloudmsg_get(c->q, "id"), &c->arena, &output, &time,
				     &c->fault, err);

	if (r == 0 && (cloudmsg_put(b, "output", "%s", output) < 0 ||
		       cloudmsg_put(b, "time", "%s", time) < 0))
		r = error_set(err, -ENOMEM, "answer");
	return r;
}

static int service_tag(struct service_call *c, struct buf *b, struct error *err)
{
	(void)b;
	return c->provider->tag(c->self, c->q, &c->arena, &c->fault, err);
}

static const struct {
	const char *verb;
	int (*serve)(struct service_call *c, struct buf *b, struct error *err);
} service_verbs[] = {
	{ "create", service_create },
	{ "list", service_list },
	{ "terminate", service_terminate },
	{ "console", service_console },
	{ "tag", service_tag },
};

static int service_run(struct service_call *c, struct buf *b, struct error *err)
{
	const char *verb = cloudmsg_get(c->q, "verb");

	for (size_t i = 0; i < ARRAY_SIZE(service_verbs); i++)
		if (str_eq(service_verbs[i].verb, verb))
			return service_verbs[i].serve(c, b, err);
	return error_refuse(err, ERROR_UNSUPPORTED, "nacre-cloud knows no verb \"%.32s\"", verb);
}

/* false: there is no answer. The daemon waits for it until this process ends. */
static bool service_answer(const struct cloudmsg *q, const struct buf *words,
			   const struct cloud_fault *f, const struct error *err,
			   service_send_fn send)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = service_begin(&b, q, "done");

	if (r == 0 && f->date > 0)
		r = cloudmsg_put(&b, "now", "%lld", (long long)f->date);
	if (r == 0 && err)
		r = service_put_error(&b, f, err);
	else if (r == 0 && words->len)
		r = buf_add(&b, buf_data(words), words->len);
	return r == 0 && send(&b);
}

void service_refuse(const struct cloudmsg *q, const struct error *err, service_send_fn send)
{
	(void)service_answer(q, NULL, &(struct cloud_fault){ .code = "" }, err, send);
}

bool service_serve(const struct cloud_provider *provider, void *self, const struct cloudmsg *q,
		   service_send_fn send)
{
	struct service_call c = { .provider = provider,
				  .self = self,
				  .q = q,
				  .send = send,
				  .arena = ARENA_INIT_LIMIT(CLOUD_ANSWER_MEMORY) };
	_cleanup_(buf_done) struct buf words = BUF_INIT;
	struct error err = ERROR_INIT;
	int r = service_run(&c, &words, &err);
	bool told = service_answer(q, &words, &c.fault, r < 0 ? &err : NULL, send);

	arena_done(&c.arena);
	return told && (r == 0 || !c.fault.stale);
}
