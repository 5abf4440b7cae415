/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/tarscan.h"

#include <assert.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/* Where the fields of a header are (POSIX.1-1988 ustar, and GNU's sparse header). */
#define AT_NAME 0
#define LEN_NAME 100
#define AT_SIZE 124
#define AT_SUM 148
#define AT_TYPE 156
#define AT_MAP 386
#define AT_MAP_GOES_ON 482
#define AT_EXTENSION_GOES_ON 504
#define LEN_NUMBER 12
#define LEN_SUM 8
#define MAP_PIECES 4
#define EXTENSION_PIECES 21

#define TARSCAN_VALUE_MAX (UINT64_MAX / 2)

/* ---- numbers ---- */

static void number_add(struct tarscan_number *n, uint8_t digit)
{
	if (digit < '0' || digit > '9' || n->value > TARSCAN_VALUE_MAX / 10 - 1) {
		n->bad = true;
		return;
	}
	n->value = n->value * 10 + (uint64_t)(digit - '0');
	n->any = true;
}

static bool number_is_good(const struct tarscan_number *n)
{
	return n->any && !n->bad;
}

/* A field in octal, or in base 256 where its first bit is set; false where it is neither. */
static bool field_read(const uint8_t *field, size_t len, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;

	if (field[0] & 0x80) {
		value = field[0] & 0x3f;
		for (i = 1; i < len; i++) {
			if (value > TARSCAN_VALUE_MAX >> 8)
				return false;
			value = value << 8 | field[i];
		}
		*ret = value;
		return !(field[0] & 0x40);
	}
	while (i < len && (field[i] == ' ' || field[i] == '\t'))
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(field[i] - '0');
	*ret = value;
	return i == len || field[i] == ' ' || field[i] == '\0';
}

static bool sum_is_right(const uint8_t *block)
{
	int64_t plain = 0, with_sign = 0;
	uint64_t said;

	for (size_t i = 0; i < TARSCAN_BLOCK; i++) {
		uint8_t byte = i >= AT_SUM && i < AT_SUM + LEN_SUM ? ' ' : block[i];

		plain += byte;
		with_sign += (int8_t)byte;
	}
	return field_read(block + AT_SUM, LEN_SUM, &said) &&
	       ((int64_t)said == plain || (int64_t)said == with_sign);
}

/* ---- sparse maps ---- */

static int map_fail(const struct tarscan *t, const char *what, struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "entry \"%.100s\": the pieces of its sparse map %s",
			    t->name, what);
}

static int map_fail_long(const struct tarscan *t, struct error *err)
{
	return error_refuse(err, ERROR_EXHAUSTED,
			    "entry \"%.100s\": its sparse map has more than %d pieces", t->name,
			    TARSCAN_SPARSE_MAX);
}

static int map_add(struct tarscan *t, uint64_t offset, uint64_t len, struct error *err)
{
	struct tarscan_map *m = &t->map;

	if (++m->n > TARSCAN_SPARSE_MAX)
		return map_fail_long(t, err);
	if (m->n > 1 && offset < m->begin)
		return map_fail(t, "are not sorted", err);
	if (m->n > 1 && offset < m->end)
		return map_fail(t, "overlap", err);
	if (offset > TARSCAN_VALUE_MAX || len > TARSCAN_VALUE_MAX - offset)
		return map_fail(t, "are out of range", err);
	m->begin = offset;
	m->end = offset + len;
	return 0;
}

/* Offsets and lengths come in turn. */
static int map_add_number(struct tarscan *t, uint64_t number, struct error *err)
{
	struct tarscan_map *m = &t->map;

	m->has_offset = !m->has_offset;
	if (!m->has_offset)
		return map_add(t, m->offset, number, err);
	m->offset = number;
	return 0;
}

