/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/tar_read.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "wire/format/tar_text.h"

/*
 * One state for each kind of bytes that come; each step takes what it can of them. Headers are
 * collected in a block of their own, so that it makes no difference how the bytes are cut.
 */

/* Where the fields of a header are, and how long. */
enum tar_field {
	TAR_NAME,
	TAR_MODE,
	TAR_UID,
	TAR_GID,
	TAR_SIZE,
	TAR_MTIME,
	TAR_CHECKSUM,
	TAR_LINK,
	TAR_MAGIC,
	TAR_PREFIX,
	TAR_REAL,
	TAR_FIELD_COUNT
};

#define TAR_TYPE_AT 156
/* Of GNU's sparse files: in the header, and in the blocks behind it. */
#define TAR_GNU_MAP_AT 386
#define TAR_GNU_MAP_N 4
#define TAR_GNU_MORE_AT 482
#define TAR_GNU_NEXT_N 21
#define TAR_GNU_NEXT_MORE_AT 504
#define TAR_GNU_NUMBER 12

static const struct {
	size_t at, len;
} tar_fields[TAR_FIELD_COUNT] = {
	[TAR_NAME] = { 0, 100 },
	[TAR_MODE] = { 100, 8 },
	[TAR_UID] = { 108, 8 },
	[TAR_GID] = { 116, 8 },
	[TAR_SIZE] = { 124, 12 },
	[TAR_MTIME] = { 136, 12 },
	[TAR_CHECKSUM] = { 148, 8 },
	[TAR_LINK] = { 157, 100 },
	[TAR_MAGIC] = { 257, 6 },
	[TAR_PREFIX] = { 345, 155 },
	[TAR_REAL] = { 483, TAR_GNU_NUMBER },
};

static int tar_refuse(struct error *err, const char *what)
{
	return error_refuse(err, ERROR_INVALID, "the tar archive is broken: %s", what);
}

void tar_read_init(struct tar_read *r, const struct tar_read_ops *ops, void *userdata)
{
	r->ops = ops;
	r->userdata = userdata;
	r->state = TAR_READ_HEADER;
	r->begun = false;
	r->n_zeroes = 0;
	r->n_block = r->n_meta = r->n_map = 0;
	r->left = r->pad = 0;
	r->pax = (struct tar_pax){ .size = 0 };
	r->path[0] = r->target[0] = '\0';
}

/* ---- numbers ---- */

static int tar_field_number(const struct tar_read *r, enum tar_field field, uint64_t *ret,
			    bool *ret_negative)
{
	return tar_number(r->block + tar_fields[field].at, tar_fields[field].len, ret,
			  ret_negative);
}

/* ---- paths ---- */

static int tar_set_clean(const char *from, char ret[TREE_PATH_MAX], struct error *err)
{
	int r = tar_clean(from, ret);

	if (r == -EINVAL)
		return error_refuse(err, ERROR_INVALID,
				    "the tar archive has a path with \"..\", which could lead out "
				    "of the directory: %.200s",
				    from);
	return r < 0 ? tar_refuse(err, "a path is too long") : 0;
}

static int tar_set_text(char ret[TREE_PATH_MAX], const uint8_t *from, size_t len, struct error *err)
{
	if (len >= TREE_PATH_MAX)
		return tar_refuse(err, "a path is too long");
	if (memchr(from, '\0', len))
		return tar_refuse(err, "a path has a NUL in it");
	memcpy(ret, from, len);
	ret[len] = '\0';
	return 0;
}

/* ---- pax headers ---- */

static bool tar_is(const char *key, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(key, name, len) == 0;
}

static int tar_add_extent(struct tar_read *r, uint64_t at, uint64_t len, struct error *err)
{
	if (r->n_map == TAR_EXTENTS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "a sparse file of the tar archive has more than %d extents",
				    TAR_EXTENTS_MAX);
	r->map[r->n_map++] = (struct tree_extent){ .at = at, .len = len };
	return 0;
}

/* "at,len,at,len,…" */
static int tar_pax_map(struct tar_read *r, const char *value, size_t len, struct error *err)
{
	uint64_t numbers[2];
	unsigned n = 0;

	r->n_map = 0;
	for (size_t at = 0; at < len;) {
		const char *comma = memchr(value + at, ',', len - at);
		size_t end = comma ? (size_t)(comma - value) : len;
		int code = 0;

		if (tar_decimal(value + at, end - at, &numbers[n]) < 0)
			return tar_refuse(err, "the map of a sparse file");
		if (++n == 2) {
			code = tar_add_extent(r, numbers[0], numbers[1], err);
			n = 0;
		}
		if (code < 0)
			return code;
		at = end + 1;
	}
	r->pax.sparse = true;
	return n ? tar_refuse(err, "the map of a sparse file") : 0;
}

