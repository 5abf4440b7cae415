/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/check.h"

#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"

#define CHECK_WORDS_MAX 4096
#define CHECK_BYTES_MAX ((size_t)1024 * 1024)
#define CHECK_DIR_MAX 4095

int check_name(const char *field, const char *name, struct error *err)
{
	if (str_empty(name) || name_is_label(name))
		return 0;
	return error_field(
		err, ERROR_INVALID, field,
		"\"%.80s\" is not a name: 1 to %d of a-z, 0-9 and '-', neither first nor "
		"last a '-'",
		name, NAME_LABEL_MAX);
}

int check_path(const char *field, const char *path, struct error *err)
{
	if (str_empty(path) || name_is_path(path))
		return 0;
	return error_field(err, ERROR_INVALID, field,
			   "\"%.80s\" is not a path of names (\"a/b/c\", at most %d of them)", path,
			   NAME_DEPTH_MAX);
}

static int check_sizes(const char *field, char *const *v, size_t n, struct error *err)
{
	size_t bytes = 0;

	if (n > CHECK_WORDS_MAX)
		return error_field(err, ERROR_INVALID, field, "%zu are more than the limit of %d",
				   n, CHECK_WORDS_MAX);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(v[i]);

		if (len > CHECK_WORD_MAX)
			return error_field(
				err, ERROR_INVALID, field,
				"number %zu has %zu bytes, and a program can be given at "
				"most %zu in one",
				i + 1, len, CHECK_WORD_MAX);
		bytes += len + 1;
	}
	if (bytes > CHECK_BYTES_MAX)
		return error_field(err, ERROR_INVALID, field,
				   "%zu bytes are more than the limit of %zu", bytes,
				   CHECK_BYTES_MAX);
	return 0;
}

int check_env(const char *field, char *const *env, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		size_t name = strcspn(env[i], "=");
		char entry[ERROR_FIELD_MAX];

		(void)str_printf(entry, sizeof(entry), "%s[%zu]", field, i);
		if (name == 0 || !env[i][name])
			return error_field(err, ERROR_INVALID, entry, "\"%.80s\" is not NAME=VALUE",
					   env[i]);
		for (size_t k = 0; k < name; k++)
			if ((unsigned char)env[i][k] <= 0x20 || env[i][k] == 0x7f)
				return error_field(err, ERROR_INVALID, entry,
						   "the name has a blank or control byte");
	}
	return check_sizes(field, env, n, err);
}

int check_text(const char *field, const char *text, size_t n_max, struct error *err)
{
	size_t n = strlen(text);

	if (n <= n_max)
		return 0;
	return error_field(err, ERROR_INVALID, field, "%zu bytes are more than the limit of %zu", n,
			   n_max);
}

int check_dir(const char *field, const char *dir, struct error *err)
{
	if (str_empty(dir))
		return 0;
	if (dir[0] != '/')
		return error_field(err, ERROR_INVALID, field, "\"%.80s\" is not an absolute path",
				   dir);
	if (strlen(dir) > CHECK_DIR_MAX)
		return error_field(err, ERROR_INVALID, field, "longer than %d bytes",
				   CHECK_DIR_MAX);
	return 0;
}

int check_words(const char *field, char *const *words, size_t n, struct error *err)
{
	if (n == 0 || !words[0][0])
		return error_field(err, ERROR_INVALID, field, "required");
	return check_sizes(field, words, n, err);
}

int check_args(const char *field, char *const *words, size_t n, struct error *err)
{
	return check_sizes(field, words, n, err);
}

int check_user(const char *field, const char *user, struct error *err)
{
	size_t colons = 0;

	for (const char *p = user; p && *p; p++) {
		if ((unsigned char)*p <= 0x20 || *p == 0x7f || *p == '/')
			return error_field(err, ERROR_INVALID, field, "\"%.80s\" is not a user",
					   user);
		colons += *p == ':';
	}
	if (!str_empty(user) && (strlen(user) > 256 || colons > 1 || user[0] == ':'))
		return error_field(err, ERROR_INVALID, field,
				   "\"%.80s\" is neither a user nor user:group", user);
	return 0;
}

int check_size(const char *field, uint32_t width, uint32_t height, struct error *err)
{
	if (width <= UINT16_MAX && height <= UINT16_MAX)
		return 0;
	return error_field(err, ERROR_INVALID, field, "%u by %u is more than %u a side", width,
			   height, UINT16_MAX);
}

int check_unset(const char *field, int set, struct error *err)
{
	if (!set)
		return 0;
	return error_field(err, ERROR_UNSUPPORTED, field, "not honoured yet by this release");
}

int check_word(const char *field, const char *word, const char *const *words, size_t n,
	       const char **ret, struct error *err)
{
	char all[128] = "";

	if (str_empty(word)) {
		*ret = words[0];
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(all);

		if (str_eq(words[i], word)) {
			*ret = words[i];
			return 0;
		}
		(void)str_printf(all + len, sizeof(all) - len, "%s\"%s\"", i ? ", " : "", words[i]);
	}
	return error_field(err, ERROR_INVALID, field, "\"%.80s\" is none of %s", word, all);
}
