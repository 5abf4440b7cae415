/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/btf.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define BTF_NESTED_MAX 8
#define BTF_HEAD_WORDS (sizeof(struct btf_type) / sizeof(uint32_t))

/* Words behind the head of a type: some of their own, and some for each of its parts. */
static const struct {
	uint8_t own, each;
} btf_words[] = {
	[BTF_KIND_INT] = { 1, 0 },        [BTF_KIND_PTR] = { 0, 0 },
	[BTF_KIND_ARRAY] = { 3, 0 },      [BTF_KIND_STRUCT] = { 0, 3 },
	[BTF_KIND_UNION] = { 0, 3 },      [BTF_KIND_ENUM] = { 0, 2 },
	[BTF_KIND_FWD] = { 0, 0 },        [BTF_KIND_TYPEDEF] = { 0, 0 },
	[BTF_KIND_VOLATILE] = { 0, 0 },   [BTF_KIND_CONST] = { 0, 0 },
	[BTF_KIND_RESTRICT] = { 0, 0 },   [BTF_KIND_FUNC] = { 0, 0 },
	[BTF_KIND_FUNC_PROTO] = { 0, 2 }, [BTF_KIND_VAR] = { 1, 0 },
	[BTF_KIND_DATASEC] = { 0, 3 },    [BTF_KIND_FLOAT] = { 0, 0 },
	[BTF_KIND_DECL_TAG] = { 1, 0 },   [BTF_KIND_TYPE_TAG] = { 0, 0 },
	[BTF_KIND_ENUM64] = { 0, 3 },
};

static const struct btf_type *btf_type_of(const struct btf *b, uint32_t id)
{
	return id > 0 && id <= b->n_types ? (const void *)b->types[id] : NULL;
}

static const char *btf_name(const struct btf *b, uint32_t at)
{
	return at < b->n_strings ? b->strings + at : "";
}

/* How many words the type takes; 0: it is none. */
static size_t btf_size(const uint32_t *words, size_t n_left)
{
	const struct btf_type *t = (const void *)words;
	unsigned kind;
	size_t n;

	if (n_left < BTF_HEAD_WORDS)
		return 0;
	kind = BTF_INFO_KIND(t->info);
	if (kind == BTF_KIND_UNKN || kind >= ARRAY_SIZE(btf_words))
		return 0;
	n = BTF_HEAD_WORDS + btf_words[kind].own +
	    (size_t)btf_words[kind].each * BTF_INFO_VLEN(t->info);
	return n <= n_left ? n : 0;
}

static int btf_index(struct btf *b, const uint32_t *words, size_t n_words)
{
	uint32_t n = 0;
	size_t size;

	for (size_t at = 0; at < n_words; at += size, n++) {
		size = btf_size(words + at, n_words - at);
		if (size == 0)
			return -EBADMSG;
	}
	b->types = calloc((size_t)n + 1, sizeof(*b->types));
	if (!b->types)
		return -ENOMEM;
	for (size_t at = 0; at < n_words; at += btf_size(words + at, n_words - at))
		b->types[++b->n_types] = words + at;
	return 0;
}

static bool btf_is_within(size_t len, const struct btf_header *h, uint32_t off, uint32_t n)
{
	return h->hdr_len <= len && off <= len - h->hdr_len && n <= len - h->hdr_len - off;
}

int btf_take(struct btf *b, struct buf *data)
{
	const uint8_t *from;
	struct btf_header h;
	int r = -EBADMSG;

	*b = (struct btf){ .data = *data };
	*data = (struct buf)BUF_INIT;
	from = buf_data(&b->data);
	if (b->data.len >= sizeof(h)) {
		memcpy(&h, from, sizeof(h));
		if (h.magic == BTF_MAGIC && h.version == BTF_VERSION &&
		    btf_is_within(b->data.len, &h, h.type_off, h.type_len) &&
		    btf_is_within(b->data.len, &h, h.str_off, h.str_len) && h.str_len > 0 &&
		    from[h.hdr_len + h.str_off + h.str_len - 1] == '\0' &&
		    (h.hdr_len + h.type_off) % sizeof(uint32_t) == 0)
			r = 0;
	}
	if (r == 0) {
		b->strings = (const char *)from + h.hdr_len + h.str_off;
		b->n_strings = h.str_len;
		r = btf_index(b, (const void *)(from + h.hdr_len + h.type_off),
			      h.type_len / sizeof(uint32_t));
	}
	if (r < 0)
		btf_done(b);
	return r;
}

void btf_done(struct btf *b)
{
	free(b->types);
	buf_done(&b->data);
	*b = (struct btf){ .data = BUF_INIT };
}

uint32_t btf_find(const struct btf *b, unsigned kind, const char *name)
{
	for (uint32_t id = 1; id <= b->n_types; id++) {
		const struct btf_type *t = btf_type_of(b, id);

		if (BTF_INFO_KIND(t->info) == kind && strcmp(btf_name(b, t->name_off), name) == 0)
			return id;
	}
	return 0;
}

static int btf_offset_in(const struct btf *b, uint32_t id, const char *member, unsigned depth)
{
	const struct btf_type *t = btf_type_of(b, id);
	const struct btf_member *m;

	if (!t || depth == BTF_NESTED_MAX ||
	    (BTF_INFO_KIND(t->info) != BTF_KIND_STRUCT && BTF_INFO_KIND(t->info) != BTF_KIND_UNION))
		return -ENOENT;
	m = (const void *)(t + 1);
	for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info); i++) {
		uint32_t bits =
			BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BIT_OFFSET(m[i].offset) : m[i].offset;
		int r;

		if (strcmp(btf_name(b, m[i].name_off), member) == 0)
			return bits % 8 || bits / 8 > INT16_MAX ? -ENOENT : (int)(bits / 8);
		r = *btf_name(b, m[i].name_off) ? -ENOENT
						: btf_offset_in(b, m[i].type, member, depth + 1);
		if (r >= 0 && bits / 8 + (uint32_t)r <= INT16_MAX)
			return r + (int)(bits / 8);
	}
	return -ENOENT;
}

int btf_offset(const struct btf *b, const char *structure, const char *member)
{
	return btf_offset_in(b, btf_find(b, BTF_KIND_STRUCT, structure), member, 0);
}
