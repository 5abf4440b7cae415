/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/reading.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/json.h"

struct reading_layer *reading_layers_new(void)
{
	return calloc(FETCH_LAYERS_MAX, sizeof(struct reading_layer));
}

void reading_layers_done(struct reading_layer **layers)
{
	free(*layers);
}

struct reading_out {
	int sock_fd;
	uint32_t n_words;
};

static int reading_send_word(struct reading_out *o, enum fetch_list list, const char *text,
			     struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_WORD, .word = { list, text } };

	if (++o->n_words > FETCH_WORDS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "the configuration has more than %d words and variables",
				    FETCH_WORDS_MAX);
	return channel_send(o->sock_fd, &m, err);
}

static int reading_send_list(struct reading_out *o, json_t *settings, const char *name,
			     enum fetch_list list, struct error *err)
{
	json_t *array = NULL;
	int r;

	r = json_get_array(settings, name, FETCH_WORDS_MAX, &array, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (!text)
			return error_refuse(err, ERROR_INVALID,
					    "member \"%s\" is no list of strings", name);
		/* As other runtimes do, which pass over what names no variable. */
		if (list == FETCH_ENV && (*text == '=' || !strchr(text, '=')))
			continue;
		/* Builders write [""] to reset an entrypoint. */
		if (list == FETCH_ENTRYPOINT && !*text && json_array_size(array) == 1)
			continue;
		r = reading_send_word(o, list, text, err);
		if (r < 0)
			return error_wrap(err, r, "member \"%s\"", name);
	}
	return 0;
}

/* The names of an object whose values say nothing. */
static int reading_send_volumes(struct reading_out *o, json_t *settings, struct error *err)
{
	json_t *volumes = NULL, *value;
	const char *path;
	int r = json_get_object(settings, "Volumes", &volumes, err);

	if (r < 0 || !volumes)
		return r;
	json_object_foreach(volumes, path, value)
	{
		r = reading_send_word(o, FETCH_VOLUME, path, err);
		if (r < 0)
			return error_wrap(err, r, "member \"Volumes\"");
	}
	return 0;
}

static int reading_send_number(struct reading_out *o, json_t *object, const char *name,
			       struct error *err)
{
	json_t *value = json_object_get(object, name);
	char text[24];

	if (value && !json_is_null(value) && !json_is_integer(value))
		return error_refuse(err, ERROR_INVALID, "member \"Healthcheck.%s\" is no number",
				    name);
	(void)str_printf(text, sizeof(text), "%lld",
			 MAX((long long)json_integer_value(value), 0LL));
	return reading_send_word(o, FETCH_HEALTH, text, err);
}

/* Docker's member, which others build into their images too. Without a Test it says nothing. */
static int reading_send_health(struct reading_out *o, json_t *settings, struct error *err)
{
	static const char *const numbers[FETCH_HEALTH_NUMBERS] = {
		"Interval", "Timeout", "StartPeriod", "StartInterval", "Retries",
	};
	json_t *health = NULL, *test = NULL;
	int r = json_get_object(settings, "Healthcheck", &health, err);

	if (r < 0 || !health)
		return r;
	r = json_get_array(health, "Test", FETCH_WORDS_MAX, &test, err);
	if (r < 0 || json_array_size(test) == 0)
		return r;
	for (size_t i = 0; i < FETCH_HEALTH_NUMBERS && r == 0; i++)
		r = reading_send_number(o, health, numbers[i], err);
	return r < 0 ? r : reading_send_list(o, health, "Test", FETCH_HEALTH, err);
}

