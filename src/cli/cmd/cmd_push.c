/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/pull.h"
#include "cli/images/platform_option.h"
#include "cli/images/registry_auth.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"
#include "cli/output/progress_lines.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

/* ---- image push ---- */

struct push {
	struct client_call call;
	const char *word; /* what it is called when it is done */
	bool json, pushed;
	bool quiet; /* nothing is told of how far it is */
	struct progress_lines lines;
};

static void push_begin_json(struct json *j, const char *event)
{
	json_put_object(j, NULL);
	json_put_string(j, "event", event);
}

static void push_blob_json(const Nacre__V1__PushBlob *m)
{
	struct json j = { .to = stdout, .compact = true };

	push_begin_json(&j, "blob");
	json_put_unsigned(&j, "number", m->number);
	json_put_unsigned(&j, "count", m->count);
	json_put_string(&j, "digest", m->digest);
	json_put_string(&j, "state", m->state);
	json_put_unsigned(&j, "sent", m->sent);
	json_put_unsigned(&j, "size", m->size);
	json_put_end(&j);
	(void)output_flush();
}

/* What has become of a blob; NULL: it is on its way. */
static const char *push_done_word(const struct push *p, const char *state)
{
	static const char *const words[][2] = { { "there", "was there" },
						{ "mounted", "was in another repository" } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i][0], state))
			return words[i][1];
	return str_eq(state, "sent") ? p->word : NULL;
}

static void push_blob(struct push *p, const Nacre__V1__PushBlob *m)
{
	if (p->json)
		push_blob_json(m);
	else
		progress_lines_tell(&p->lines,
				    &(struct progress_word){ .number = m->number,
							     .count = m->count,
							     .digest = m->digest,
							     .state = m->state,
							     .done = push_done_word(p, m->state),
							     .n_bytes = m->sent,
							     .size = m->size });
}

static void push_note(struct push *p, const char *text)
{
	struct json j = { .to = stdout, .compact = true };

	if (!p->json) {
		progress_lines_say(&p->lines, text);
		return;
	}
	push_begin_json(&j, "note");
	json_put_string(&j, "text", text);
	json_put_end(&j);
	(void)output_flush();
}

static void push_last(struct push *p, const Nacre__V1__Pushed *m)
{
	struct json j = { .to = stdout, .compact = true };

	progress_lines_wipe(&p->lines);
	p->pushed = true;
	if (!p->json) {
		(void)puts(m->digest);
		return;
	}
	push_begin_json(&j, p->word);
	json_put_string(&j, "reference", m->reference);
	json_put_string(&j, "digest", m->digest);
	json_put_string(&j, "origin", m->origin);
	json_put_end(&j);
}

static void push_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct push *p = container_of(call, struct push, call);
	const Nacre__V1__PushResponse *m = (const Nacre__V1__PushResponse *)message;

	if (*m->note && !p->quiet)
		push_note(p, m->note);
	if (m->blob && !p->quiet)
		push_blob(p, m->blob);
	if (m->pushed)
		push_last(p, m->pushed);
}

/* Starts the call and waits for its end. */
static int push_call(const struct cli *cli, struct client_call *call, const char *method,
		     const ProtobufCMessage *request, struct error *err)
{
	_cleanup_client_ struct client *client = client_open(&cli->daemon, err);

	if (!client)
		return err->code;
	client_call_start(client, call, method, request);
	(void)client_call_wait(client, call);
	*err = call->err;
	client_call_done(call);
	return err->code;
}

