/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/image_show.h"
#include "cli/cmd/pull.h"
#include "cli/images/referrers.h"
#include "cli/output/docker_view.h"
#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "wire/document/jsonread.h"

/* An image with its documents as trees, in an arena. */
struct shown_image {
	struct arena arena;
	Nacre__V1__InspectImageResponse *answer;
	struct json_value *manifest, *config;
	bool with_referrers;
	struct referrers referrers;
};

static void shown_image_done(struct shown_image *s)
{
	client_message_freep(&s->answer);
	arena_done(&s->arena);
	referrers_done(&s->referrers);
}

static int shown_image_ask(struct shown_image *s, const struct cli *cli, char *reference,
			   struct error *err)
{
	Nacre__V1__InspectImageRequest request = NACRE__V1__INSPECT_IMAGE_REQUEST__INIT;
	int r;

	request.image = reference;
	s->answer = client_ask_once(&cli->daemon, "/nacre.v1.ImageService/Inspect", &request.base,
				    &nacre__v1__inspect_image_response__descriptor, 0, err);
	if (!s->answer) {
		pull_hint(err, reference);
		return err->code;
	}
	if (!s->answer->image)
		return error_set(err, -EPROTO, "the daemon's answer has no image");
	r = json_parse(&s->manifest, &s->arena, s->answer->manifest.data, s->answer->manifest.len,
		       err);
	if (r < 0)
		return error_wrap(err, r, "the image's manifest");
	r = json_parse(&s->config, &s->arena, s->answer->config.data, s->answer->config.len, err);
	return r < 0 ? error_wrap(err, r, "the image's configuration") : 0;
}

/* ---- inspect ---- */

static void show_image(struct json *j, const void *what)
{
	const struct shown_image *s = what;

	json_put_object(j, NULL);
	view_image(j, "image", s->answer->image);
	docker_view_value(j, "manifest", s->manifest);
	docker_view_value(j, "config", s->config);
	if (s->with_referrers)
		referrers_show(j, "referrers", &s->referrers);
	json_put_end(j);
}

static void show_docker(struct json *j, const void *what)
{
	const struct shown_image *s = what;

	docker_view_image(j, &(struct docker_image){ s->answer->image, s->config });
}

static int show_inspect(const struct cli *cli, char *reference, bool with_referrers,
			struct rows *rows, struct json *j, format_view_fn show, struct error *err)
{
	_cleanup_(shown_image_done) struct shown_image s = { .arena = ARENA_INIT };
	int r = shown_image_ask(&s, cli, reference, err);

	if (r < 0)
		return r;
	s.with_referrers = with_referrers;
	if (with_referrers) {
		r = referrers_ask(&s.referrers, &cli->daemon, s.answer->image, err);
		if (r < 0)
			return r;
	}
	if (rows->format)
		return rows_add(rows, &s, &s, err);
	show(j, &s);
	return 0;
}

int image_show_docker(const struct cli *cli, char *reference, struct rows *rows, struct json *j,
		      struct error *err)
{
	static const struct rows_view view = { show_image, show_docker, NULL };
	const struct rows_view *was = rows->view;
	int r;

	rows->view = &view;
	r = show_inspect(cli, reference, false, rows, j, show_docker, err);
	rows->view = was;
	return r;
}

/* As `nacre inspect`: one object for one image, else an array. */
int cmd_image_inspect(const struct cli *cli, const struct args *args)
{
	static const struct rows_view view = { show_image, show_docker, NULL };
	bool docker = args_flag(args, "docker"), many = docker || args->n_operands > 1;
	_cleanup_(rows_done) struct rows rows = { .format = NULL };
	const char *format = args_value(args, "format");
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	int status = 0;

	if (format && rows_begin(&rows, &view, format, &err) < 0)
		return cli_fail(&err);
	if (many && !format)
		json_put_array(&j, NULL);
	for (size_t i = 0; i < args->n_operands; i++) {
		err = (struct error)ERROR_INIT;
		if (show_inspect(cli, args->operands[i], args_flag(args, "referrers"), &rows, &j,
				 docker ? show_docker : show_image, &err) < 0)
			status = cli_fail(&err);
	}
	if (many && !format)
		json_put_end(&j);
	return status;
}

/* ---- history ---- */

static const char *show_text(const struct json_value *object, const char *name)
{
	const struct json_value *v = object ? json_member(object, name) : NULL;

	return v && v->kind == JSON_STRING ? v->text : "";
}

static bool show_is_empty(const struct json_value *entry)
{
	const struct json_value *v = json_member(entry, "empty_layer");

	return v && v->kind == JSON_BOOL && v->truth;
}

/* Bytes of a layer as it came; 0 where the manifest does not say. */
static uint64_t show_size(const struct json_value *layer)
{
	const struct json_value *v =
		layer && layer->kind == JSON_OBJECT ? json_member(layer, "size") : NULL;
	uint64_t n;

	return v && v->kind == JSON_NUMBER && parse_u64(v->text, 0, UINT64_MAX, &n) == 0 ? n : 0;
}

static void history_json(struct json *j, const struct json_value *entry, uint64_t size)
{
	json_put_object(j, NULL);
	json_put_word(j, "created", show_text(entry, "created"));
	json_put_word(j, "created_by", show_text(entry, "created_by"));
	json_put_word(j, "comment", show_text(entry, "comment"));
	json_put_unsigned(j, "size", size);
	json_put_bool(j, "empty", show_is_empty(entry));
	json_put_end(j);
}

static void history_row(struct table *t, const struct json_value *entry, uint64_t size)
{
	const char *created = show_text(entry, "created");
	char text[TEXT_SIZE];

	text_bytes(text, size);
	table_add(t, *created ? created : "-");
	table_add(t, show_is_empty(entry) ? "-" : text);
	table_add(t, show_text(entry, "created_by"));
}

static const struct json_value *show_list(const struct json_value *object, const char *name)
{
	const struct json_value *v = object->kind == JSON_OBJECT ? json_member(object, name) : NULL;

	return v && v->kind == JSON_ARRAY ? v->first : NULL;
}

int cmd_image_history(const struct cli *cli, const struct args *args)
{
	_cleanup_(shown_image_done) struct shown_image s = { .arena = ARENA_INIT };
	struct table t = TABLE_INIT_WRAPS(3);
	struct json j = JSON_INIT(stdout);
	const struct json_value *layer;
	struct error err = ERROR_INIT;

	if (shown_image_ask(&s, cli, args->operands[0], &err) < 0)
		return cli_fail(&err);
	layer = show_list(s.manifest, "layers");
	table_add_color(&t, TABLE_BOLD, "CREATED");
	table_add_color(&t, TABLE_BOLD, "SIZE");
	table_add_color(&t, TABLE_BOLD, "BY");
	if (cli->json)
		json_put_array(&j, NULL);
	for (const struct json_value *e = show_list(s.config, "history"); e; e = e->next) {
		uint64_t size = 0;

		if (e->kind != JSON_OBJECT)
			continue;
		if (!show_is_empty(e) && layer) {
			size = show_size(layer);
			layer = layer->next;
		}
		if (cli->json)
			history_json(&j, e, size);
		else
			history_row(&t, e, size);
	}
	if (cli->json)
		json_put_end(&j);
	else
		table_write(&t, stdout, cli->color);
	table_done(&t);
	return 0;
}
