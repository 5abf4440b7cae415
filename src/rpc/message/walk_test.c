/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/walk.h"

#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "rpc/message/pb.h"
#include "rpc/rpc_test.pb-c.h"
#include "unit.h"

#define SAMPLE (&nacre__test__v1__sample__descriptor)

static const struct {
	const char *bytes;
	size_t len;
	const char *refusal; /* NULL: fine */
} table[] = {
#define CASE(s, why)                                                                               \
	{                                                                                          \
		s, sizeof(s) - 1, why                                                              \
	}
	CASE("", NULL),
	CASE("\x0a\x02hi", NULL),
	CASE("\x0a\x02h", "not a protobuf message, or cut short"),
	CASE("\x0a\x02h\0", "text: not valid UTF-8, or with a NUL in it"),
	CASE("\x0a\x01\xff", "text: not valid UTF-8, or with a NUL in it"),
	CASE("\x0a\x02\xc0\x80", "text: not valid UTF-8, or with a NUL in it"),
	CASE("\x0a\x03\xed\xa0\x80", "text: not valid UTF-8, or with a NUL in it"),
	CASE("\x12\x02\0\xff", NULL),                               /* bytes may be anything */
	CASE("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", NULL), /* -1 */
	CASE("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
	     "not a protobuf message, or cut short"),
	CASE("\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
	     "not a protobuf message, or cut short"),
	CASE("\x18\x80", "not a protobuf message, or cut short"),
	CASE("\x1a\x01\x01", "small: not of the type that the field has"),
	CASE("\x08\x01", "text: not of the type that the field has"),
	CASE("\x50\x01", "inner: not of the type that the field has"),
	CASE("\x2d\1\2\3\4", NULL),
	CASE("\x2d\1\2\3", "not a protobuf message, or cut short"),
	CASE("\x31\1\2\3\4\5\6\7\x08", NULL),
	CASE("\x3a\x03\x01\x80\x01", NULL),
	CASE("\x38\x01", NULL), /* a packed list may come unpacked */
	CASE("\x3a\x01\x80", "packed: a packed list with a broken number"),
	CASE("\x42\x08\0\0\0\0\0\0\0\0", NULL),
	CASE("\x42\x07\0\0\0\0\0\0\0", "doubles: a packed list that is cut short"),
	CASE("\x52\x03\x0a\x01\xff", "inner.text: not valid UTF-8, or with a NUL in it"),
	CASE("\x5a\x05\x52\x03\x4a\x01\0",
	     "many.inner.names: not valid UTF-8, or with a NUL in it"),
	CASE("\x62\x06\x0a\x01k\x12\x01v", NULL),
	CASE("\x62\x06\x0a\x01k\x12\x01\x80", "labels.value: not valid UTF-8, or with a NUL in it"),
	CASE("\x52\x00\x52\x00", "inner: occurs twice"),
	CASE("\x5a\x00\x5a\x00", NULL),
	CASE("\x0a\x01"
	     "a\x0a\x01"
	     "b",
	     NULL),
	/* Values of an enum that nobody knows, also negative ones. */
	CASE("\x80\x01\x01", NULL),
	CASE("\x80\x01\x63", NULL),
	CASE("\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", NULL),
	CASE("\x8a\x01\x03\x00\x63\x01", NULL),
	CASE("\x8a\x01\x01\x80", "colours: a packed list with a broken number"),
	CASE("\x82\x01\x01x", "colour: not of the type that the field has"),
	/* Zeros behind a number's end: more bytes than it needs, but not too many. */
	CASE("\x18\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", NULL),
	CASE("\x8a\x80\x80\x00\x02hi", NULL), /* and in a tag: text */
	CASE("\x18\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",
	     "not a protobuf message, or cut short"),
	/* Each member of a oneof in turn. */
	CASE("\x6a\x01"
	     "a\x72\x00\x6a\x01"
	     "b",
	     NULL),
	CASE("\x72\x00\x72\x00", "other: occurs twice"),
	CASE("\x03", "not a protobuf message, or cut short"),     /* field 0 */
	CASE("\x0b\x0c", "not a protobuf message, or cut short"), /* a group */
	CASE("\x0e", "not a protobuf message, or cut short"),     /* wire type 6 */
	CASE("\xfa\x01\x02\0\xff", NULL),                         /* unknown field 31 */
	CASE("\xfa\x01\x03\0\xff", "not a protobuf message, or cut short"),
	CASE("\x0a\xff\xff\xff\xff\x0f", "not a protobuf message, or cut short"),
	CASE("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	     "not a protobuf message, or cut short"),
#undef CASE
};

static void the_table(void)
{
	ProtobufCMessage *message;
	struct error err;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		err = (struct error)ERROR_INIT;
		message = walk_decode(SAMPLE, (const uint8_t *)table[i].bytes, table[i].len, NULL,
				      &err);
		if (!!message != !table[i].refusal)
			printf("# case %zu: %s\n", i, err.text);
		CHECK(!!message == !table[i].refusal);
		CHECK_STR(err.text, table[i].refusal ? table[i].refusal : "");
		CHECK(!table[i].refusal || err.kind == ERROR_INVALID);
		if (message)
			protobuf_c_message_free_unpacked(message, NULL);
	}
}

