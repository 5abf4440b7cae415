/* SPDX-License-Identifier: Apache-2.0 */

/* Parsers of the streaming server: request heads, SPDY frames, terminal sizes. */

#include <string.h>

#include "fuzz.h"
#include "stream/head.h"
#include "stream/resize.h"
#include "stream/spdy.h"

static void fuzz_head(const uint8_t *data, size_t size)
{
	struct head h;
	size_t used;

	if (head_take(data, size, &used, &h) <= 0)
		return;
	fuzz_need(used >= 4 && used <= size && used <= HEAD_MAX + 4);
	fuzz_need(h.path[0] == '/' && h.protocols.n <= HEAD_PROTOCOLS_MAX);
	for (size_t i = 0; i < h.protocols.n; i++)
		fuzz_need(h.protocols.words[i][0] != '\0');
}

static void fuzz_fields(const uint8_t *data, size_t size)
{
	struct http_text name, value;
	struct httphead h;
	size_t used;

	if (httphead_take(data, size, &used, &h) <= 0)
		return;
	while (httphead_next(&h.fields, &name, &value))
		fuzz_need(name.len > 0 && name.at >= (const char *)data &&
			  value.at + value.len <= (const char *)data + used);
	fuzz_need(h.fields.len == 0);
}

static void fuzz_frames(const uint8_t *data, size_t size)
{
	struct spdy *s = spdy_new();
	struct spdy_event e;
	size_t at = 0, used;

	if (!s)
		return;
	while (at < size && spdy_take(s, data + at, size - at, &used, &e) > 0) {
		fuzz_need(used > 0 && used <= size - at);
		fuzz_need(e.len == 0 ||
			  (e.data >= data + at && e.data + e.len <= data + at + used));
		at += used;
	}
	(void)spdy_free(s);
}

static void fuzz_sizes(const uint8_t *data, size_t size)
{
	struct resize r = { .len = 0 };
	uint16_t width, height;
	size_t used = 0;

	while (resize_take(&r, data, size, &used, &width, &height))
		fuzz_need(used <= size);
	fuzz_need(used == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_head(data, size);
	fuzz_fields(data, size);
	fuzz_frames(data, size);
	fuzz_sizes(data, size);
	return 0;
}
