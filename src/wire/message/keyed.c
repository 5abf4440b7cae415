/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/keyed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"

static bool keyed_has_key(const struct keyed_keys *k, const char *word, size_t len)
{
	for (size_t i = 0; i < k->n_keys; i++)
		if (strlen(k->keys[i]) == len && memcmp(k->keys[i], word, len) == 0)
			return true;
	return false;
}

static bool keyed_word_is_valid(const struct keyed_keys *k, const char *word)
{
	const char *value = strchr(word, '=');

	return value && keyed_has_key(k, word, (size_t)(value - word)) && str_is_clean(value) &&
	       str_is_utf8(value, strlen(value));
}

int keyed_put(const struct keyed_keys *k, struct buf *b, const char *key, const char *fmt,
	      va_list args)
{
	_cleanup_str_ char *value = NULL;
	int r;

	r = vasprintf(&value, fmt, args);
	if (r < 0) {
		value = NULL;
		return -ENOMEM;
	}
	if (!keyed_has_key(k, key, strlen(key)) || !str_is_clean(value) ||
	    !str_is_utf8(value, strlen(value)))
		return -EINVAL;
	r = buf_addf(b, "%s=%s", key, value);
	return r < 0 ? r : buf_add(b, "", 1);
}

int keyed_read(const struct keyed_keys *k, struct keyed *ret, const void *data, size_t len)
{
	const char *at = data, *end = at + len;
	size_t n = 0;

	if (len == 0 || len > k->size_max || end[-1])
		return -EBADMSG;
	for (; at < end; at += strlen(at) + 1)
		if (n++ == k->words_max || !keyed_word_is_valid(k, at))
			return -EBADMSG;
	*ret = (struct keyed){ .words = data, .len = len };
	return 0;
}

const char *keyed_next(const struct keyed *m, const char *key, const char **at)
{
	const size_t n = strlen(key);
	const char *word = *at ? *at + strlen(*at) + 1 : m->words;

	for (; word < m->words + m->len; word += strlen(word) + 1) {
		if (strncmp(word, key, n) != 0 || word[n] != '=')
			continue;
		*at = word;
		return word + n + 1;
	}
	return NULL;
}

const char *keyed_get(const struct keyed *m, const char *key)
{
	const char *at = NULL, *value = keyed_next(m, key, &at);

	return value ? value : "";
}
