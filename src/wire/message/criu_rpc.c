/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/criu_rpc.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

enum wire_kind {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

/* ---- requests ---- */

static int put_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	do {
		bytes[n] = (uint8_t)(v & 0x7f) | (v > 0x7f ? 0x80 : 0);
		v >>= 7;
		n++;
	} while (v > 0);
	return buf_add(b, bytes, n);
}

static int put_number(struct buf *b, unsigned field, uint64_t v)
{
	int r = put_varint(b, (uint64_t)field << 3 | WIRE_VARINT);

	return r < 0 ? r : put_varint(b, v);
}

static int put_bytes(struct buf *b, unsigned field, const void *data, size_t len)
{
	int r = put_varint(b, (uint64_t)field << 3 | WIRE_BYTES);

	if (r == 0)
		r = put_varint(b, len);
	return r < 0 ? r : buf_add(b, data, len);
}

static int put_text(struct buf *b, unsigned field, const char *text)
{
	return put_bytes(b, field, text, strlen(text));
}

static int put_message(struct buf *b, unsigned field, const struct buf *inner)
{
	return put_bytes(b, field, buf_data(inner), inner->len);
}

/* Two texts as a message of its own. */
static int put_pair(struct buf *b, unsigned field, const struct criu_pair *pair)
{
	_cleanup_(buf_done) struct buf inner = BUF_INIT;
	int r = put_text(&inner, 1, pair->key);

	if (r == 0)
		r = put_text(&inner, 2, pair->value);
	return r < 0 ? r : put_message(b, field, &inner);
}

static int put_descriptor(struct buf *b, unsigned field, const struct criu_descriptor *d)
{
	_cleanup_(buf_done) struct buf inner = BUF_INIT;
	int r = put_text(&inner, 1, d->key);

	if (r == 0)
		r = put_number(&inner, 2, (uint64_t)d->fd);
	return r < 0 ? r : put_message(b, field, &inner);
}

/* The root of all controllers: without the name of one. */
static int put_group_root(struct buf *b, unsigned field, const char *path)
{
	_cleanup_(buf_done) struct buf inner = BUF_INIT;
	int r = put_text(&inner, 2, path);

	return r < 0 ? r : put_message(b, field, &inner);
}

#define AT(member) offsetof(struct criu_options, member)

static const struct {
	unsigned field;
	size_t offset;
} option_flags[] = {
	{ 3, AT(leave_running) },   { 4, AT(ext_unix_sk) }, { 5, AT(tcp_established) },
	{ 6, AT(evasive_devices) }, { 7, AT(shell_job) },   { 8, AT(file_locks) },
	{ 12, AT(notify_scripts) }, { 15, AT(track_mem) },  { 16, AT(auto_dedup) },
	{ 24, AT(manage_groups) },  { 26, AT(sibling) },    { 50, AT(orphan_terminal) },
};

static const struct {
	unsigned field;
	size_t offset;
} option_texts[] = {
	{ 10, AT(log_file) },          { 13, AT(root) },
	{ 14, AT(parent_images) },     { 53, AT(lsm_profile) },
	{ 63, AT(lsm_mount_context) },
};

static int put_numbers(struct buf *b, const struct criu_options *o)
{
	int r = put_number(b, 1, (uint64_t)o->images_fd);

	if (r == 0)
		r = put_number(b, 17, (uint64_t)o->work_fd);
	if (r == 0 && o->pid > 0)
		r = put_number(b, 2, (uint64_t)o->pid);
	if (r == 0 && o->log_level > 0)
		r = put_number(b, 9, (uint64_t)o->log_level);
	if (r == 0 && o->manage_groups)
		r = put_number(b, 34, o->groups);
	if (r == 0 && o->empty_ns)
		r = put_number(b, 38, o->empty_ns);
	return r;
}

