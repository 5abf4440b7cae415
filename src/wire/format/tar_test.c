/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "unit.h"
#include "wire/format/tar_read.h"
#include "wire/format/tar_write.h"

static struct tar_read reader;
static struct buf said; /* what it told, as text */
static int refuse_with; /* by entry(); 0: takes all */

static int on_entry(void *userdata, const struct tree_entry *e, struct error *err)
{
	static const char letters[] = {
		[TREE_FILE] = 'f',      [TREE_DIRECTORY] = 'd', [TREE_LINK] = 'l',
		[TREE_HARD_LINK] = 'h', [TREE_FIFO] = 'p',      [TREE_OTHER] = 'o'
	};
	int r;

	(void)userdata;
	r = buf_addf(&said, "%s%c %s %o %u %u %llu %llu%s%s", said.len ? "\n" : "",
		     letters[e->type], e->path, (unsigned)e->mode, e->uid, e->gid,
		     (unsigned long long)e->mtime, (unsigned long long)e->size,
		     e->target ? " > " : "", e->target ? e->target : "");
	for (size_t i = 0; r == 0 && i < e->n_map; i++)
		r = buf_addf(&said, " [%llu+%llu]", (unsigned long long)e->map[i].at,
			     (unsigned long long)e->map[i].len);
	if (r == 0 && e->type == TREE_FILE)
		r = buf_add_str(&said, " = ");
	CHECK_INT(r, 0);
	return refuse_with ? error_set(err, refuse_with, "no") : 0;
}

static int on_data(void *userdata, const uint8_t *data, size_t len, struct error *err)
{
	(void)userdata;
	(void)err;
	CHECK_INT(buf_add(&said, data, len), 0);
	return 0;
}

/* In pieces of so many bytes; what was told, or the text of the error. */
static char *read_all(const struct buf *b, size_t piece)
{
	static const struct tar_read_ops ops = { .entry = on_entry, .data = on_data };
	struct error err = ERROR_INIT;
	int r = 0;

	tar_read_init(&reader, &ops, NULL);
	for (size_t at = 0; r == 0 && at < b->len; at += piece)
		r = tar_read_feed(&reader, buf_data(b) + at, MIN(piece, b->len - at), &err);
	if (r == 0)
		r = tar_read_finish(&reader, &err);
	if (r < 0) {
		buf_done(&said);
		CHECK_INT(buf_add_str(&said, err.text), 0);
	}
	return buf_take_str(&said);
}

static void is(const struct buf *b, const char *expected)
{
	static const size_t pieces[] = { 1, 7, 511, 512, 513, 1 << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		char *text = read_all(b, pieces[i]);

		CHECK_STR(text ? text : "", expected);
		free(text);
	}
}

static void add(struct buf *b, const struct tree_entry *e, const char *data)
{
	CHECK_INT(tar_write_head(b, e), 0);
	CHECK_INT(tar_write_due(e), strlen(data));
	CHECK_INT(buf_add_str(b, data), 0);
	CHECK_INT(tar_write_pad(b, strlen(data)), 0);
}

static void round_trip(void)
{
	static const struct tree_extent map[] = { { 4096, 3 }, { 1 << 20, 2 } };
	struct buf b = BUF_INIT;
	char name[300], expected[1400];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	name[120] = '/';
	add(&b, &(struct tree_entry){ .type = TREE_DIRECTORY, .path = ".", .mode = 0755 }, "");
	add(&b,
	    &(struct tree_entry){ .type = TREE_FILE,
				  .path = "./a\xff",
				  .mode = 04711,
				  .uid = 7,
				  .gid = 4000000000U,
				  .mtime = 1500000000,
				  .size = 5 },
	    "hello");
	add(&b, &(struct tree_entry){ .type = TREE_LINK, .path = "l", .target = "/x/../y" }, "");
	add(&b, &(struct tree_entry){ .type = TREE_HARD_LINK, .path = "h", .target = "./a\xff" },
	    "");
	add(&b, &(struct tree_entry){ .type = TREE_FILE, .path = name, .size = 1 }, "x");
	add(&b, &(struct tree_entry){ .type = TREE_LINK, .path = "t", .target = name }, "");
	add(&b,
	    &(struct tree_entry){
		    .type = TREE_FILE, .path = "s", .size = 1 << 21, .map = map, .n_map = 2 },
	    "abcde");
	add(&b, &(struct tree_entry){ .type = TREE_FILE, .path = "e", .size = 9, .map = map }, "");
	CHECK_INT(tar_write_end(&b), 0);
	(void)str_printf(expected, sizeof(expected),
			 "d . 755 0 0 0 0\n"
			 "f a\xff 4711 7 4000000000 1500000000 5 = hello\n"
			 "l l 0 0 0 0 0 > /x/../y\n"
			 "h h 0 0 0 0 0 > a\xff\n"
			 "f %s 0 0 0 0 1 = x\n"
			 "l t 0 0 0 0 0 > %s\n"
			 "f s 0 0 0 0 2097152 [4096+3] [1048576+2] [2097152+0] = abcde\n"
			 "f e 0 0 0 0 9 [9+0] = ",
			 name, name);
	is(&b, expected);
	/* Whatever lies behind its end. */
	CHECK_INT(buf_add_str(&b, "more"), 0);
	is(&b, expected);
	buf_done(&b);
}