/* The pairs of the oldest form, each number in a record of its own. */
static int tar_pax_pair(struct tar_read *r, bool length, const char *value, size_t len,
			struct error *err)
{
	uint64_t v;

	if (tar_decimal(value, len, &v) < 0)
		return tar_refuse(err, "the map of a sparse file");
	r->pax.sparse = true;
	if (!length)
		return tar_add_extent(r, v, 0, err);
	if (r->n_map == 0)
		return tar_refuse(err, "the map of a sparse file");
	r->map[r->n_map - 1].len = v;
	return 0;
}

static int tar_pax_text(struct tar_read *r, const char *key, size_t n_key, const char *value,
			size_t len, struct error *err)
{
	if (tar_is(key, n_key, "GNU.sparse.name")) {
		r->pax.has_name = true;
		return tar_set_text(r->path, (const uint8_t *)value, len, err);
	}
	if (tar_is(key, n_key, "path")) {
		if (r->pax.has_name)
			return 0;
		r->pax.has_path = true;
		return tar_set_text(r->path, (const uint8_t *)value, len, err);
	}
	r->pax.has_target = true;
	return tar_set_text(r->target, (const uint8_t *)value, len, err);
}

static int tar_pax_number(struct tar_read *r, const char *key, size_t n_key, const char *value,
			  size_t len, struct error *err)
{
	struct tar_pax *p = &r->pax;
	const struct {
		const char *key;
		uint64_t *to;
		bool *has;
	} table[] = {
		{ "size", &p->size, &p->has_size },
		{ "uid", &p->uid, &p->has_uid },
		{ "gid", &p->gid, &p->has_gid },
		{ "GNU.sparse.realsize", &p->real, &p->has_real },
		{ "GNU.sparse.size", &p->real, &p->has_real },
		{ "GNU.sparse.major", &p->major, &p->sparse },
		{ "GNU.sparse.minor", &p->minor, &p->sparse },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!tar_is(key, n_key, table[i].key))
			continue;
		*table[i].has = true;
		return tar_decimal(value, len, table[i].to) < 0
			       ? tar_refuse(err, "a number of a pax header")
			       : 0;
	}
	return 0;
}

static int tar_pax_record(struct tar_read *r, const char *key, size_t n_key, const char *value,
			  size_t len, struct error *err)
{
	if (tar_is(key, n_key, "path") || tar_is(key, n_key, "linkpath") ||
	    tar_is(key, n_key, "GNU.sparse.name"))
		return tar_pax_text(r, key, n_key, value, len, err);
	if (tar_is(key, n_key, "mtime")) {
		r->pax.has_mtime = true;
		return tar_time(value, len, &r->pax.mtime) < 0
			       ? tar_refuse(err, "a time of a pax header")
			       : 0;
	}
	if (tar_is(key, n_key, "GNU.sparse.map"))
		return tar_pax_map(r, value, len, err);
	if (tar_is(key, n_key, "GNU.sparse.offset") || tar_is(key, n_key, "GNU.sparse.numbytes"))
		return tar_pax_pair(r, tar_is(key, n_key, "GNU.sparse.numbytes"), value, len, err);
	return tar_pax_number(r, key, n_key, value, len, err);
}

/* "LENGTH KEY=VALUE\n", the length being that of the whole record. */
static int tar_pax(struct tar_read *r, struct error *err)
{
	const char *text = (const char *)r->meta;
	size_t at = 0;
	int code = 0;

	while (code == 0 && at < r->n_meta) {
		const char *blank = memchr(text + at, ' ', r->n_meta - at);
		const char *equals, *key;
		uint64_t len;

		if (!blank || tar_decimal(text + at, (size_t)(blank - text) - at, &len) < 0 ||
		    len > r->n_meta - at || text + at + len < blank + 3 ||
		    text[at + len - 1] != '\n')
			return tar_refuse(err, "a pax header");
		key = blank + 1;
		equals = memchr(key, '=', (size_t)(text + at + len - 1 - key));
		if (!equals)
			return tar_refuse(err, "a pax header");
		code = tar_pax_record(r, key, (size_t)(equals - key), equals + 1,
				      (size_t)(text + at + len - 1 - (equals + 1)), err);
		at += len;
	}
	return code;
}