static int put_lists(struct buf *b, const struct criu_options *o)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < o->n_mounts; i++)
		r = put_pair(b, 23, &o->mounts[i]);
	if (r == 0 && o->group_root)
		r = put_group_root(b, 25, o->group_root);
	for (size_t i = 0; r == 0 && i < o->n_inherited; i++)
		r = put_descriptor(b, 27, &o->inherited[i]);
	for (size_t i = 0; r == 0 && i < o->n_externals; i++)
		r = put_text(b, 37, o->externals[i]);
	for (size_t i = 0; r == 0 && i < o->n_joins; i++)
		r = put_pair(b, 39, &o->joins[i]);
	return r;
}

static int put_options(struct buf *b, const struct criu_options *o)
{
	int r = put_numbers(b, o);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(option_flags); i++)
		if (*(const bool *)((const char *)o + option_flags[i].offset))
			r = put_number(b, option_flags[i].field, 1);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(option_texts); i++) {
		const char *text;

		memcpy(&text, (const char *)o + option_texts[i].offset, sizeof(text));
		if (text)
			r = put_text(b, option_texts[i].field, text);
	}
	return r < 0 ? r : put_lists(b, o);
}

int criu_request_write(struct buf *b, enum criu_type type, const struct criu_options *options,
		       bool mem_track)
{
	_cleanup_(buf_done) struct buf inner = BUF_INIT;
	int r = put_number(b, 1, type);

	if (r == 0 && options)
		r = put_options(&inner, options);
	if (r == 0 && options)
		r = put_message(b, 2, &inner);
	if (r < 0 || !mem_track)
		return r;
	buf_clear(&inner);
	r = put_number(&inner, 1, true);
	return r < 0 ? r : put_message(b, 5, &inner);
}

int criu_notified_write(struct buf *b, bool success)
{
	int r = put_number(b, 1, CRIU_NOTIFY);

	return r < 0 ? r : put_number(b, 3, success);
}

/* ---- answers ---- */

struct reader {
	const uint8_t *at, *end;
};

/* One field: a number, or the bytes of a text or message. */
struct field {
	uint64_t number; /* of the field */
	enum wire_kind kind;
	uint64_t value;
	struct reader bytes;
};

static int take_varint(struct reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (r->at == r->end)
			return -EINVAL;
		byte = *r->at++;
		if (shift == 63 && byte > 1)
			return -EINVAL;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EINVAL;
}

static int take_bytes(struct reader *r, uint64_t len, struct reader *ret)
{
	if (len > (uint64_t)(r->end - r->at))
		return -EINVAL;
	*ret = (struct reader){ .at = r->at, .end = r->at + len };
	r->at += len;
	return 0;
}

/* 1 with a field, 0 at the end, or -EINVAL. */
static int take_field(struct reader *r, struct field *ret)
{
	uint64_t key = 0, len = 0;

	if (r->at == r->end)
		return 0;
	*ret = (struct field){ .number = 0 };
	if (take_varint(r, &key) < 0 || key >> 3 == 0)
		return -EINVAL;
	ret->number = key >> 3;
	ret->kind = key & 7;
	if (ret->kind == WIRE_VARINT)
		return take_varint(r, &ret->value) < 0 ? -EINVAL : 1;
	if (ret->kind == WIRE_BYTES && take_varint(r, &len) < 0)
		return -EINVAL;
	if (ret->kind != WIRE_BYTES && ret->kind != WIRE_FIXED32 && ret->kind != WIRE_FIXED64)
		return -EINVAL;
	if (ret->kind != WIRE_BYTES)
		len = ret->kind == WIRE_FIXED32 ? 4 : 8;
	return take_bytes(r, len, &ret->bytes) < 0 ? -EINVAL : 1;
}

/* What fields mean, one function for each message. */
typedef int (*take_fn)(void *to, const struct field *f, struct arena *arena);

static int take_message(void *to, struct reader bytes, take_fn take, struct arena *arena)
{
	struct field f;
	int r;

	for (;;) {
		r = take_field(&bytes, &f);
		if (r <= 0)
			return r;
		r = take(to, &f, arena);
		if (r < 0)
			return r;
	}
}

