/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/walk.h"

#include <errno.h>
#include <stdbool.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "rpc/message/pb.h"

#define WALK_NAME_MAX 256

/* Where the walk stands; one for each level, chained to the level above for the name of a field. */
struct walk {
	const struct walk *above;
	const ProtobufCMessageDescriptor *type;
	const ProtobufCFieldDescriptor *field;
	struct walk_total *total;
	unsigned depth;
	uint64_t seen; /* of the message fields among the first 64: those that occurred */
};

struct walk_total {
	size_t fields;
	struct error *err;
};

static const enum pb_wire walk_wires[] = {
	[PROTOBUF_C_TYPE_INT32] = PB_VARINT,     [PROTOBUF_C_TYPE_SINT32] = PB_VARINT,
	[PROTOBUF_C_TYPE_SFIXED32] = PB_FIXED32, [PROTOBUF_C_TYPE_INT64] = PB_VARINT,
	[PROTOBUF_C_TYPE_SINT64] = PB_VARINT,    [PROTOBUF_C_TYPE_SFIXED64] = PB_FIXED64,
	[PROTOBUF_C_TYPE_UINT32] = PB_VARINT,    [PROTOBUF_C_TYPE_FIXED32] = PB_FIXED32,
	[PROTOBUF_C_TYPE_UINT64] = PB_VARINT,    [PROTOBUF_C_TYPE_FIXED64] = PB_FIXED64,
	[PROTOBUF_C_TYPE_FLOAT] = PB_FIXED32,    [PROTOBUF_C_TYPE_DOUBLE] = PB_FIXED64,
	[PROTOBUF_C_TYPE_BOOL] = PB_VARINT,      [PROTOBUF_C_TYPE_ENUM] = PB_VARINT,
	[PROTOBUF_C_TYPE_STRING] = PB_BYTES,     [PROTOBUF_C_TYPE_BYTES] = PB_BYTES,
	[PROTOBUF_C_TYPE_MESSAGE] = PB_BYTES,
};

/* "a.b.c" of the field that the walk stands at, cut where it is too long. */
static void walk_name(const struct walk *w, char *to, size_t size)
{
	const struct walk *chain[WALK_DEPTH_MAX + 1];
	size_t n = 0, len = 0;

	for (; w && n < ARRAY_SIZE(chain); w = w->above)
		if (w->field)
			chain[n++] = w;
	to[0] = '\0';
	while (n > 0 && len + 1 < size) {
		n--;
		(void)str_printf(to + len, size - len, "%s%s", len ? "." : "",
				 chain[n]->field->name);
		len += strlen(to + len);
	}
}

static int walk_refuse(const struct walk *w, enum error_kind kind, const char *why)
{
	char name[WALK_NAME_MAX];

	walk_name(w, name, sizeof(name));
	if (!name[0])
		return error_refuse(w->total->err, kind, "%s", why);
	return error_field(w->total->err, kind, name, "%s", why);
}

static int walk_count(const struct walk *w)
{
	if (w->total->fields++ >= WALK_FIELDS_MAX)
		return walk_refuse(w, ERROR_EXHAUSTED, "too many fields in one message");
	return 0;
}

/* A repeated number may come as one run of bytes. */
static int walk_packed(const struct walk *w, const struct pb_field *f)
{
	struct pb_reader reader = pb_reader(f->data, f->len);
	enum pb_wire wire = walk_wires[w->field->type];
	size_t size = wire == PB_FIXED64 ? 8 : 4;
	uint64_t value;
	int r;

	if (wire != PB_VARINT) {
		if (f->len % size)
			return walk_refuse(w, ERROR_INVALID, "a packed list that is cut short");
		if (f->len / size >
		    WALK_FIELDS_MAX - MIN(w->total->fields, (size_t)WALK_FIELDS_MAX))
			return walk_refuse(w, ERROR_EXHAUSTED, "too many fields in one message");
		w->total->fields += f->len / size;
		return 0;
	}
	while (reader.at != reader.end) {
		r = walk_count(w);
		if (r < 0)
			return r;
		if (pb_read_varint(&reader, &value) < 0)
			return walk_refuse(w, ERROR_INVALID, "a packed list with a broken number");
	}
	return 0;
}

/* A message that occurs twice where there is one. */
static int walk_once(struct walk *w)
{
	size_t index = (size_t)(w->field - w->type->fields);

	if (w->field->label == PROTOBUF_C_LABEL_REPEATED || index >= 64)
		return 0;
	if (w->seen & (UINT64_C(1) << index))
		return walk_refuse(w, ERROR_INVALID, "occurs twice");
	w->seen |= UINT64_C(1) << index;
	return 0;
}

static int walk_number_or_string(const struct walk *w, const struct pb_field *f)
{
	bool repeated = w->field->label == PROTOBUF_C_LABEL_REPEATED;
	enum pb_wire wire = walk_wires[w->field->type];

	if (repeated && wire != PB_BYTES && f->wire == PB_BYTES)
		return walk_packed(w, f);
	if (f->wire != wire)
		return walk_refuse(w, ERROR_INVALID, "not of the type that the field has");
	if (w->field->type == PROTOBUF_C_TYPE_STRING && !str_is_utf8(f->data, f->len))
		return walk_refuse(w, ERROR_INVALID, "not valid UTF-8, or with a NUL in it");
	return 0;
}

static int walk_message(struct walk *w, const uint8_t *data, size_t len)
{
	struct pb_reader reader = pb_reader(data, len);
	struct walk below = { .above = w, .total = w->total, .depth = w->depth + 1 };
	struct pb_field f;
	int r;

	for (;;) {
		w->field = NULL;
		r = pb_next(&reader, &f);
		if (r == 0)
			return 0;
		if (r < 0)
			return walk_refuse(w, ERROR_INVALID,
					   "not a protobuf message, or cut short");
		w->field = protobuf_c_message_descriptor_get_field(w->type, f.number);
		r = walk_count(w);
		if (r < 0)
			return r;
		if (!w->field)
			continue;
		if (w->field->type != PROTOBUF_C_TYPE_MESSAGE || f.wire != PB_BYTES) {
			r = walk_number_or_string(w, &f);
			if (r < 0)
				return r;
			continue;
		}
		r = walk_once(w);
		if (r < 0)
			return r;
		if (below.depth > WALK_DEPTH_MAX)
			return error_refuse(w->total->err, ERROR_INVALID,
					    "messages nested more than %d deep", WALK_DEPTH_MAX);
		below.type = w->field->descriptor;
		below.seen = 0;
		r = walk_message(&below, f.data, f.len);
		if (r < 0)
			return r;
	}
}

int walk_check(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
	       struct error *err)
{
	struct walk_total total = { .err = err };
	struct walk w = { .type = type, .total = &total, .depth = 1 };

	return walk_message(&w, data, len);
}

ProtobufCMessage *walk_decode(const ProtobufCMessageDescriptor *type, const uint8_t *data,
			      size_t len, ProtobufCAllocator *allocator, struct error *err)
{
	static const uint8_t nothing[1];
	ProtobufCMessage *message;

	if (walk_check(type, data, len, err) < 0)
		return NULL;
	message = protobuf_c_message_unpack(type, allocator, len, data ? data : nothing);
	if (!message)
		(void)error_refuse(err, ERROR_EXHAUSTED,
				   "a %s of %zu bytes takes too much memory once decoded",
				   type->short_name, len);
	return message;
}
