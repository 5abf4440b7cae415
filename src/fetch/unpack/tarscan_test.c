/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/tarscan.h"

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

static void add_header(struct buf *b, const char *name, char type, size_t size)
{
	uint8_t block[TARSCAN_BLOCK] = { 0 };
	char *text = (char *)block;
	unsigned sum = 0;

	(void)str_copy(text, 100, name);
	(void)str_printf(text + 124, 12, "%011zo", size);
	memset(block + 148, ' ', 8);
	block[156] = (uint8_t)type;
	for (size_t i = 0; i < sizeof(block); i++)
		sum += block[i];
	(void)str_printf(text + 148, 8, "%06o", sum);
	if (buf_add(b, block, sizeof(block)) < 0)
		abort();
}

static void add_data(struct buf *b, const char *data, size_t len, bool padded)
{
	static const uint8_t zeroes[TARSCAN_BLOCK];

	if (buf_add(b, data, len) < 0 || (padded && buf_add(b, zeroes, -len % TARSCAN_BLOCK) < 0))
		abort();
}

/* In pieces of every length: 0 or the error, with the text. */
static int feed(const struct buf *b, size_t piece, struct tarscan *ret, struct error *err)
{
	*ret = (struct tarscan)TARSCAN_INIT;
	*err = (struct error)ERROR_INIT;
	for (size_t at = 0; at < b->len; at += piece) {
		size_t n = piece < b->len - at ? piece : b->len - at;
		int r = tarscan_feed(ret, (const uint8_t *)buf_data(b) + at, n, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static void check_missing(const struct buf *b, size_t missing)
{
	static const size_t pieces[] = { 1, 7, 511, 512, 513, 100000 };
	struct error err;
	struct tarscan t;

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		CHECK_INT(feed(b, pieces[i], &t, &err), 0);
		CHECK_INT(tarscan_n_missing(&t), missing);
	}
}

static void counts_missing_padding(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char data[700] = "";

	check_missing(&b, 0);
	add_header(&b, "d", '5', 700);
	check_missing(&b, 0);
	add_header(&b, "f", '0', sizeof(data));
	check_missing(&b, 0);
	add_data(&b, data, 699, false);
	check_missing(&b, 0);
	add_data(&b, data, 1, false);
	check_missing(&b, 324);
	add_data(&b, data, 300, false);
	check_missing(&b, 24);
	add_data(&b, data, 24, false);
	check_missing(&b, 0);
	add_data(&b, data, 100, false);
	check_missing(&b, 0);
}

static void knows_sizes_of_records(void)
{
	static const char records[] = "19 path=some/thing\n12 size=700\n";
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char data[700] = "";

	add_header(&b, "x", 'x', strlen(records));
	add_data(&b, records, strlen(records), false);
	/* Not of a member. */
	check_missing(&b, 0);
	add_data(&b, data, -strlen(records) % TARSCAN_BLOCK, false);
	add_header(&b, "long", 'L', 5);
	add_data(&b, "long", 5, true);
	add_header(&b, "f", '0', 3);
	add_data(&b, data, 700, false);
	check_missing(&b, 324);
	add_data(&b, data, 324, false);
	/* They are of that member alone. */
	add_header(&b, "g", '0', 3);
	add_data(&b, data, 3, false);
	check_missing(&b, 509);
}

static void stops_where_it_cannot_follow(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char data[700] = "";

	add_header(&b, "h", '1', 3);
	add_data(&b, data, 3, false);
	check_missing(&b, 0);
	buf_done(&b);
	b = (struct buf)BUF_INIT;
	/* A member of no known size. */
	add_data(&b, "f", 1, true);
	add_data(&b, data, 3, false);
	check_missing(&b, 0);
	buf_done(&b);
	b = (struct buf)BUF_INIT;
	/* Behind the end mark. */
	add_data(&b, data, TARSCAN_BLOCK, false);
	add_header(&b, "f", '0', 3);
	add_data(&b, data, 3, false);
	check_missing(&b, 0);
}

static void check_map(const char *map, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_(buf_done) struct buf lines = BUF_INIT;
	static const char records[] = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n";
	static const size_t pieces[] = { 1, 512, 100000 };
	struct error err;
	struct tarscan t;
	char record[256];

	add_header(&b, "x", 'x', strlen(records));
	add_data(&b, records, strlen(records), true);
	add_header(&b, "s", '0', strlen(map) + 1);
	add_data(&b, map, strlen(map), true);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		CHECK_INT(feed(&b, pieces[i], &t, &err) < 0, text != NULL);
		if (text)
			CHECK(strstr(err.text, text) != NULL);
	}
	/* The same as a list in a record: without the number of pieces, commas for ends of lines.
	 */
	CHECK_INT(str_printf(record, sizeof(record), "%zu GNU.sparse.map=%s", strlen(map + 2) + 19,
			     map + 2) > 0,
		  1);
	for (char *p = record; *p; p++)
		if (*p == '\n' && p[1])
			*p = ',';
	add_header(&lines, "x", 'x', strlen(record));
	add_data(&lines, record, strlen(record), true);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		CHECK_INT(feed(&lines, pieces[i], &t, &err) < 0, text != NULL);
}

static void judges_maps(void)
{
	check_map("2\n0\n512\n512\n1\n", NULL);
	check_map("3\n0\n512\n1024\n1\n4096\n0\n", NULL);
	check_map("2\n0\n513\n512\n1\n", "overlap");
	check_map("2\n512\n1\n0\n1\n", "are not sorted");
	check_map("1\n9000000000000000000\n900000000000000000\n", "are out of range");
}

UNIT_MAIN({ "counts_missing_padding", counts_missing_padding },
	  { "knows_sizes_of_records", knows_sizes_of_records },
	  { "stops_where_it_cannot_follow", stops_where_it_cannot_follow },
	  { "judges_maps", judges_maps })