/* The pieces of a GNU header or of a block behind it; an empty field ends them. */
static int map_add_fields(struct tarscan *t, const uint8_t *at, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++, at += (size_t)2 * LEN_NUMBER) {
		uint64_t offset, len;
		int r;

		if (at[0] == '\0')
			return 0;
		if (!field_read(at, LEN_NUMBER, &offset) ||
		    !field_read(at + LEN_NUMBER, LEN_NUMBER, &len))
			return map_fail(t, "are no numbers", err);
		r = map_add(t, offset, len, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- from one thing to the next ---- */

static void scan_forget_records(struct tarscan *t)
{
	t->has_size = t->map_in_data = t->has_n_map = false;
	t->map = (struct tarscan_map){ .n = 0 };
}

static void scan_end_body(struct tarscan *t)
{
	t->state = t->n_padding ? TARSCAN_PADDING : TARSCAN_HEADER;
	if (t->is_member)
		scan_forget_records(t);
}

/* state: what the body is, where there is one. */
static void scan_begin_body(struct tarscan *t, enum tarscan_state state)
{
	t->state = state;
	t->n_padding = (unsigned)(-t->n_body % TARSCAN_BLOCK);
	t->record = (struct tarscan_record){ .n_read = 0 };
	t->number = (struct tarscan_number){ .value = 0 };
	if (!t->n_body && state != TARSCAN_EXTENSION)
		scan_end_body(t);
}

/* ---- headers ---- */

/* A member with data, or without any whatever its size says. */
static int scan_member(struct tarscan *t, uint8_t type, struct error *err)
{
	bool extends = type == 'S' && t->block[AT_MAP_GOES_ON];
	int r;

	t->is_member = true;
	if (t->has_size)
		t->n_body = t->size;
	if (type >= '2' && type <= '6')
		t->n_body = 0;
	/* Whether a hard link has data is guessed by libarchive. */
	if (type == '1' && t->n_body) {
		t->state = TARSCAN_OFF;
		return 0;
	}
	r = type == 'S' ? map_add_fields(t, t->block + AT_MAP, MAP_PIECES, err) : 0;
	if (r == 0)
		scan_begin_body(t, extends          ? TARSCAN_EXTENSION
				   : t->map_in_data ? TARSCAN_MAP
						    : TARSCAN_DATA);
	return r;
}

static int scan_header(struct tarscan *t, struct error *err)
{
	static const uint8_t zeroes[TARSCAN_BLOCK];
	uint8_t type = t->block[AT_TYPE];

	if (memcmp(t->block, zeroes, TARSCAN_BLOCK) == 0 || !sum_is_right(t->block) ||
	    !field_read(t->block + AT_SIZE, LEN_NUMBER, &t->n_body)) {
		t->state = TARSCAN_OFF;
		return 0;
	}
	t->is_member = false;
	if (type == 'x' || type == 'X') {
		scan_forget_records(t);
		scan_begin_body(t, TARSCAN_RECORDS);
	} else if (memchr("gLKVN", type, 5)) {
		scan_begin_body(t, TARSCAN_DATA);
	} else {
		memcpy(t->name, t->block + AT_NAME, LEN_NAME);
		return scan_member(t, type, err);
	}
	return 0;
}

static int scan_extension(struct tarscan *t, struct error *err)
{
	int r = map_add_fields(t, t->block, EXTENSION_PIECES, err);

	if (!t->block[AT_EXTENSION_GOES_ON])
		scan_begin_body(t, TARSCAN_DATA);
	return r;
}

static int scan_block(struct tarscan *t, const uint8_t *data, size_t len, size_t *ret_used,
		      struct error *err)
{
	size_t n = MIN(len, TARSCAN_BLOCK - t->n_block);

	memcpy(t->block + t->n_block, data, n);
	t->n_block += n;
	*ret_used = n;
	if (t->n_block < TARSCAN_BLOCK)
		return 0;
	t->n_block = 0;
	return (t->state == TARSCAN_HEADER ? scan_header : scan_extension)(t, err);
}

/* ---- the records of a PAX header ---- */

static int record_size(struct tarscan *t, uint64_t value, struct error *err)
{
	(void)err;
	t->has_size = true;
	t->size = value;
	return 0;
}

static int record_major(struct tarscan *t, uint64_t value, struct error *err)
{
	(void)err;
	t->map_in_data = value == 1;
	return 0;
}

/* Keys whose values are numbers; of a list, each of them. */
static const struct {
	const char *key;
	int (*take)(struct tarscan *t, uint64_t value, struct error *err);
} record_keys[] = {
	{ "size", record_size },
	{ "GNU.sparse.major", record_major },
	{ "GNU.sparse.offset", map_add_number },
	{ "GNU.sparse.numbytes", map_add_number },
	{ "GNU.sparse.map", map_add_number },
};

static int record_take(struct tarscan *t, struct error *err)
{
	struct tarscan_number n = t->record.value;

	t->record.value = (struct tarscan_number){ .value = 0 };
	if (!number_is_good(&n))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(record_keys); i++)
		if (str_eq(record_keys[i].key, t->record.key))
			return record_keys[i].take(t, n.value, err);
	return 0;
}

static void record_add_key(struct tarscan_record *rec, uint8_t byte)
{
	if (byte == '=') {
		rec->in_key = false;
		rec->in_value = true;
	} else if (rec->key_len < TARSCAN_KEY_MAX - 1) {
		rec->key[rec->key_len++] = (char)byte;
	} else {
		/* Longer than those that are looked for. */
		rec->key[0] = '\0';
	}
}

static int record_add(struct tarscan *t, uint8_t byte, struct error *err)
{
	struct tarscan_record *rec = &t->record;
	int r = 0;

	rec->n_read++;
	if (rec->in_value && byte != ',' && byte != '\n')
		number_add(&rec->value, byte);
	else if (rec->in_value)
		r = record_take(t, err);
	else if (rec->in_key)
		record_add_key(rec, byte);
	else if (byte == ' ')
		rec->in_key = true;
	else
		number_add(&rec->length, byte);
	/* The length is that of the whole record. */
	if ((rec->in_key || rec->in_value) && rec->n_read >= rec->length.value)
		*rec = (struct tarscan_record){ .n_read = 0 };
	return r;
}

static int scan_records(struct tarscan *t, const uint8_t *data, size_t len, size_t *ret_used,
			struct error *err)
{
	size_t n = (size_t)MIN((uint64_t)len, t->n_body);

	for (size_t i = 0; i < n; i++) {
		int r = record_add(t, data[i], err);

		if (r < 0)
			return r;
	}
	t->n_body -= n;
	*ret_used = n;
	if (!t->n_body)
		scan_end_body(t);
	return 0;
}

/* ---- the data ---- */

/* A line of a PAX 1.0 map: the number of its pieces, then offsets and lengths. */
static int map_add_line(struct tarscan *t, struct error *err)
{
	struct tarscan_number n = t->number;
	int r;

	t->number = (struct tarscan_number){ .value = 0 };
	if (!number_is_good(&n)) {
		t->state = TARSCAN_OFF;
		return 0;
	}
	if (!t->has_n_map) {
		t->has_n_map = true;
		t->n_map = n.value;
		r = n.value > TARSCAN_SPARSE_MAX ? map_fail_long(t, err) : 0;
	} else {
		r = map_add_number(t, n.value, err);
	}
	if (t->map.n == t->n_map)
		t->state = TARSCAN_DATA;
	return r;
}

static int scan_map(struct tarscan *t, const uint8_t *data, size_t len, size_t *ret_used,
		    struct error *err)
{
	size_t n = (size_t)MIN((uint64_t)len, t->n_body), i;
	int r = 0;

	for (i = 0; i < n && r == 0 && t->state == TARSCAN_MAP; i++) {
		if (data[i] == '\n')
			r = map_add_line(t, err);
		else
			number_add(&t->number, data[i]);
	}
	t->n_body -= i;
	*ret_used = i;
	if (!t->n_body && t->state != TARSCAN_OFF)
		scan_end_body(t);
	return r;
}

static int scan_data(struct tarscan *t, const uint8_t *data, size_t len, size_t *ret_used,
		     struct error *err)
{
	(void)data;
	(void)err;
	*ret_used = (size_t)MIN((uint64_t)len, t->n_body);
	t->n_body -= *ret_used;
	if (!t->n_body)
		scan_end_body(t);
	return 0;
}

static int scan_padding(struct tarscan *t, const uint8_t *data, size_t len, size_t *ret_used,
			struct error *err)
{
	(void)data;
	(void)err;
	*ret_used = MIN(len, (size_t)t->n_padding);
	t->n_padding -= (unsigned)*ret_used;
	if (!t->n_padding)
		t->state = TARSCAN_HEADER;
	return 0;
}

static int scan_nothing(struct tarscan *t, const uint8_t *data, size_t len, size_t *ret_used,
			struct error *err)
{
	(void)t;
	(void)data;
	(void)err;
	*ret_used = len;
	return 0;
}

static int (*const scan_steps[])(struct tarscan *t, const uint8_t *data, size_t len,
				 size_t *ret_used, struct error *err) = {
	[TARSCAN_HEADER] = scan_block,    [TARSCAN_EXTENSION] = scan_block,
	[TARSCAN_RECORDS] = scan_records, [TARSCAN_MAP] = scan_map,
	[TARSCAN_DATA] = scan_data,       [TARSCAN_PADDING] = scan_padding,
	[TARSCAN_OFF] = scan_nothing,
};
static_assert(ARRAY_SIZE(scan_steps) == TARSCAN_STATE_COUNT, "a step for each");

int tarscan_feed(struct tarscan *t, const void *data, size_t len, struct error *err)
{
	const uint8_t *at = data;

	while (len) {
		size_t used = 0;
		int r = scan_steps[t->state](t, at, len, &used, err);

		if (r < 0)
			return r;
		at += used;
		len -= used;
	}
	return 0;
}

size_t tarscan_n_missing(const struct tarscan *t)
{
	return t->state == TARSCAN_PADDING && t->is_member ? t->n_padding : 0;
}
