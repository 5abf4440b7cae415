/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

#define PULL_ID_DIGITS 12 /* so many are meant as an id */

struct pull {
	struct client_call call;
	const char *missing; /* an image that somebody would run */
	const char *one_of;  /* one of several, by its name */
	bool json, pulled;
	bool quiet;  /* its id is not what was asked for */
	bool silent; /* nor how far it is */
	int failed;  /* of several: the exit status of the last that did */
	struct progress_lines lines;
};

/* ---- what comes ---- */

static void pull_layer_json(const Nacre__V1__PullLayer *m)
{
	struct json j = { .to = stdout, .compact = true };

	json_put_object(&j, NULL);
	json_put_string(&j, "event", "layer");
	json_put_unsigned(&j, "number", m->number);
	json_put_unsigned(&j, "count", m->count);
	json_put_string(&j, "digest", m->digest);
	json_put_string(&j, "state", m->state);
	json_put_unsigned(&j, "loaded", m->loaded);
	json_put_unsigned(&j, "size", m->size);
	json_put_bool(&j, "there", m->there);
	json_put_end(&j);
	(void)output_flush();
}

static void pull_layer(struct pull *p, const Nacre__V1__PullLayer *m)
{
	const char *done = m->there ? "was there" : "pulled";

	if (p->json)
		pull_layer_json(m);
	else
		progress_lines_tell(
			&p->lines,
			&(struct progress_word){ .number = m->number,
						 .count = m->count,
						 .digest = m->digest,
						 .state = m->state,
						 .done = str_eq(m->state, "unpacked") ? done : NULL,
						 .n_bytes = m->loaded,
						 .size = m->size });
}

static void pull_note(struct pull *p, const char *text)
{
	struct json j = { .to = stdout, .compact = true };

	if (!p->json) {
		progress_lines_say(&p->lines, text);
		return;
	}
	json_put_object(&j, NULL);
	json_put_string(&j, "event", "note");
	json_put_string(&j, "text", text);
	json_put_end(&j);
	(void)output_flush();
}

static void pull_ends(struct pull *p, const Nacre__V1__Image *image)
{
	struct json j = { .to = stdout, .compact = true };

	progress_lines_wipe(&p->lines);
	p->pulled = true;
	if (p->quiet)
		return;
	if (!p->json) {
		(void)puts(image->id);
		return;
	}
	json_put_object(&j, NULL);
	json_put_string(&j, "event", "image");
	view_image(&j, "image", image);
	json_put_end(&j);
}

static void pull_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct pull *p = container_of(call, struct pull, call);
	const Nacre__V1__PullResponse *m = (const Nacre__V1__PullResponse *)message;

	if (*m->note && !p->silent)
		pull_note(p, m->note);
	if (m->layer && !p->silent)
		pull_layer(p, m->layer);
	if (m->image)
		pull_ends(p, m->image);
}

/* ---- the command ---- */

static int pull_run(struct client *client, struct pull *p, const ProtobufCMessage *request)
{
	struct error err;

	client_call_start(client, &p->call, "/nacre.v1.ImageService/Pull", request);
	(void)client_call_wait(client, &p->call);
	err = p->call.err;
	client_call_done(&p->call);
	progress_lines_done(&p->lines);
	if (err.code && p->missing)
		(void)cli_complain("this node has no image %s, and cannot pull it:", p->missing);
	if (err.code && p->one_of)
		(void)cli_complain("%s is not pulled:", p->one_of);
	if (err.code)
		return cli_fail(&err);
	return p->pulled ? 0 : cli_complain("the daemon did not tell which image this is");
}

/* One image, with the credentials that the user has for its registry, or (args) has named. The exit
 * status. */
static int pull_one(struct client *client, struct pull *pull, const struct args *args,
		    Nacre__V1__PullRequest *request)
{
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	struct error err = ERROR_INIT;
	int r;

	pull->call = (struct client_call){ .type = &nacre__v1__pull_response__descriptor,
					   .on_message = pull_message };
	progress_lines_init(&pull->lines);
	r = args ? registry_auth_take(&auth, &arena, args, request->image, &err)
		 : registry_auth_find(&auth, &arena, request->image, &err);
	if (r < 0)
		return cli_fail(&err);
	request->auths = auths;
	request->n_auths = r > 0 ? 1 : 0;
	return pull_run(client, pull, &request->base);
}

/* ---- all tags of a repository ---- */

struct pull_tags {
	struct client_call call;
	char **all; /* strv; NULL: none */
	bool no_memory;
};

static void pull_tags_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct pull_tags *t = container_of(call, struct pull_tags, call);
	const Nacre__V1__TagsResponse *m = (const Nacre__V1__TagsResponse *)message;

	for (size_t i = 0; i < m->n_tags && !t->no_memory; i++)
		t->no_memory = strv_add(&t->all, m->tags[i]) < 0;
}

static int pull_list_tags(struct client *client, struct pull_tags *t, const struct args *args,
			  struct error *err)
{
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	Nacre__V1__TagsRequest request = NACRE__V1__TAGS_REQUEST__INIT;
	int r = registry_auth_take(&auth, &arena, args, args->operands[0], err);