/* One block, with a right checksum. */
static void add_head(struct buf *b, char kind, const char *name, const char *size,
		     const char *magic)
{
	uint8_t h[TAR_BLOCK] = { 0 };
	unsigned sum = 0;
	char text[8];

	memcpy(h, name, strlen(name));
	memcpy(h + 100, "0000644", 8);
	memcpy(h + 108, "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	memcpy(h + 124, size, strlen(size));
	memcpy(h + 136, "00000000000", 12);
	h[156] = (uint8_t)kind;
	memcpy(h + 257, magic, strlen(magic));
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += h[i];
	(void)str_printf(text, sizeof(text), "%06o", sum & 0777777U);
	memcpy(h + 148, text, 7);
	CHECK_INT(buf_add(b, h, sizeof(h)), 0);
}

static void add_meta(struct buf *b, char kind, const char *text)
{
	char size[16];

	(void)str_printf(size, sizeof(size), "%011zo", strlen(text));
	add_head(b, kind, "meta", size, "ustar");
	CHECK_INT(buf_add_str(b, text), 0);
	CHECK_INT(tar_write_pad(b, strlen(text)), 0);
}

/* What other programs write. */
static void other_forms(void)
{
	struct buf b = BUF_INIT;

	add_meta(&b, 'L', "a/long/name");
	add_meta(&b, 'g', "12 comment=\n");
	add_head(&b, '0', "short", "00000000003", "ustar  ");
	CHECK_INT(buf_add_str(&b, "abc"), 0);
	is(&b, "f a/long/name 644 0 0 0 3 = abc");
	CHECK_INT(tar_write_pad(&b, 3), 0);
	add_head(&b, '0', "old/", "00000000000", "");
	add_head(&b, '3', "/dev/./null", "00000000000", "ustar");
	add_head(&b, '1', "./h", "00000000007", "ustar");
	is(&b, "f a/long/name 644 0 0 0 3 = abc\nd old 644 0 0 0 0\no dev/null 644 0 0 0 0\n"
	       "h h 644 0 0 0 0 > .");
	buf_clear(&b);
	add_meta(&b, 'x',
		 "22 GNU.sparse.major=0\n22 GNU.sparse.minor=1\n26 GNU.sparse.name=d/real\n"
		 "23 GNU.sparse.size=100\n25 GNU.sparse.map=10,2,50,1\n");
	add_head(&b, '0', "fake", "00000000003", "ustar");
	CHECK_INT(buf_add_str(&b, "abc"), 0);
	is(&b, "the tar archive is broken: a pax header");
	buf_clear(&b);
	add_meta(&b, 'x',
		 "22 GNU.sparse.major=0\n22 GNU.sparse.minor=1\n26 GNU.sparse.name=d/real\n"
		 "23 GNU.sparse.size=100\n28 GNU.sparse.map=10,2,50,1\n");
	add_head(&b, '0', "fake", "00000000003", "ustar");
	CHECK_INT(buf_add_str(&b, "abc"), 0);
	is(&b, "f d/real 644 0 0 0 100 [10+2] [50+1] = abc");
	buf_done(&b);
}

static void gnu_sparse(void)
{
	struct buf b = BUF_INIT;
	uint8_t *h;
	unsigned sum = 0;

	add_head(&b, 'S', "sparse", "00000000003", "ustar  ");
	h = (uint8_t *)(uintptr_t)buf_data(&b);
	memcpy(h + 386, "00000001000", 12);
	memcpy(h + 398, "00000000001", 12);
	h[482] = 1;
	memcpy(h + 483, "00000010000", 12);
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += h[i];
	(void)str_printf((char *)h + 148, 8, "%06o", sum & 0777777U);
	CHECK_INT(buf_reserve(&b, TAR_BLOCK, &h), 0);
	memset(h, 0, TAR_BLOCK);
	memcpy(h, "00000002000", 12);
	memcpy(h + 12, "00000000002", 12);
	buf_added(&b, TAR_BLOCK);
	CHECK_INT(buf_add_str(&b, "abc"), 0);
	is(&b, "f sparse 644 0 0 0 4096 [512+1] [1024+2] = abc");
	buf_done(&b);
}

static void refused(void)
{
	static const struct {
		char kind;
		const char *meta, *name, *size, *text;
	} table[] = {
		{ 0, NULL, "../x", "00000000000",
		  "the tar archive has a path with \"..\", which could lead out of the directory: "
		  "../x" },
		{ 0, NULL, "a/../x", "00000000000",
		  "the tar archive has a path with \"..\", which could lead out of the directory: "
		  "a/../x" },
		{ 0, NULL, "x", "00000000007", "the tar archive is broken: it ends too early" },
		{ 0, NULL, "x", "0000000000z", "the tar archive is broken: the size of a header" },
		{ 0, NULL, "x", "\xff\xff", "the tar archive is broken: the size of a header" },
		{ 0, NULL, "x", "77777777777", "the tar archive is broken: it ends too early" },
		{ 'x', "8 path=x\n", "x", "0", "the tar archive is broken: a pax header" },
		{ 'x', "99 path=x\n", "x", "0", "the tar archive is broken: a pax header" },
		{ 'x', "3 \n", "x", "0", "the tar archive is broken: a pax header" },
		{ 'x', "8 pathx\n", "x", "0", "the tar archive is broken: a pax header" },
		{ 'x', "9 size=x\n", "x", "0",
		  "the tar archive is broken: a number of a pax header" },
		{ 'x', "12 uid=-100\n", "x", "0",
		  "the tar archive is broken: a number of a pax header" },
		{ 'x', "18 uid=4294967295\n", "x", "0",
		  "the tar archive is broken: the owner of a header" },
		{ 'x', "24 GNU.sparse.map=1,2,3\n", "x", "0",
		  "the tar archive is broken: the map of a sparse file" },
		{ 'x', "22 GNU.sparse.map=5,1\n", "x", "0",
		  "the tar archive is broken: a sparse file without a size" },
		{ 'x', "22 GNU.sparse.size=10\n26 GNU.sparse.map=5,1,4,1\n", "x", "2",
		  "the tar archive is broken: the extents of a sparse file overlap, are not in "
		  "order or lie past its end" },
		{ 'x', "22 GNU.sparse.size=10\n22 GNU.sparse.map=9,2\n", "x", "2",
		  "the tar archive is broken: the extents of a sparse file overlap, are not in "
		  "order or lie past its end" },
		{ 'x', "22 GNU.sparse.size=10\n22 GNU.sparse.map=1,2\n", "x", "3",
		  "the tar archive is broken: the extents of a sparse file do not have as many "
		  "bytes as it" },
		{ 'x', "22 GNU.sparse.major=2\n23 GNU.sparse.size=100\n", "x", "0",
		  "the tar archive has sparse files of an unknown version" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct buf b = BUF_INIT;

		if (table[i].kind)
			add_meta(&b, table[i].kind, table[i].meta);
		add_head(&b, '0', table[i].name, table[i].size, "ustar");
		is(&b, table[i].text);
		buf_done(&b);
	}
}

static void no_archives(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
	} table[] = {
		{ "", 0, "standard input is empty, and not a tar archive" },
		{ "hello", 5, "standard input is not a tar archive" },
		{ "\x1f\x8b\x08", 3,
		  "standard input is compressed with gzip: put `gunzip -c |` in front" },
		{ "BZh9", 4,
		  "standard input is compressed with bzip2: put `bunzip2 -c |` in front" },
	};
	struct buf b = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		CHECK_INT(buf_add(&b, table[i].bytes, table[i].len), 0);
		is(&b, table[i].text);
		buf_clear(&b);
	}
	CHECK_INT(tar_write_end(&b), 0);
	is(&b, "");
	buf_done(&b);
	/* Whoever takes the entries may refuse one. */
	add_head(&b, '0', "x", "0", "ustar");
	refuse_with = -EIO;
	is(&b, "no: Input/output error");
	refuse_with = 0;
	buf_done(&b);
}