/* A message with every kind of field in it, two levels deep. */
static size_t sample_pack(uint8_t *to)
{
	Nacre__Test__V1__Sample inner, sample;
	Nacre__Test__V1__Sample *many[] = { &inner, &inner };
	Nacre__Test__V1__Sample__LabelsEntry label;
	Nacre__Test__V1__Sample__LabelsEntry *labels[] = { &label };
	char text[] = "gr\xc3\xbc\xc3\x9f", *names[] = { text, text };
	uint8_t data[] = { 0, 0xff, 0x80 };
	uint32_t packed[] = { 1, 300, 70000 };
	double doubles[] = { 0.5, -1 };

	nacre__test__v1__sample__init(&inner);
	nacre__test__v1__sample__labels_entry__init(&label);
	inner.text = text;
	inner.choice_case = NACRE__TEST__V1__SAMPLE__CHOICE_WORD;
	inner.word = text;
	sample = inner;
	sample.data.data = data;
	sample.data.len = sizeof(data);
	sample.small = -5;
	sample.zigzag = -500;
	sample.four = 4;
	sample.eight = 8;
	sample.packed = packed;
	sample.n_packed = 3;
	sample.doubles = doubles;
	sample.n_doubles = 2;
	sample.names = names;
	sample.n_names = 2;
	sample.inner = &inner;
	sample.many = many;
	sample.n_many = 2;
	label.key = text;
	label.value = text;
	sample.labels = labels;
	sample.n_labels = 1;
	return nacre__test__v1__sample__pack(&sample, to);
}

static void cut_at_each_byte(void)
{
	uint8_t bytes[512], *exact;
	size_t len = sample_pack(bytes), fine = 0;
	ProtobufCMessage *message;
	struct error err;

	CHECK(len > 100 && len < sizeof(bytes));
	for (size_t n = 0; n <= len; n++) {
		/* An allocation of its own, so that a sanitizer sees each byte too many. */
		exact = malloc(n ? n : 1);
		memcpy(exact, bytes, n);
		err = (struct error)ERROR_INIT;
		message = walk_decode(SAMPLE, exact, n, NULL, &err);
		CHECK(!message == (err.code != 0));
		if (message) {
			fine++;
			protobuf_c_message_free_unpacked(message, NULL);
		}
		free(exact);
	}
	/* Where a cut falls between two fields of the outer message there is nothing to see. */
	CHECK_INT(fine, 16);
}