static int reading_send_names(struct reading_out *o, char *const *names, struct error *err)
{
	for (; names && *names; names++) {
		int r = reading_send_word(o, FETCH_NAME, *names, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int reading_check_platform(const struct reading *r, json_t *config, struct error *err)
{
	const char *os, *architecture;
	int code;

	code = json_need_text(config, "os", &os, err);
	if (code == 0)
		code = json_need_text(config, "architecture", &architecture, err);
	if (code < 0)
		return code;
	if (!str_eq(os, "linux") || !str_eq(architecture, r->architecture))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the image is for %.32s/%.32s, not for linux/%s", os,
				    architecture, r->architecture);
	return 0;
}

static int reading_diff_ids(json_t *config, size_t n, json_t **ret, struct error *err)
{
	json_t *rootfs, *list;
	const char *type;
	int r;

	r = json_need_object(config, "rootfs", &rootfs, err);
	if (r == 0)
		r = json_need_text(rootfs, "type", &type, err);
	if (r < 0)
		return r;
	if (!str_eq(type, "layers"))
		return error_refuse(err, ERROR_INVALID, "member \"rootfs.type\" is not \"layers\"");
	r = n ? json_need_array(rootfs, "diff_ids", FETCH_LAYERS_MAX, &list, err)
	      : json_get_array(rootfs, "diff_ids", FETCH_LAYERS_MAX, &list, err);
	if (r < 0)
		return r;
	if (json_array_size(list) != n)
		return error_refuse(err, ERROR_INVALID,
				    "the configuration has %zu diff ids for %zu layers",
				    json_array_size(list), n);
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (!text || !digest_is_valid(text))
			return error_refuse(err, ERROR_INVALID, "diff id %zu is no sha256 digest",
					    i + 1);
	}
	*ret = list;
	return 0;
}

static int reading_send_layers(struct reading *r, const struct reading_image *image,
			       json_t *diff_ids, struct error *err)
{
	for (size_t i = 0; i < image->n_layers; i++) {
		const struct reading_layer *l = &image->layers[i];
		struct fetchmsg m = { .type = FETCHMSG_LAYER,
				      .layer = { .size = l->size, .compression = l->compression } };
		int code;

		(void)str_copy(m.layer.digest, sizeof(m.layer.digest), l->digest);
		(void)str_copy(m.layer.diff_id, sizeof(m.layer.diff_id),
			       json_string_value(json_array_get(diff_ids, i)));
		code = r->on_layer ? r->on_layer(r, l->digest, l->size, err) : 0;
		if (code == 0)
			code = channel_send(r->sock_fd, &m, err);
		if (code < 0)
			return code;
	}
	return 0;
}

static int reading_send_image(struct reading *r, const struct reading_image *image,
			      json_t *settings, struct error *err)
{
	struct fetchmsg m = { .type = FETCHMSG_IMAGE };
	int code;

	(void)str_copy(m.image.id, sizeof(m.image.id), image->id);
	(void)str_copy(m.image.digest, sizeof(m.image.digest), image->digest);
	code = json_get_text(settings, "User", &m.image.user, err);
	if (code == 0)
		code = json_get_text(settings, "WorkingDir", &m.image.working_dir, err);
	if (code == 0)
		code = json_get_text(settings, "StopSignal", &m.image.stop_signal, err);
	if (code == 0 && channel_send(r->sock_fd, &m, NULL) < 0)
		code = error_refuse(err, ERROR_INVALID,
				    "User, WorkingDir or StopSignal is too long or not plain text");
	return code;
}

static int reading_send_settings(struct reading *r, const struct reading_image *image,
				 json_t *config, struct error *err)
{
	struct reading_out o = { .sock_fd = r->sock_fd };
	struct fetchmsg end = { .type = FETCHMSG_IMAGE_END };
	json_t *settings = NULL, *diff_ids = NULL;
	int code;

	code = reading_diff_ids(config, image->n_layers, &diff_ids, err);
	if (code == 0)
		code = json_get_object(config, "config", &settings, err);
	if (code == 0)
		code = reading_send_image(r, image, settings, err);
	if (code == 0)
		code = reading_send_names(&o, image->names, err);
	if (code == 0)
		code = reading_send_list(&o, settings, "Env", FETCH_ENV, err);
	if (code == 0)
		code = reading_send_list(&o, settings, "Entrypoint", FETCH_ENTRYPOINT, err);
	if (code == 0)
		code = reading_send_list(&o, settings, "Cmd", FETCH_CMD, err);
	if (code == 0)
		code = reading_send_volumes(&o, settings, err);
	if (code == 0)
		code = reading_send_health(&o, settings, err);
	if (code == 0)
		code = reading_send_layers(r, image, diff_ids, err);
	if (code < 0)
		return code;
	end.image_end.n_words = o.n_words;
	end.image_end.n_layers = (uint32_t)image->n_layers;
	return channel_send(r->sock_fd, &end, err);
}

int reading_send(struct reading *r, const struct reading_image *image, struct error *err)
{
	_cleanup_json_ json_t *config = NULL;
	int code;

	if (++r->n_images > FETCH_IMAGES_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "the archive has more than %d images",
				    FETCH_IMAGES_MAX);
	code = json_read(&config, image->config, "the configuration", err);
	if (code == 0)
		code = reading_check_platform(r, config, err);
	if (code == 0)
		code = reading_send_settings(r, image, config, err);
	return code < 0 ? error_wrap(err, code, "configuration %s", image->id) : 0;
}
