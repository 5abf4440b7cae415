/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/crilog.h"

#include <errno.h>

#include "unit.h"

#define T0 ((nsec_t)1769853600 * NSEC_PER_SEC)

struct sink {
	struct buf bytes[2];
	nsec_t last;
	unsigned n;
	int stop_at;
};

static int sink_line(void *userdata, nsec_t time, enum crilog_stream stream, const uint8_t *data,
		     size_t len)
{
	struct sink *s = userdata;

	s->n++;
	s->last = time;
	if (s->stop_at && s->n == (unsigned)s->stop_at)
		return -ECANCELED;
	return buf_add(&s->bytes[stream], data, len);
}

static void sink_done(struct sink *s)
{
	buf_done(&s->bytes[0]);
	buf_done(&s->bytes[1]);
}

static void writes_the_form(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	CHECK_INT(crilog_encode(&b, T0 + 5, CRILOG_STDOUT, "one\n\ntwo", 8), 0);
	CHECK_INT(crilog_encode(&b, T0, CRILOG_STDERR, "\n", 1), 0);
	CHECK_INT(crilog_encode(&b, T0, CRILOG_STDERR, "", 0), 0);
	CHECK_INT(buf_add(&b, "", 1), 0);
	CHECK_STR((const char *)buf_data(&b), "2026-01-31T10:00:00.000000005Z stdout F one\n"
					      "2026-01-31T10:00:00.000000005Z stdout F \n"
					      "2026-01-31T10:00:00.000000005Z stdout P two\n"
					      "2026-01-31T10:00:00.000000000Z stderr F \n");
}

/* Bytes of every value, in pieces of odd sizes, encoded and decoded in other odd sizes. */
static void gives_the_bytes_back(void)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT;
	struct crilog_decoder d = CRILOG_DECODER_INIT;
	struct sink sink = { .n = 0 };
	static uint8_t data[100000];
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
	for (size_t at = 0; at < file.len;) {
		size_t n = MIN((size_t)(at % 777 + 1), file.len - at);

		CHECK_INT(crilog_decode(&d, buf_data(&file) + at, n, sink_line, &sink), 0);
		at += n;
	}
	CHECK_INT(sink.bytes[0].len, sizeof(data));
	CHECK(sink.bytes[0].len == sizeof(data) &&
	      memcmp(buf_data(&sink.bytes[0]), data, sizeof(data)) == 0);
	CHECK_INT(d.n_skipped, 0);
	crilog_decoder_done(&d);
	sink_done(&sink);
}

static void decode_text(const char *text, struct sink *sink, struct crilog_decoder *d)
{
	CHECK_INT(crilog_decode(d, text, strlen(text), sink_line, sink), 0);
	CHECK_INT(buf_add(&sink->bytes[0], "", 1), 0);
}

static void skips_what_is_no_line(void)
{
	static const char text[] = "2026-01-31T10:00:00.000000000Z stdout F a\n"
				   "00:00.000000000Z stdout F torn\n"
				   "2026-13-31T10:00:00Z stdout F month\n"
				   "2026-00-31T10:00:00Z stdout F month\n"
				   "2026-01-31T10:00:00.Z stdout F fraction\n"
				   "2026-01-31T10:00:00 stdout F zone\n"
				   "2026-01-31T10:00:00Z stdin F stream\n"
				   "2026-01-31T10:00:00Z stdout X tag\n"
				   "2026-01-31T10:00:00Z stdout F\n"
				   "\n"
				   "2026-01-31T12:00:00.5+02:00 stdout F:x b\n"
				   "2026-01-31T10:00:00Z stdout P no end of lin";
	struct crilog_decoder d = CRILOG_DECODER_INIT;
	struct sink sink = { .n = 0 };

	decode_text(text, &sink, &d);
	CHECK_STR((const char *)buf_data(&sink.bytes[0]), "a\nb\n");
	CHECK_INT(d.n_skipped, 9);
	CHECK_INT(sink.last, T0 + NSEC_PER_SEC / 2);
	crilog_decoder_done(&d);
	sink_done(&sink);
}

static void bounds_a_line(void)
{
	static char line[CRILOG_LINE_MAX + 2];
	struct crilog_decoder d = CRILOG_DECODER_INIT;
	struct sink sink = { .n = 0 };

	memset(line, 'x', sizeof(line));
	CHECK_INT(crilog_decode(&d, line, sizeof(line), sink_line, &sink), 0);
	CHECK_INT(crilog_decode(&d, line, sizeof(line), sink_line, &sink), 0);
	CHECK_INT(d.partial.len, 0);
	decode_text("\n2026-01-31T10:00:00Z stdout F b\n", &sink, &d);
	CHECK_STR((const char *)buf_data(&sink.bytes[0]), "b\n");
	CHECK_INT(d.n_skipped, 1);
	crilog_decoder_done(&d);
	sink_done(&sink);
}

static void stops_where_told(void)
{
	static const char text[] =
		"2026-01-31T10:00:00Z stderr F a\n2026-01-31T10:00:00Z stderr F b\n";
	struct crilog_decoder d = CRILOG_DECODER_INIT;
	struct sink sink = { .stop_at = 2 };

	CHECK_INT(crilog_decode(&d, text, sizeof(text) - 1, sink_line, &sink), -ECANCELED);
	CHECK_INT(sink.bytes[1].len, 2);
	crilog_decoder_done(&d);
	sink_done(&sink);
}

UNIT_MAIN({ "writes_the_form", writes_the_form }, { "gives_the_bytes_back", gives_the_bytes_back },
	  { "skips_what_is_no_line", skips_what_is_no_line }, { "bounds_a_line", bounds_a_line },
	  { "stops_where_told", stops_where_told })