static int tar_meta(struct tar_read *r, struct error *err)
{
	size_t len = strnlen((const char *)r->meta, r->n_meta);

	if (r->kind == 'g')
		return 0;
	if (r->kind == 'x')
		return tar_pax(r, err);
	if (r->kind == 'L')
		r->pax.has_path = true;
	else
		r->pax.has_target = true;
	return tar_set_text(r->kind == 'L' ? r->path : r->target, r->meta, len, err);
}

/* ---- headers ---- */

static int tar_check_sum(const struct tar_read *r)
{
	const size_t begin = tar_fields[TAR_CHECKSUM].at;
	const size_t end = begin + tar_fields[TAR_CHECKSUM].len;
	uint64_t sum = 0, told;
	int64_t old = 0; /* of programs that took bytes as signed */
	bool negative;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		uint8_t c = i >= begin && i < end ? ' ' : r->block[i];

		sum += c;
		old += (int8_t)c;
	}
	if (tar_field_number(r, TAR_CHECKSUM, &told, &negative) < 0 || negative)
		return -EINVAL;
	return told == sum || (int64_t)told == old ? 0 : -EINVAL;
}

/* The sender of something else should hear what it is. */
static int tar_refuse_stream(const struct tar_read *r, size_t n, struct error *err)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *name, *program;
	} table[] = {
		{ "\x1f\x8b", 2, "gzip", "gunzip" },
		{ "BZh", 3, "bzip2", "bunzip2" },
		{ "\xfd"
		  "7zXZ",
		  5, "xz", "unxz" },
		{ "\x28\xb5\x2f\xfd", 4, "zstd", "unzstd" },
	};

	if (r->begun)
		return tar_refuse(err, "the checksum of a header is wrong");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (n >= table[i].len && memcmp(r->block, table[i].magic, table[i].len) == 0)
			return error_refuse(
				err, ERROR_INVALID,
				"standard input is compressed with %s: put `%s -c |` in "
				"front",
				table[i].name, table[i].program);
	return error_refuse(err, ERROR_INVALID, "standard input is not a tar archive");
}

static void tar_field_text(const struct tar_read *r, enum tar_field field, char *ret)
{
	size_t len = strnlen((const char *)r->block + tar_fields[field].at, tar_fields[field].len);

	memcpy(ret, r->block + tar_fields[field].at, len);
	ret[len] = '\0';
}

/* The name of the header, unless something before it had a longer one. */
static void tar_take_names(struct tar_read *r)
{
	char name[128], prefix[192] = "";
	bool ustar = memcmp(r->block + tar_fields[TAR_MAGIC].at, "ustar\0", 6) == 0;

	if (!r->pax.has_target)
		tar_field_text(r, TAR_LINK, r->target);
	if (r->pax.has_path || r->pax.has_name)
		return;
	tar_field_text(r, TAR_NAME, name);
	/* GNU's own headers have other things in that place. */
	if (ustar)
		tar_field_text(r, TAR_PREFIX, prefix);
	(void)str_printf(r->path, sizeof(r->path), "%s%s%s", prefix, *prefix ? "/" : "", name);
}