/* Each bit of the sample turned over: it is refused or decoded, and never more than that. */
static void one_bit_wrong(void)
{
	uint8_t bytes[512];
	size_t len = sample_pack(bytes);
	ProtobufCMessage *message;
	struct error err;

	for (size_t i = 0; i < len * 8; i++) {
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		err = (struct error)ERROR_INIT;
		message = walk_decode(SAMPLE, bytes, len, NULL, &err);
		CHECK(!message == (err.code != 0));
		/* protobuf-c alone finds nothing wrong that the walker let through. */
		CHECK(message || err.kind == ERROR_INVALID);
		if (message)
			protobuf_c_message_free_unpacked(message, NULL);
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

/* `depth` messages inside each other, by the field `inner`. */
static void nest(struct buf *b, unsigned depth)
{
	struct buf out = BUF_INIT;

	for (unsigned i = 0; i < depth; i++) {
		CHECK(pb_put_bytes(&out, 10, b->len ? buf_data(b) : NULL, b->len) == 0);
		buf_done(b);
		*b = out;
		out = (struct buf)BUF_INIT;
	}
}

static void nesting_has_a_limit(void)
{
	struct buf b = BUF_INIT;
	struct error err = ERROR_INIT;

	nest(&b, WALK_DEPTH_MAX - 1);
	CHECK_INT(walk_check(SAMPLE, buf_data(&b), b.len, &err), 0);
	nest(&b, 1);
	CHECK(walk_check(SAMPLE, buf_data(&b), b.len, &err) < 0);
	CHECK_STR(err.text, "messages nested more than 64 deep");
	nest(&b, 20000 - WALK_DEPTH_MAX);
	CHECK(walk_check(SAMPLE, buf_data(&b), b.len, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	buf_done(&b);
}

/* As many bytes of `pair` as n elements take. */
static int walk_many(const char *pair, size_t n, struct error *err)
{
	uint8_t *bytes = malloc(2 * n);
	int r;

	for (size_t i = 0; i < 2 * n; i++)
		bytes[i] = (uint8_t)pair[i % 2];
	r = walk_check(SAMPLE, bytes, 2 * n, err);
	free(bytes);
	return r;
}

static void fields_have_a_limit(void)
{
	struct error err = ERROR_INIT;

	CHECK_INT(walk_many("\x4a\0", WALK_FIELDS_MAX, &err), 0);
	CHECK(walk_many("\x4a\0", WALK_FIELDS_MAX + 1, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	CHECK_STR(err.text, "names: too many fields in one message");
	err = (struct error)ERROR_INIT;
	CHECK(walk_many("\x5a\0", 10000000, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	/* Unknown fields count too: protobuf-c keeps them. */
	CHECK(walk_many("\x78\0", 10000000, &err) < 0);
}

static void packed_lists_have_a_limit(void)
{
	static const uint32_t fields[] = { 7, 8 };
	struct buf b = BUF_INIT;
	struct error err;
	size_t size;
	uint8_t *zeros = calloc(WALK_FIELDS_MAX + 1, 8);

	for (size_t i = 0; i < 2; i++) {
		size = fields[i] == 7 ? 1 : 8;
		err = (struct error)ERROR_INIT;
		CHECK(pb_put_bytes(&b, fields[i], zeros, size * (WALK_FIELDS_MAX - 1)) == 0);
		CHECK_INT(walk_check(SAMPLE, buf_data(&b), b.len, &err), 0);
		buf_clear(&b);
		CHECK(pb_put_bytes(&b, fields[i], zeros, size * (WALK_FIELDS_MAX + 1)) == 0);
		CHECK(walk_check(SAMPLE, buf_data(&b), b.len, &err) < 0);
		CHECK_INT(err.kind, ERROR_EXHAUSTED);
		buf_clear(&b);
	}
	free(zeros);
}

static void *from_arena(void *data, size_t size)
{
	return arena_alloc(data, size);
}

static void to_arena(void *data, void *p)
{
}

static void decoding_stays_within_its_arena(void)
{
	struct arena arena = ARENA_INIT_LIMIT(400);
	ProtobufCAllocator allocator = { from_arena, to_arena, &arena };
	struct error err = ERROR_INIT;
	uint8_t bytes[512];
	size_t len = sample_pack(bytes);

	CHECK(!walk_decode(SAMPLE, bytes, len, &allocator, &err));
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	arena.limit = 100000;
	CHECK(walk_decode(SAMPLE, bytes, len, &allocator, &err) != NULL);
	arena_done(&arena);
}

UNIT_MAIN({ "the table", the_table }, { "cut at each byte", cut_at_each_byte },
	  { "one bit wrong", one_bit_wrong }, { "nesting has a limit", nesting_has_a_limit },
	  { "fields have a limit", fields_have_a_limit },
	  { "packed lists have a limit", packed_lists_have_a_limit },
	  { "decoding stays within its arena", decoding_stays_within_its_arena })