int cmd_image_push(const struct cli *cli, const struct args *args)
{
	Nacre__V1__PushRequest request = NACRE__V1__PUSH_REQUEST__INIT;
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	struct push push = { .call = { .type = &nacre__v1__push_response__descriptor,
				       .on_message = push_message },
			     .word = "pushed",
			     .json = cli->json,
			     .quiet = args_flag(args, "quiet") };
	struct error err = ERROR_INIT;
	int r;

	r = registry_auth_take(&auth, &arena, args, args->operands[args->n_operands - 1], &err);
	if (r < 0)
		return cli_fail(&err);
	request.image = args->operands[0];
	if (args->n_operands > 1)
		request.destination = args->operands[1];
	request.auths = auths;
	request.n_auths = r > 0 ? 1 : 0;
	progress_lines_init(&push.lines);
	r = push_call(cli, &push.call, "/nacre.v1.ImageService/Push", &request.base, &err);
	progress_lines_done(&push.lines);
	if (r < 0) {
		pull_hint(&err, request.image);
		return cli_fail(&err);
	}
	return push.pushed ? 0 : cli_complain("the daemon did not tell what it pushed");
}

/* ---- image copy ---- */

/* What the user has for both registries: how many that are, or an error. */
static int copy_auths(Nacre__V1__RegistryAuth auths[2], struct arena *arena,
		      const struct args *args, struct error *err)
{
	int n = 0;

	for (size_t i = 0; i < 2; i++) {
		int r = registry_auth_find(&auths[n], arena, args->operands[i], err);

		if (r < 0)
			return r;
		if (r > 0 && (n == 0 || !str_eq(auths[0].host, auths[1].host)))
			n++;
	}
	return n;
}

int cmd_image_copy(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CopyImageRequest request = NACRE__V1__COPY_IMAGE_REQUEST__INIT;
	Nacre__V1__RegistryAuth all[2] = { NACRE__V1__REGISTRY_AUTH__INIT,
					   NACRE__V1__REGISTRY_AUTH__INIT };
	Nacre__V1__RegistryAuth *auths[] = { &all[0], &all[1] };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	struct platform_option platform;
	struct push push = { .call = { .type = &nacre__v1__push_response__descriptor,
				       .on_message = push_message },
			     .word = "copied",
			     .json = cli->json };
	struct error err = ERROR_INIT;
	int r;

	r = platform_option_read(&platform, args_value(args, "platform"), &err);
	if (r == 0)
		r = copy_auths(all, &arena, args, &err);
	if (r < 0)
		return cli_fail(&err);
	request.architecture = platform.architecture;
	request.variant = platform.variant;
	request.source = args->operands[0];
	request.destination = args->operands[1];
	request.referrers = args_flag(args, "referrers");
	request.auths = auths;
	request.n_auths = (size_t)r;
	progress_lines_init(&push.lines);
	r = push_call(cli, &push.call, "/nacre.v1.ImageService/Copy", &request.base, &err);
	progress_lines_done(&push.lines);
	if (r < 0)
		return cli_fail(&err);
	return push.pushed ? 0 : cli_complain("the daemon did not tell what it copied");
}

/* ---- image tags ---- */

struct tags {
	struct client_call call;
	struct json json;
	bool as_json;
};

static void tags_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct tags *t = container_of(call, struct tags, call);
	const Nacre__V1__TagsResponse *m = (const Nacre__V1__TagsResponse *)message;

	for (size_t i = 0; i < m->n_tags; i++) {
		if (t->as_json)
			json_put_string(&t->json, NULL, m->tags[i]);
		else
			(void)puts(m->tags[i]);
	}
}

int cmd_image_tags(const struct cli *cli, const struct args *args)
{
	Nacre__V1__TagsRequest request = NACRE__V1__TAGS_REQUEST__INIT;
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	struct tags tags = { .call = { .type = &nacre__v1__tags_response__descriptor,
				       .on_message = tags_message },
			     .json = JSON_INIT(stdout),
			     .as_json = cli->json };
	struct error err = ERROR_INIT;
	int r;

	r = registry_auth_find(&auth, &arena, args->operands[0], &err);
	if (r < 0)
		return cli_fail(&err);
	request.repository = args->operands[0];
	request.auths = auths;
	request.n_auths = r > 0 ? 1 : 0;
	if (cli->json)
		json_put_array(&tags.json, NULL);
	r = push_call(cli, &tags.call, "/nacre.v1.ImageService/Tags", &request.base, &err);
	if (cli->json)
		json_put_end(&tags.json);
	return r < 0 ? cli_fail(&err) : 0;
}