static int tar_take_id(const struct tar_read *r, enum tar_field field, bool has, uint64_t pax,
		       uint32_t *ret)
{
	uint64_t v = pax;
	bool negative = false;

	if (!has && tar_field_number(r, field, &v, &negative) < 0)
		return -EINVAL;
	/* The last one means "leave it" to the kernel. */
	if (negative || v >= UINT32_MAX)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

static int tar_take_numbers(struct tar_read *r, struct error *err)
{
	struct tree_entry *e = &r->entry;
	uint64_t mode, seconds;
	uint32_t uid, gid;
	bool negative;

	if (tar_field_number(r, TAR_MODE, &mode, &negative) < 0)
		return tar_refuse(err, "the mode of a header");
	if (tar_take_id(r, TAR_UID, r->pax.has_uid, r->pax.uid, &uid) < 0 ||
	    tar_take_id(r, TAR_GID, r->pax.has_gid, r->pax.gid, &gid) < 0)
		return tar_refuse(err, "the owner of a header");
	if (r->pax.has_size) {
		e->size = r->pax.size;
		negative = false;
	} else if (tar_field_number(r, TAR_SIZE, &e->size, &negative) < 0) {
		return tar_refuse(err, "the size of a header");
	}
	if (negative || e->size > INT64_MAX)
		return tar_refuse(err, "the size of a header");
	if (tar_field_number(r, TAR_MTIME, &seconds, &negative) < 0)
		return tar_refuse(err, "the time of a header");
	e->mode = (mode_t)(mode & 07777);
	e->uid = uid;
	e->gid = gid;
	e->mtime = seconds < INT64_MAX / NSEC_PER_SEC ? seconds * NSEC_PER_SEC : 0;
	if (r->pax.has_mtime)
		e->mtime = r->pax.mtime;
	return 0;
}

static const struct tar_kind {
	char letter;
	enum tree_type type;
	bool data; /* as many bytes follow as its size says, which else means nothing */
	const char *reason;
} tar_kinds[] = {
	{ '0', TREE_FILE, true, NULL },
	{ '\0', TREE_FILE, true, NULL },
	{ '7', TREE_FILE, true, NULL },
	{ 'S', TREE_FILE, true, NULL },
	{ '1', TREE_HARD_LINK, false, NULL },
	{ '2', TREE_LINK, false, NULL },
	{ '3', TREE_OTHER, false, "it is a device" },
	{ '4', TREE_OTHER, false, "it is a device" },
	{ '5', TREE_DIRECTORY, false, NULL },
	{ 'D', TREE_DIRECTORY, true, NULL },
	{ '6', TREE_FIFO, false, NULL },
	{ 'V', TREE_OTHER, false, "it is the name of the archive" },
	{ 'M', TREE_OTHER, true, "it is a part of a file that began in another archive" },
};

static const struct tar_kind *tar_kind_of(char letter)
{
	static const struct tar_kind unknown = { '?', TREE_OTHER, true,
						 "it is of an unknown kind" };

	for (size_t i = 0; i < ARRAY_SIZE(tar_kinds); i++)
		if (tar_kinds[i].letter == letter)
			return &tar_kinds[i];
	return &unknown;
}

/* ---- entries ---- */

static uint64_t tar_padding(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

/* In order, apart from each other, within the file, and as much as there are data. */
static int tar_check_map(const struct tar_read *r, uint64_t size, uint64_t n_data,
			 struct error *err)
{
	uint64_t end = 0, sum = 0;

	if (size > INT64_MAX)
		return tar_refuse(err, "the size of a sparse file");
	for (size_t i = 0; i < r->n_map; i++) {
		const struct tree_extent *e = &r->map[i];

		if (e->at < end || e->at > size || e->len > size - e->at)
			return tar_refuse(err, "the extents of a sparse file overlap, are not in "
					       "order or lie past its end");
		end = e->at + e->len;
		sum += e->len;
	}
	return sum == n_data ? 0
			     : tar_refuse(err, "the extents of a sparse file do not have as "
					       "many bytes as it");
}

/* All that is to know of the entry is known: r->left bytes of it follow. */
static int tar_tell(struct tar_read *r, struct error *err)
{
	struct tree_entry *e = &r->entry;
	bool sparse = e->map;
	int code = 0;

	if (sparse)
		code = tar_check_map(r, e->size, r->left, err);
	if (code == 0)
		code = tar_set_clean(r->path, r->clean_path, err);
	if (code == 0 && e->type == TREE_HARD_LINK)
		code = tar_set_clean(r->target, r->clean_target, err);
	if (code < 0)
		return code;
	e->path = r->clean_path;
	e->target = e->type == TREE_HARD_LINK ? r->clean_target
		    : e->type == TREE_LINK    ? r->target
					      : NULL;
	e->n_map = sparse ? r->n_map : 0;
	r->state = e->type == TREE_FILE ? TAR_READ_DATA : TAR_READ_SKIP;
	if (e->type != TREE_FILE)
		e->size = 0;
	return r->ops->entry(r->userdata, e, err);
}

static int tar_gnu_extents(struct tar_read *r, size_t at, unsigned n, struct error *err)
{
	for (unsigned i = 0; i < n; i++, at += 2 * (size_t)TAR_GNU_NUMBER) {
		uint64_t offset, len;
		bool a, b;
		int code;

		if (!r->block[at])
			break;
		if (tar_number(r->block + at, TAR_GNU_NUMBER, &offset, &a) < 0 ||
		    tar_number(r->block + at + TAR_GNU_NUMBER, TAR_GNU_NUMBER, &len, &b) < 0 || a ||
		    b)
			return tar_refuse(err, "the map of a sparse file");
		code = tar_add_extent(r, offset, len, err);
		if (code < 0)
			return code;
	}
	return 0;
}

static int tar_begin_gnu_sparse(struct tar_read *r, struct error *err)
{
	uint64_t real;
	bool negative;
	int code;

	if (tar_field_number(r, TAR_REAL, &real, &negative) < 0 || negative)
		return tar_refuse(err, "the size of a sparse file");
	r->n_map = 0;
	r->entry.size = real;
	r->entry.map = r->map;
	code = tar_gnu_extents(r, TAR_GNU_MAP_AT, TAR_GNU_MAP_N, err);
	if (code < 0)
		return code;
	if (!r->block[TAR_GNU_MORE_AT])
		return tar_tell(r, err);
	r->state = TAR_READ_EXTENTS;
	return 0;
}

static int tar_begin_pax_sparse(struct tar_read *r, struct error *err)
{
	if (!r->pax.has_real)
		return tar_refuse(err, "a sparse file without a size");
	r->entry.size = r->pax.real;
	r->entry.map = r->map;
	if (r->pax.major == 0)
		return tar_tell(r, err);
	if (r->pax.major != 1 || r->pax.minor != 0)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the tar archive has sparse files of an unknown version");
	r->n_map = 0;
	r->n_wanted = UINT64_MAX;
	r->number = 0;
	r->in_number = r->at_length = false;
	r->state = TAR_READ_MAP;
	return 0;
}

static int tar_begin_entry(struct tar_read *r, char letter, struct error *err)
{
	const struct tar_kind *kind = tar_kind_of(letter);
	size_t len;
	int code;

	r->entry = (struct tree_entry){ .type = kind->type, .reason = kind->reason };
	tar_take_names(r);
	code = tar_take_numbers(r, err);
	if (code < 0)
		return code;
	/* Before there was a letter for directories. */
	len = strlen(r->path);
	if (r->entry.type == TREE_FILE && len > 0 && r->path[len - 1] == '/')
		r->entry.type = TREE_DIRECTORY;
	/* Only pax lets a hard link have data, and then it tells their size itself. */
	r->left = kind->data || (letter == '1' && r->pax.has_size) ? r->entry.size : 0;
	r->pad = tar_padding(r->left);
	if (r->entry.type == TREE_FILE && letter == 'S')
		return tar_begin_gnu_sparse(r, err);
	if (r->entry.type == TREE_FILE && r->pax.sparse)
		return tar_begin_pax_sparse(r, err);
	return tar_tell(r, err);
}

static int tar_begin_meta(struct tar_read *r, char letter, struct error *err)
{
	uint64_t size;
	bool negative;

	if (tar_field_number(r, TAR_SIZE, &size, &negative) < 0 || negative)
		return tar_refuse(err, "the size of a header");
	if (size > TAR_META_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "a header of the tar archive is longer than %zu bytes",
				    TAR_META_MAX);
	r->kind = letter == 'X' ? 'x' : letter;
	r->n_meta = 0;
	r->left = size;
	r->pad = tar_padding(size);
	r->state = TAR_READ_META;
	return 0;
}

static int tar_header(struct tar_read *r, struct error *err)
{
	static const uint8_t zeroes[TAR_BLOCK];
	char letter = (char)r->block[TAR_TYPE_AT];

	if (memcmp(r->block, zeroes, TAR_BLOCK) == 0) {
		r->begun = true;
		if (++r->n_zeroes == 2)
			r->state = TAR_READ_END;
		return 0;
	}
	r->n_zeroes = 0;
	if (tar_check_sum(r) < 0)
		return tar_refuse_stream(r, TAR_BLOCK, err);
	r->begun = true;
	if (letter && strchr("xXgLK", letter))
		return tar_begin_meta(r, letter, err);
	return tar_begin_entry(r, letter, err);
}

/* ---- bytes ---- */

/* The map in front of the data: lines of decimal numbers, to the end of a block. */
static int tar_map_byte(struct tar_read *r, uint8_t c, struct error *err)
{
	if (r->n_wanted == 0)
		return 0;
	if (c >= '0' && c <= '9') {
		if (r->number > (UINT64_MAX - 9) / 10)
			return tar_refuse(err, "the map of a sparse file");
		r->number = r->number * 10 + (uint64_t)(c - '0');
		r->in_number = true;
		return 0;
	}
	if (c != '\n' || !r->in_number)
		return tar_refuse(err, "the map of a sparse file");
	r->in_number = false;
	if (r->n_wanted == UINT64_MAX) {
		if (r->number > TAR_EXTENTS_MAX)
			return error_refuse(
				err, ERROR_EXHAUSTED,
				"a sparse file of the tar archive has more than %d extents",
				TAR_EXTENTS_MAX);
		r->n_wanted = r->number;
	} else if (!r->at_length) {
		r->map[r->n_map].at = r->number;
		r->at_length = true;
	} else {
		r->map[r->n_map++].len = r->number;
		r->at_length = false;
		r->n_wanted--;
	}
	r->number = 0;
	return 0;
}

static int tar_map_block(struct tar_read *r, struct error *err)
{
	int code = 0;

	if (r->left < TAR_BLOCK)
		return tar_refuse(err, "the map of a sparse file");
	r->left -= TAR_BLOCK;
	for (size_t i = 0; code == 0 && i < TAR_BLOCK; i++)
		code = tar_map_byte(r, r->block[i], err);
	return code == 0 && r->n_wanted == 0 ? tar_tell(r, err) : code;
}

static int tar_extents_block(struct tar_read *r, struct error *err)
{
	int code = tar_gnu_extents(r, 0, TAR_GNU_NEXT_N, err);

	if (code < 0 || r->block[TAR_GNU_NEXT_MORE_AT])
		return code;
	return tar_tell(r, err);
}

/* A whole block is there. */
static int tar_block(struct tar_read *r, struct error *err)
{
	r->n_block = 0;
	if (r->state == TAR_READ_MAP)
		return tar_map_block(r, err);
	return r->state == TAR_READ_EXTENTS ? tar_extents_block(r, err) : tar_header(r, err);
}

/* What the state wants of so many bytes; how many it took. */
static int tar_take(struct tar_read *r, const uint8_t *data, size_t len, size_t *ret_n,
		    struct error *err)
{
	size_t n = (size_t)MIN(r->left, (uint64_t)len);

	*ret_n = n;
	r->left -= n;
	if (r->state == TAR_READ_DATA)
		return n ? r->ops->data(r->userdata, data, n, err) : 0;
	if (r->state == TAR_READ_META) {
		memcpy(r->meta + r->n_meta, data, n);
		r->n_meta += n;
	}
	return 0;
}

/* The end of what the state reads: of a header, or of an entry, of which nothing is kept. */
static int tar_took(struct tar_read *r, struct error *err)
{
	int code = 0;

	if (r->state == TAR_READ_META) {
		code = tar_meta(r, err);
	} else if (r->state == TAR_READ_DATA || r->state == TAR_READ_SKIP) {
		r->pax = (struct tar_pax){ .size = 0 };
		r->n_map = 0;
		r->path[0] = r->target[0] = '\0';
	}
	if (r->state == TAR_READ_PAD) {
		r->state = TAR_READ_HEADER;
	} else {
		r->state = TAR_READ_PAD;
		r->left = r->pad;
	}
	return code;
}

static bool tar_in_block(const struct tar_read *r)
{
	return r->state == TAR_READ_HEADER || r->state == TAR_READ_MAP ||
	       r->state == TAR_READ_EXTENTS;
}

int tar_read_feed(struct tar_read *r, const uint8_t *data, size_t len, struct error *err)
{
	int code = 0;

	while (code == 0 && r->state != TAR_READ_END) {
		size_t n;

		if (!tar_in_block(r)) {
			if (r->left == 0) {
				code = tar_took(r, err);
				continue;
			}
			if (len == 0)
				break;
			code = tar_take(r, data, len, &n, err);
		} else {
			if (len == 0)
				break;
			n = MIN(TAR_BLOCK - r->n_block, len);
			memcpy(r->block + r->n_block, data, n);
			r->n_block += n;
			if (r->n_block == TAR_BLOCK)
				code = tar_block(r, err);
		}
		data += n;
		len -= n;
	}
	return code;
}

int tar_read_finish(struct tar_read *r, struct error *err)
{
	if (r->state == TAR_READ_END || r->state == TAR_READ_PAD)
		return 0;
	if (r->state == TAR_READ_HEADER && r->n_block == 0 && r->begun)
		return 0;
	if (!r->begun && r->n_block > 0)
		return tar_refuse_stream(r, r->n_block, err);
	if (!r->begun)
		return error_refuse(err, ERROR_INVALID,
				    "standard input is empty, and not a tar archive");
	return tar_refuse(err, "it ends too early");
}