/* A map of more extents than there may be, and of as many. */
static void limits(void)
{
	struct buf b = BUF_INIT, map = BUF_INIT;
	char *text;

	for (int i = 0; i <= 1; i++) {
		char size[16];

		CHECK_INT(buf_addf(&map, "%d\n", TAR_EXTENTS_MAX + i), 0);
		for (int n = 0; n < TAR_EXTENTS_MAX + i; n++)
			CHECK_INT(buf_addf(&map, "%d\n0\n", n), 0);
		CHECK_INT(tar_write_pad(&map, map.len), 0);
		add_meta(&b, 'x',
			 "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
			 "30 GNU.sparse.realsize=100000\n");
		(void)str_printf(size, sizeof(size), "%011zo", map.len);
		add_head(&b, '0', "x", size, "ustar");
		CHECK_INT(buf_add(&b, buf_data(&map), map.len), 0);
		text = read_all(&b, 1000);
		CHECK(text && !strncmp(text,
				       i ? "a sparse file of the tar archive has more than 65536"
					 : "f x 644 0 0 0 100000 [0+0]",
				       26));
		free(text);
		buf_clear(&b);
		buf_clear(&map);
	}
	add_head(&b, 'x', "meta", "00004000001", "ustar");
	is(&b, "a header of the tar archive is longer than 1048576 bytes");
	buf_done(&b);
	buf_done(&map);
}

UNIT_MAIN({ "round trip", round_trip }, { "other forms", other_forms },
	  { "gnu sparse", gnu_sparse }, { "refused", refused }, { "no archives", no_archives },
	  { "limits", limits })
