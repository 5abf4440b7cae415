/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/secret_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

#define SECRETS_TARGET "/run/secrets"

static char secret_none[] = "";

/* ---- one option ---- */

struct secret_word {
	char *name, *type, *target;
	uint32_t uid, gid, mode;
};

static int secret_set_name(struct secret_word *s, char *value)
{
	s->name = value;
	return 0;
}

static int secret_set_type(struct secret_word *s, char *value)
{
	s->type = value;
	return str_eq(value, "mount") || str_eq(value, "env") ? 0 : -EINVAL;
}

static int secret_set_target(struct secret_word *s, char *value)
{
	s->target = value;
	return 0;
}

static int secret_set_uid(struct secret_word *s, char *value)
{
	return parse_u32(value, &s->uid);
}

static int secret_set_gid(struct secret_word *s, char *value)
{
	return parse_u32(value, &s->gid);
}

static int secret_set_mode(struct secret_word *s, char *value)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	s->mode = (uint32_t)mode;
	return *end || mode == 0 || mode > 07777 ? -EINVAL : 0;
}

static const struct {
	const char *name;
	int (*set)(struct secret_word *s, char *value);
} secret_members[] = {
	{ "source", secret_set_name },   { "id", secret_set_name }, { "type", secret_set_type },
	{ "target", secret_set_target }, { "uid", secret_set_uid }, { "gid", secret_set_gid },
	{ "mode", secret_set_mode },
};

static int secret_set(struct secret_word *s, char *word)
{
	char *value = strchr(word, '=');

	if (!value) {
		bool first = !s->name;

		s->name = first ? word : s->name;
		return first ? 0 : -EINVAL;
	}
	*value++ = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(secret_members) && *value; i++)
		if (str_eq(secret_members[i].name, word))
			return secret_members[i].set(s, value);
	return -EINVAL;
}

static int secret_parse(struct secret_words *w, const char *text, struct secret_word *ret,
			struct error *err)
{
	char *words = xstrdup(text), *rest = NULL;

	w->words = xrealloc(w->words, w->n_words + 1, sizeof(*w->words));
	w->words[w->n_words++] = words;
	*ret = (struct secret_word){ .name = NULL };
	for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		_cleanup_str_ char *whole = xstrdup(word);

		if (secret_set(ret, word) < 0)
			return error_refuse(err, ERROR_INVALID, "--secret: \"%s\" is wrong", whole);
	}
	if (!ret->name)
		return error_refuse(err, ERROR_INVALID,
				    "--secret: the name of a secret is missing");
	if (ret->type && str_eq(ret->type, "env") && (ret->uid || ret->gid || ret->mode))
		return error_refuse(err, ERROR_INVALID,
				    "--secret: a variable has no uid, gid and mode");
	return 0;
}

/* ---- all of them ---- */

static void secret_add_variable(struct secret_words *w, const struct secret_word *s)
{
	Aurae__Runtime__V0__SecretVariable *v = &w->variables[w->n_variables];

	aurae__runtime__v0__secret_variable__init(v);
	v->name = s->name;
	v->variable = s->target ? s->target : s->name;
	w->variable_list[w->n_variables++] = v;
}

static Aurae__Runtime__V0__MountedSecret *secret_add_file(struct secret_words *w,
							  const struct secret_word *s)
{
	Aurae__Runtime__V0__MountedSecret *f = &w->files[w->n_files];

	aurae__runtime__v0__mounted_secret__init(f);
	f->name = s->name;
	f->file = s->target ? s->target : s->name;
	f->uid = s->uid;
	f->gid = s->gid;
	f->mode = s->mode;
	w->file_list[w->n_files++] = f;
	return f;
}

static Aurae__Runtime__V0__Mount *secret_add_mount(struct secret_words *w, char *target, size_t n)
{
	Aurae__Runtime__V0__Mount *m = &w->mounts[w->n_mounts++];

	aurae__runtime__v0__mount__init(m);
	m->target = target;
	m->secrets = &w->file_list[w->n_files];
	m->n_secrets = n;
	return m;
}

static bool secret_is_apart(const struct secret_word *s)
{
	return s->target && s->target[0] == '/';
}

static void secret_add_all(struct secret_words *w, const struct secret_word *all, size_t n)
{
	static char target[] = SECRETS_TARGET;
	Aurae__Runtime__V0__Mount *together = NULL;

	for (size_t i = 0; i < n; i++) {
		if (all[i].type && str_eq(all[i].type, "env")) {
			secret_add_variable(w, &all[i]);
		} else if (!secret_is_apart(&all[i])) {
			together = together ? together : secret_add_mount(w, target, 0);
			(void)secret_add_file(w, &all[i]);
			together->n_secrets++;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (!secret_is_apart(&all[i]) || (all[i].type && str_eq(all[i].type, "env")))
			continue;
		(void)secret_add_mount(w, all[i].target, 1);
		secret_add_file(w, &all[i])->file = secret_none;
	}
}

int secret_words_take(struct secret_words *w, const struct args *a, struct error *err)
{
	struct secret_word *all;
	size_t n = 0, pos = 0;
	const char *value;
	int r = 0;

	while (args_next(a, "secret", &pos))
		n++;
	if (n == 0)
		return 0;
	all = xrealloc(NULL, n, sizeof(*all));
	w->mounts = xrealloc(NULL, n, sizeof(*w->mounts));
	w->files = xrealloc(NULL, n, sizeof(*w->files));
	w->file_list = xrealloc(NULL, n, sizeof(*w->file_list));
	w->variables = xrealloc(NULL, n, sizeof(*w->variables));
	w->variable_list = xrealloc(NULL, n, sizeof(*w->variable_list));
	n = pos = 0;
	while (r == 0 && (value = args_next(a, "secret", &pos)))
		r = secret_parse(w, value, &all[n++], err);
	if (r == 0)
		secret_add_all(w, all, n);
	free(all);
	return r;
}

void secret_words_done(struct secret_words *w)
{
	for (size_t i = 0; i < w->n_words; i++)
		free(w->words[i]);
	free(w->words);
	free(w->mounts);
	free(w->files);
	free(w->file_list);
	free(w->variables);
	free(w->variable_list);
	*w = (struct secret_words)SECRET_WORDS_INIT;
}
