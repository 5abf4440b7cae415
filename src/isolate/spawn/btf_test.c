/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/btf.h>
#include <string.h>

#include "isolate/spawn/btf.h"
#include "unit.h"

#define TEXT "\0outer\0first\0second\0low\0"

/* struct outer { int first; struct { int second; }; int low : 3; } */
struct sample {
	struct btf_header head;
	struct btf_type outer;
	struct btf_member members[3];
	struct btf_type inner;
	struct btf_member member;
	struct btf_type number;
	uint32_t number_form;
	char text[sizeof(TEXT)];
};

static struct sample sample(void)
{
	struct sample s = {
		.head = { .magic = BTF_MAGIC,
			  .version = BTF_VERSION,
			  .hdr_len = sizeof(struct btf_header),
			  .type_len = offsetof(struct sample, text) - sizeof(struct btf_header),
			  .str_off = offsetof(struct sample, text) - sizeof(struct btf_header),
			  .str_len = sizeof(TEXT) },
		.outer = { .name_off = 1, .info = 1U << 31 | BTF_KIND_STRUCT << 24 | 3 },
		.members = { { .name_off = 7, .type = 3, .offset = 0 },
			     { .name_off = 0, .type = 2, .offset = 64 },
			     { .name_off = 20, .type = 3, .offset = 3U << 24 | 130 } },
		.inner = { .info = BTF_KIND_STRUCT << 24 | 1 },
		.member = { .name_off = 13, .type = 3, .offset = 32 },
		.number = { .info = BTF_KIND_INT << 24, .size = 4 },
	};

	memcpy(s.text, TEXT, sizeof(TEXT));
	return s;
}

static int take(struct btf *b, const struct sample *s, size_t len)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT;

	CHECK_INT(buf_add(&data, s, len), 0);
	return btf_take(b, &data);
}

static void members_are_found(void)
{
	const struct sample s = sample();
	struct btf b;
	int r = take(&b, &s, sizeof(s));

	CHECK_INT(r, 0);
	if (r < 0)
		return;
	CHECK_INT(btf_find(&b, BTF_KIND_STRUCT, "outer"), 1);
	CHECK_INT(btf_find(&b, BTF_KIND_UNION, "outer"), 0);
	CHECK_INT(btf_offset(&b, "outer", "first"), 0);
	CHECK_INT(btf_offset(&b, "outer", "second"), 12);
	CHECK_INT(btf_offset(&b, "outer", "low"), -ENOENT);
	CHECK_INT(btf_offset(&b, "outer", "none"), -ENOENT);
	CHECK_INT(btf_offset(&b, "none", "first"), -ENOENT);
	btf_done(&b);
}

static void what_is_cut_or_wrong_is_refused(void)
{
	struct sample s = sample();
	struct btf b;

	for (size_t len = 0; len < sizeof(s); len += 4)
		CHECK_INT(take(&b, &s, len), -EBADMSG);
	s.head.type_len -= 4;
	CHECK_INT(take(&b, &s, sizeof(s)), -EBADMSG);
	s = sample();
	s.outer.info |= 0xffff;
	CHECK_INT(take(&b, &s, sizeof(s)), -EBADMSG);
	s = sample();
	s.head.str_len--;
	s.text[sizeof(TEXT) - 2] = 'x';
	CHECK_INT(take(&b, &s, sizeof(s)), -EBADMSG);
	s = sample();
	s.head.str_off = UINT32_MAX;
	CHECK_INT(take(&b, &s, sizeof(s)), -EBADMSG);
}

static void names_and_types_beyond_the_end_are_none(void)
{
	struct sample s = sample();
	struct btf b;

	s.members[0].name_off = UINT32_MAX;
	s.members[1].type = UINT32_MAX;
	CHECK_INT(take(&b, &s, sizeof(s)), 0);
	CHECK_INT(btf_offset(&b, "outer", "second"), -ENOENT);
	btf_done(&b);
	/* One that is in itself. */
	s = sample();
	s.members[1].type = 1;
	CHECK_INT(take(&b, &s, sizeof(s)), 0);
	CHECK_INT(btf_offset(&b, "outer", "second"), -ENOENT);
	btf_done(&b);
}

UNIT_MAIN({ "members are found", members_are_found },
	  { "what is cut or wrong is refused", what_is_cut_or_wrong_is_refused },
	  { "names and types beyond the end are none", names_and_types_beyond_the_end_are_none })
