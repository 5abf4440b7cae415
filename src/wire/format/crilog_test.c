/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/crilog.h"

#include <errno.h>

#include "unit.h"

#define T0 ((nsec_t)1769853600 * NSEC_PER_SEC)

static void writes_the_form(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char mark[CRILOG_MARK_MAX];

	CHECK_INT(crilog_encode(&b, T0 + 5, CRILOG_STDOUT, "one\n\ntwo", 8), 0);
	CHECK_INT(crilog_encode(&b, T0, CRILOG_STDERR, "\n", 1), 0);
	CHECK_INT(crilog_encode(&b, T0, CRILOG_STDERR, "", 0), 0);
	CHECK_INT(buf_add(&b, mark, crilog_mark_file(mark, T0, 3, 99)), 0);
	CHECK_INT(buf_add(&b, mark, crilog_mark_lost(mark, T0, 7)), 0);
	CHECK_INT(buf_add(&b, "", 1), 0);
	CHECK_STR((const char *)buf_data(&b),
		  "2026-01-31T10:00:00.000000005Z stdout F one\n"
		  "2026-01-31T10:00:00.000000005Z stdout F \n"
		  "2026-01-31T10:00:00.000000005Z stdout P two\n"
		  "2026-01-31T10:00:00.000000000Z stderr F \n"
		  "2026-01-31T10:00:00.000000000Z stdout P:file=3:at=99 \n"
		  "2026-01-31T10:00:00.000000000Z stdout P:lost=7 \n");
}

/* Bytes of every value, in pieces of odd sizes, through the form and back. */
static void gives_the_bytes_back(void)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT, back = BUF_INIT;
	static uint8_t data[100000];
	const uint8_t *p, *end;
	unsigned seed = 1;

	for (size_t i = 0; i < sizeof(data); i++) {
		seed = seed * 1103515245U + 12345U;
		data[i] = (uint8_t)(seed >> 16);
		if (i > 50000 && data[i] == '\n')
			data[i] = 'x'; /* one stretch longer than a piece */
	}
	for (size_t at = 0; at < sizeof(data);) {
		size_t n = MIN((size_t)(at % 40000 + 1), sizeof(data) - at);

		CHECK_INT(crilog_encode(&file, T0 + at, CRILOG_STDOUT, data + at, n), 0);
		at += n;
	}
	CHECK_INT(crilog_count(buf_data(&file), file.len), sizeof(data));
	for (p = buf_data(&file), end = p + file.len; p < end;) {
		const uint8_t *feed = memchr(p, '\n', (size_t)(end - p));
		struct crilog_record record;

		CHECK(feed && (size_t)(feed - p) < CRILOG_PIECE_MAX + CRILOG_LINE_COST);
		CHECK_INT(crilog_parse(&record, p, (size_t)(feed - p) + 1), 0);
		CHECK_INT(record.mark, CRILOG_NO_MARK);
		CHECK(record.time >= T0 && record.time < T0 + sizeof(data));
		CHECK_INT(buf_add(&back, record.data, record.len), 0);
		p = feed + 1;
	}
	CHECK_INT(back.len, sizeof(data));
	CHECK(back.len == sizeof(data) && memcmp(buf_data(&back), data, sizeof(data)) == 0);
}

static int parse(struct crilog_record *ret, const char *line)
{
	return crilog_parse(ret, (const uint8_t *)line, strlen(line));
}

static void refuses_what_is_no_line(void)
{
	static const char *const lines[] = {
		"00:00.000000000Z stdout F torn\n",
		"2026-13-31T10:00:00Z stdout F month\n",
		"2026-01-31T10:00:00 stdout F zone\n",
		"2026-01-31T10:00:00Z stdin F stream\n",
		"2026-01-31T10:00:00Z stdout X tag\n",
		"2026-01-31T10:00:00Z stdout Fx tag\n",
		"2026-01-31T10:00:00Z stdout F\n",
		"2026-01-31T10:00:00Z stdout\n",
		"2026-01-31T10:00:00Z \n",
		"2026-01-31T10:00:00Z\n",
		"\n",
	};
	struct crilog_record record;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		CHECK_INT(parse(&record, lines[i]), -EBADMSG);
}

static void knows_others_tags_and_its_own_marks(void)
{
	struct crilog_record record;

	CHECK_INT(parse(&record, "2026-01-31T12:00:00.5+02:00 stderr F:x b\n"), 0);
	CHECK_INT(record.time, T0 + NSEC_PER_SEC / 2);
	CHECK(record.stream == CRILOG_STDERR && record.full && record.len == 2);
	CHECK_INT(parse(&record, "2026-01-31T10:00:00Z stdout P:file=12:at=345 \n"), 0);
	CHECK(record.mark == CRILOG_MARK_FILE && record.file == 12 && record.number == 345);
	CHECK_INT(record.len, 0);
	CHECK_INT(parse(&record, "2026-01-31T10:00:00Z stdout P:lost=18446744073709551615 \n"), 0);
	CHECK(record.mark == CRILOG_MARK_LOST && record.number == UINT64_MAX);
	/* Not quite a mark, and one with bytes is none. */
	CHECK_INT(parse(&record, "2026-01-31T10:00:00Z stdout P:lost=18446744073709551616 \n"), 0);
	CHECK_INT(record.mark, CRILOG_NO_MARK);
	CHECK_INT(parse(&record, "2026-01-31T10:00:00Z stdout P:lost= \n"), 0);
	CHECK_INT(record.mark, CRILOG_NO_MARK);
	CHECK_INT(parse(&record, "2026-01-31T10:00:00Z stdout P:lost=5 x\n"), 0);
	CHECK_INT(record.mark, CRILOG_NO_MARK);
}

static void counts_what_lines_stand_for(void)
{
	static const char text[] = "2026-01-31T10:00:00Z stdout F one\n"
				   "torn\n"
				   "2026-01-31T10:00:00Z stdout P:lost=100 \n"
				   "2026-01-31T10:00:00Z stdout P:file=1:at=1000 \n"
				   "2026-01-31T10:00:00Z stderr P ab\n"
				   "2026-01-31T10:00:00Z stderr P no line feed";

	CHECK_INT(crilog_count((const uint8_t *)text, sizeof(text) - 1), 4 + 100 + 2);
	CHECK_INT(crilog_count(NULL, 0), 0);
}

/* Where memory is out, nothing was added. */
static void adds_all_or_nothing(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT_LIMIT(100);

	CHECK_INT(crilog_encode(&b, T0, CRILOG_STDOUT, "1\n2\n3\n", 6), -ENOBUFS);
	CHECK_INT(b.len, 0);
	CHECK_INT(crilog_encode(&b, T0, CRILOG_STDOUT, "1\n2\n", 4), 0);
}

UNIT_MAIN({ "writes_the_form", writes_the_form }, { "gives_the_bytes_back", gives_the_bytes_back },
	  { "refuses_what_is_no_line", refuses_what_is_no_line },
	  { "knows_others_tags_and_its_own_marks", knows_others_tags_and_its_own_marks },
	  { "counts_what_lines_stand_for", counts_what_lines_stand_for },
	  { "adds_all_or_nothing", adds_all_or_nothing })
