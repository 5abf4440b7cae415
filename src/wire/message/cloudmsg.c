/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/cloudmsg.h"

#include <stdarg.h>

#include "base/macros.h"

static const char *const cloudmsg_keys[] = {
	"verb",
	"number",
	"region",
	"endpoint",
	"profile",
	"token",
	"image",
	"type",
	"subnet",
	"group",
	"instance-profile",
	"key-name",
	"tag",
	"user-data",
	"spot",
	"dry-run",
	"id",
	"state",
	"address",
	"zone",
	"launched",
	"reason",
	"kind",
	"text",
	"code",
	"unknown",
	"output",
	"time",
	"now",
	"provider",
	"project",
	"trust",
	"folder",
	"pool",
	"datastore",
	"cpus",
	"memory",
	"doubt",
};

static const struct keyed_keys cloudmsg_table = { cloudmsg_keys, ARRAY_SIZE(cloudmsg_keys),
						  CLOUDMSG_SIZE_MAX, CLOUDMSG_WORDS_MAX };

int cloudmsg_put(struct buf *b, const char *key, const char *fmt, ...)
{
	va_list args;
	int r;

	va_start(args, fmt);
	r = keyed_put(&cloudmsg_table, b, key, fmt, args);
	va_end(args);
	return r;
}

int cloudmsg_read(struct cloudmsg *ret, const void *data, size_t len)
{
	return keyed_read(&cloudmsg_table, &ret->words, data, len);
}

const char *cloudmsg_next(const struct cloudmsg *m, const char *key, const char **at)
{
	return keyed_next(&m->words, key, at);
}

const char *cloudmsg_get(const struct cloudmsg *m, const char *key)
{
	return keyed_get(&m->words, key);
}
