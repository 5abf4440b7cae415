/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/cnimsg.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char *const cnimsg_keys[] = {
	"verb",   "number", "container", "pod",     "namespace", "uid",    "network",
	"ip",     "mac",    "port",      "rate-in", "rate-out",  "server", "search",
	"option", "kind",   "text",      "mtu",     "route",     "ready",
};

static bool cnimsg_has_key(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(cnimsg_keys); i++)
		if (strlen(cnimsg_keys[i]) == len && memcmp(cnimsg_keys[i], word, len) == 0)
			return true;
	return false;
}

static bool cnimsg_word_is_valid(const char *word)
{
	const char *value = strchr(word, '=');

	return value && cnimsg_has_key(word, (size_t)(value - word)) && str_is_clean(value) &&
	       str_is_utf8(value, strlen(value));
}

int cnimsg_put(struct buf *b, const char *key, const char *fmt, ...)
{
	_cleanup_str_ char *value = NULL;
	va_list args;
	int r;

	va_start(args, fmt);
	r = vasprintf(&value, fmt, args);
	va_end(args);
	if (r < 0) {
		value = NULL;
		return -ENOMEM;
	}
	if (!cnimsg_has_key(key, strlen(key)) || !str_is_clean(value) ||
	    !str_is_utf8(value, strlen(value)))
		return -EINVAL;
	r = buf_addf(b, "%s=%s", key, value);
	return r < 0 ? r : buf_add(b, "", 1);
}

int cnimsg_read(struct cnimsg *ret, const void *data, size_t len)
{
	const char *at = data, *end = at + len;
	size_t n = 0;

	if (len == 0 || len > CNIMSG_SIZE_MAX || end[-1])
		return -EBADMSG;
	for (; at < end; at += strlen(at) + 1)
		if (n++ == CNIMSG_WORDS_MAX || !cnimsg_word_is_valid(at))
			return -EBADMSG;
	*ret = (struct cnimsg){ .words = data, .len = len };
	return 0;
}

const char *cnimsg_next(const struct cnimsg *m, const char *key, const char **at)
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

const char *cnimsg_get(const struct cnimsg *m, const char *key)
{
	const char *at = NULL, *value = cnimsg_next(m, key, &at);

	return value ? value : "";
}
