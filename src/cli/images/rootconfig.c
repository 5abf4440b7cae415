/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/rootconfig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory/arena.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/images/platform_option.h"
#include "cli/output/alloc.h"
#include "wire/document/jsonread.h"

#define ROOTCONFIG_MEMORY_MAX (1U << 20)

/* As a Dockerfile has it: a list in JSON is the words, anything else is a line for the shell. */
static int rootconfig_words(struct json *j, const char *key, const char *text, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(ROOTCONFIG_MEMORY_MAX);
	struct json_value *list;

	if (!text)
		return 0;
	json_put_array(j, key);
	if (*text != '[') {
		json_put_string(j, NULL, "/bin/sh");
		json_put_string(j, NULL, "-c");
		json_put_string(j, NULL, text);
		json_put_end(j);
		return 0;
	}
	if (json_parse(&list, &arena, text, strlen(text), err) < 0)
		return -EINVAL;
	for (const struct json_value *v = list->first; v; v = v->next) {
		if (v->kind != JSON_STRING)
			return error_refuse(err, ERROR_INVALID, "it is no list of strings");
		json_put_string(j, NULL, v->text);
	}
	json_put_end(j);
	return 0;
}

static int rootconfig_env(struct json *j, const struct args *args, struct error *err)
{
	size_t pos = 0;
	const char *pair;

	json_put_array(j, "Env");
	for (pair = args_next(args, "env", &pos); pair; pair = args_next(args, "env", &pos)) {
		if (*pair == '=' || !strchr(pair, '='))
			return error_refuse(err, ERROR_INVALID, "--env \"%.80s\" is no NAME=VALUE",
					    pair);
		json_put_string(j, NULL, pair);
	}
	json_put_end(j);
	return 0;
}

static int rootconfig_labels(struct json *j, const struct args *args, struct error *err)
{
	size_t pos = 0;
	const char *pair;

	json_put_object(j, "Labels");
	for (pair = args_next(args, "label", &pos); pair; pair = args_next(args, "label", &pos)) {
		const char *equals = strchr(pair, '=');
		_cleanup_str_ char *name = NULL;

		if (*pair == '=' || !equals)
			return error_refuse(err, ERROR_INVALID,
					    "--label \"%.80s\" is no NAME=VALUE", pair);
		name = xformat("%.*s", (int)(equals - pair), pair);
		json_put_string(j, name, equals + 1);
	}
	json_put_end(j);
	return 0;
}

static int rootconfig_platform(struct json *j, const char *text, struct error *err)
{
	struct platform_option platform;
	int r = platform_option_read(&platform, text, err);

	if (r < 0 || !text)
		return r;
	json_put_string(j, "architecture", platform.architecture);
	if (*platform.variant)
		json_put_string(j, "variant", platform.variant);
	return 0;
}

static int rootconfig_settings(struct json *j, const struct args *args, struct error *err)
{
	int r;

	json_put_object(j, "config");
	r = rootconfig_env(j, args, err);
	if (r == 0)
		r = rootconfig_labels(j, args, err);
	if (r == 0) {
		r = rootconfig_words(j, "Entrypoint", args_value(args, "entrypoint"), err);
		if (r < 0)
			return error_wrap(err, r, "--entrypoint");
		r = rootconfig_words(j, "Cmd", args_value(args, "cmd"), err);
		if (r < 0)
			return error_wrap(err, r, "--cmd");
	}
	if (args_value(args, "workdir"))
		json_put_string(j, "WorkingDir", args_value(args, "workdir"));
	if (args_value(args, "user"))
		json_put_string(j, "User", args_value(args, "user"));
	json_put_end(j);
	return r;
}

char *rootconfig_new(const struct args *args, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	struct json j = { .compact = true };
	size_t size;
	int r;

	j.to = open_memstream(&text, &size);
	if (!j.to) {
		(void)error_set(err, -ENOMEM, "write the configuration");
		return NULL;
	}
	json_put_object(&j, NULL);
	r = rootconfig_platform(&j, args_value(args, "platform"), err);
	if (r == 0)
		r = rootconfig_settings(&j, args, err);
	if (r == 0)
		json_put_end(&j);
	if (fclose(j.to) != 0 && r == 0)
		r = error_set(err, -ENOMEM, "write the configuration");
	return r == 0 ? TAKE_PTR(text) : NULL;
}