	if (r < 0)
		return r;
	request.repository = args->operands[0];
	request.auths = auths;
	request.n_auths = r > 0 ? 1 : 0;
	t->call = (struct client_call){ .type = &nacre__v1__tags_response__descriptor,
					.on_message = pull_tags_message };
	client_call_start(client, &t->call, "/nacre.v1.ImageService/Tags", &request.base);
	(void)client_call_wait(client, &t->call);
	r = t->call.err.code ? error_copy(err, &t->call.err) : 0;
	client_call_done(&t->call);
	if (r == 0 && t->no_memory)
		r = error_set(err, -ENOMEM, "keep the tags");
	if (r == 0 && !t->all)
		r = error_refuse(err, ERROR_NOT_FOUND, "%.300s has no tags", args->operands[0]);
	return r;
}

/* Pulls all tags, also behind one that fails; the exit status is that of the last failure. */
static int pull_all(struct client *client, struct pull *pull, const struct args *args,
		    Nacre__V1__PullRequest *request)
{
	struct pull_tags tags = { .all = NULL };
	struct error err = ERROR_INIT;
	int status = pull_list_tags(client, &tags, args, &err) < 0 ? cli_fail(&err) : 0;

	for (size_t i = 0; status == 0 && tags.all && tags.all[i]; i++) {
		_cleanup_str_ char *image = xformat("%s:%s", args->operands[0], tags.all[i]);
		int r;

		pull->pulled = false;
		request->image = image;
		pull->one_of = image;
		r = pull_one(client, pull, args, request);
		pull->failed = r ? r : pull->failed;
	}
	strv_free(tags.all);
	return status ? status : pull->failed;
}

int cmd_image_pull(const struct cli *cli, const struct args *args)
{
	Nacre__V1__PullRequest request = NACRE__V1__PULL_REQUEST__INIT;
	struct platform_option platform;
	struct pull pull = { .json = cli->json, .silent = args_flag(args, "quiet") };
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	int r;

	r = platform_option_read(&platform, args_value(args, "platform"), &err);
	if (r < 0)
		return cli_fail(&err);
	request.architecture = platform.architecture;
	request.variant = platform.variant;
	request.image = args->operands[0];
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	return args_flag(args, "all-tags") ? pull_all(client, &pull, args, &request)
					   : pull_one(client, &pull, args, &request);
}

/* ---- for who runs something ---- */

int pull_when_read(enum pull_when *ret, const char *word, struct error *err)
{
	static const char *const words[PULL_WHEN_COUNT] = { "missing", "always", "newer", "never" };

	*ret = PULL_MISSING;
	for (size_t i = 0; word && i < PULL_WHEN_COUNT; i++) {
		if (!str_eq(words[i], word))
			continue;
		*ret = (enum pull_when)i;
		return 0;
	}
	return word ? error_refuse(err, ERROR_INVALID,
				   "--pull: \"%.40s\" is none of missing, always, newer, never",
				   word)
		    : 0;
}

/* Whether it names something that a registry can be asked for: no digest or id alone. */
static bool pull_is_name(const char *image)
{
	size_t n = strspn(image, "0123456789abcdef");

	return *image && !str_has_prefix(image, "sha256:") && (image[n] || n < PULL_ID_DIGITS);
}

void pull_hint(struct error *err, const char *image)
{
	struct error was = *err;

	/* A registry that has it not blames no field. */
	if (err->kind != ERROR_NOT_FOUND || !str_has_prefix(err->field, "image") ||
	    !pull_is_name(image))
		return;
	(void)error_refuse(err, ERROR_NOT_FOUND, "%.300s; `nacre image pull %.150s` loads it",
			   was.text, image);
}

static bool pull_is_missing(struct client *client, const char *image)
{
	Nacre__V1__InspectImageRequest request = NACRE__V1__INSPECT_IMAGE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectImageResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.image = (char *)(uintptr_t)image;
	answer = client_ask(client, "/nacre.v1.ImageService/Inspect", &request.base,
			    &nacre__v1__inspect_image_response__descriptor, &err);
	return !answer && err.kind == ERROR_NOT_FOUND;
}

int pull_image(struct client *client, enum pull_when when, const char *image)
{
	return pull_image_quietly(client, when, image, false);
}

int pull_image_quietly(struct client *client, enum pull_when when, const char *image, bool quiet)
{
	Nacre__V1__PullRequest request = NACRE__V1__PULL_REQUEST__INIT;
	struct pull pull = { .missing = when == PULL_MISSING ? image : NULL,
			     .quiet = true,
			     .silent = quiet };
	int status;

	if (when == PULL_NEVER || !pull_is_name(image) ||
	    (when == PULL_MISSING && !pull_is_missing(client, image)))
		return 0;
	request.image = (char *)(uintptr_t)image;
	status = pull_one(client, &pull, NULL, &request);
	if (status && when == PULL_NEWER && !pull_is_missing(client, image)) {
		(void)cli_complain("warning: %s is taken as it is here", image);
		return 0;
	}
	return status ? -status : 1;
}
