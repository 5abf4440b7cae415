/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/cnimsg.h"

#include <stdarg.h>

#include "base/macros.h"

static const char *const cnimsg_keys[] = {
	"verb",   "number", "container", "pod",     "namespace", "uid",    "network",
	"ip",     "mac",    "port",      "rate-in", "rate-out",  "server", "search",
	"option", "kind",   "text",      "mtu",     "route",     "ready",
};

static const struct keyed_keys cnimsg_table = { cnimsg_keys, ARRAY_SIZE(cnimsg_keys),
						CNIMSG_SIZE_MAX, CNIMSG_WORDS_MAX };

int cnimsg_put(struct buf *b, const char *key, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = keyed_put(&cnimsg_table, b, key, fmt, args);
	va_end(args);
	return r;
}

int cnimsg_read(struct cnimsg *ret, const void *data, size_t len)
{
	return keyed_read(&cnimsg_table, &ret->words, data, len);
}

const char *cnimsg_next(const struct cnimsg *m, const char *key, const char **at)
{
	return keyed_next(&m->words, key, at);
}

const char *cnimsg_get(const struct cnimsg *m, const char *key)
{
	return keyed_get(&m->words, key);
}