static int take_text(const char **to, const struct field *f, struct arena *arena)
{
	size_t len = (size_t)(f->bytes.end - f->bytes.at);

	if (f->kind != WIRE_BYTES || memchr(f->bytes.at, 0, len))
		return -EINVAL;
	*to = arena_strndup(arena, (const char *)f->bytes.at, len);
	return *to ? 0 : -ENOMEM;
}

static int take_pid(pid_t *to, const struct field *f)
{
	if (f->kind != WIRE_VARINT || f->value == 0 || f->value > INT32_MAX)
		return -EINVAL;
	*to = (pid_t)f->value;
	return 0;
}

static int take_restore(void *to, const struct field *f, struct arena *arena)
{
	struct criu_answer *a = to;

	(void)arena;
	/* -1 where nothing was restored. */
	if (f->number == 1 && f->kind == WIRE_VARINT && (f->value & 1ULL << 63))
		return 0;
	return f->number == 1 ? take_pid(&a->restored, f) : 0;
}

static int take_notify(void *to, const struct field *f, struct arena *arena)
{
	struct criu_answer *a = to;

	if (f->number == 1)
		return take_text(&a->script, f, arena);
	return f->number == 2 ? take_pid(&a->notified, f) : 0;
}

static int take_features(void *to, const struct field *f, struct arena *arena)
{
	struct criu_answer *a = to;

	(void)arena;
	if (f->number == 1)
		a->mem_track = f->value != 0;
	return f->kind == WIRE_VARINT || f->number != 1 ? 0 : -EINVAL;
}

struct version {
	uint64_t parts[3];
	bool is_git;
};

static int take_version(void *to, const struct field *f, struct arena *arena)
{
	struct version *v = to;

	(void)arena;
	if (f->number == 3)
		v->is_git = true;
	if (f->number == 3 || f->number > 4)
		return 0;
	if (f->kind != WIRE_VARINT || f->value > 99)
		return -EINVAL;
	v->parts[f->number == 4 ? 2 : f->number - 1] = f->value;
	return 0;
}

/* A build between two versions counts as the next one, as criu itself has it. */
static unsigned version_number(const struct version *v)
{
	if (v->is_git)
		return (unsigned)(v->parts[0] * 10000 + (v->parts[1] + 1) * 100);
	return (unsigned)(v->parts[0] * 10000 + v->parts[1] * 100 + v->parts[2]);
}

static int take_number(uint64_t *to, const struct field *f)
{
	*to = f->value;
	return f->kind == WIRE_VARINT ? 0 : -EINVAL;
}

static int take_answer(void *to, const struct field *f, struct arena *arena)
{
	struct criu_answer *a = to;
	struct version v = { .is_git = false };
	uint64_t flag = 0;
	int r;

	switch (f->number) {
	case 1:
		return take_number(&a->type, f);
	case 2:
		r = take_number(&flag, f);
		a->success = flag != 0;
		return r;
	case 4:
		return take_message(a, f->bytes, take_restore, arena);
	case 5:
		return take_message(a, f->bytes, take_notify, arena);
	case 7:
		return take_number(&a->number, f);
	case 8:
		return take_message(a, f->bytes, take_features, arena);
	case 9:
		return take_text(&a->message, f, arena);
	case 10:
		r = take_message(&v, f->bytes, take_version, arena);
		a->version = version_number(&v);
		return r;
	default:
		return 0;
	}
}

int criu_answer_read(struct criu_answer *ret, struct arena *arena, const void *data, size_t len,
		     struct error *err)
{
	const struct reader all = { .at = data, .end = (const uint8_t *)data + len };
	int r;

	*ret = (struct criu_answer){ .type = 0 };
	r = len > 0 ? take_message(ret, all, take_answer, arena) : -EINVAL;
	if (r == -ENOMEM)
		return error_set(err, r, "read what criu says");
	/* A question that it did not understand is answered by one of type 0. */
	if (r < 0 || (ret->type == 0 && ret->success))
		return error_refuse(err, ERROR_INVALID,
				    "criu says something that is none of its messages");
	return 0;
}
