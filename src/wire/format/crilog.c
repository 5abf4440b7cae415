/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/crilog.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"

#define STAMP_LEN ((size_t)CLOCK_TEXT_SIZE - 1)
#define WORD_LEN ((size_t)6)

static const char stream_words[CRILOG_STREAMS][WORD_LEN + 1] = {
	[CRILOG_STDOUT] = "stdout", [CRILOG_STDERR] = "stderr"
};

/* ---- writing ---- */

/* Until the tag: the same for all lines of a chunk. */
#define HEAD_LEN (STAMP_LEN + 1 + WORD_LEN + 1)

static void crilog_head(char to[HEAD_LEN], nsec_t time, enum crilog_stream stream)
{
	char stamp[CLOCK_TEXT_SIZE];

	clock_format(stamp, time);
	memcpy(to, stamp, STAMP_LEN);
	to[STAMP_LEN] = ' ';
	memcpy(to + STAMP_LEN + 1, stream_words[stream], WORD_LEN);
	to[HEAD_LEN - 1] = ' ';
}

static int crilog_add(struct buf *to, const char head[HEAD_LEN], const char *data, size_t len,
		      bool full)
{
	uint8_t *p;
	int r = buf_reserve(to, len + CRILOG_LINE_COST, &p);

	if (r < 0)
		return r;
	memcpy(p, head, HEAD_LEN);
	p[HEAD_LEN] = full ? 'F' : 'P';
	p[HEAD_LEN + 1] = ' ';
	memcpy(p + HEAD_LEN + 2, data, len);
	p[HEAD_LEN + 2 + len] = '\n';
	buf_added(to, HEAD_LEN + 2 + len + 1);
	return 0;
}

int crilog_encode(struct buf *to, nsec_t time, enum crilog_stream stream, const void *data,
		  size_t len)
{
	const char *p = data;
	size_t before = to->len;
	char head[HEAD_LEN];

	crilog_head(head, time, stream);
	while (len) {
		size_t max = MIN(len, (size_t)CRILOG_PIECE_MAX);
		const char *feed = memchr(p, '\n', max);
		size_t n = feed ? (size_t)(feed - p) : max;
		int r = crilog_add(to, head, p, n, feed != NULL);

		if (r < 0) {
			to->len = before;
			return r;
		}
		p += n + (feed ? 1 : 0);
		len -= n + (feed ? 1 : 0);
	}
	return 0;
}

size_t crilog_mark_file(char to[CRILOG_MARK_MAX], nsec_t time, uint64_t n, uint64_t at)
{
	char stamp[CLOCK_TEXT_SIZE];

	clock_format(stamp, time);
	return (size_t)str_printf(to, CRILOG_MARK_MAX, "%s stdout P:file=%llu:at=%llu \n", stamp,
				  (unsigned long long)n, (unsigned long long)at);
}

size_t crilog_mark_lost(char to[CRILOG_MARK_MAX], nsec_t time, uint64_t n)
{
	char stamp[CLOCK_TEXT_SIZE];

	clock_format(stamp, time);
	return (size_t)str_printf(to, CRILOG_MARK_MAX, "%s stdout P:lost=%llu \n", stamp,
				  (unsigned long long)n);
}

/* ---- reading ---- */

/* "=123" up to the next tag, the blank or the end. */
static bool crilog_tag_number(const char **p, const char *end, const char *name, uint64_t *ret)
{
	size_t n = strlen(name), digits = 0;
	char text[24];

	if ((size_t)(end - *p) < n || memcmp(*p, name, n) != 0)
		return false;
	*p += n;
	while (*p < end && **p >= '0' && **p <= '9' && digits < sizeof(text) - 1)
		text[digits++] = *(*p)++;
	text[digits] = '\0';
	return parse_u64(text, 0, UINT64_MAX, ret) == 0;
}

/* What follows upon "P": marks are known, other tags are skipped. */
static void crilog_tags(struct crilog_record *ret, const char *p, const char *end)
{
	const char *at = p;

	if (crilog_tag_number(&at, end, ":lost=", &ret->number) && at == end)
		ret->mark = CRILOG_MARK_LOST;
	at = p;
	if (crilog_tag_number(&at, end, ":file=", &ret->file) &&
	    crilog_tag_number(&at, end, ":at=", &ret->number) && at == end)
		ret->mark = CRILOG_MARK_FILE;
}

int crilog_parse(struct crilog_record *ret, const uint8_t *line, size_t len)
{
	const char *p = (const char *)line, *end = p + len - 1;
	const char *blank = memchr(p, ' ', MIN((size_t)(end - p), (size_t)2 * CLOCK_TEXT_SIZE));
	struct crilog_record record = { .full = false };

	if (!blank || clock_parse(p, (size_t)(blank - p), &record.time) < 0)
		return -EBADMSG;
	p = blank + 1;
	/* The word, a blank, the tag, and a blank behind it. */
	if ((size_t)(end - p) < WORD_LEN + 3 || p[WORD_LEN] != ' ')
		return -EBADMSG;
	if (memcmp(p, stream_words[CRILOG_STDERR], WORD_LEN) == 0)
		record.stream = CRILOG_STDERR;
	else if (memcmp(p, stream_words[CRILOG_STDOUT], WORD_LEN) == 0)
		record.stream = CRILOG_STDOUT;
	else
		return -EBADMSG;
	p += WORD_LEN + 1;
	record.full = *p == 'F';
	if (*p != 'F' && *p != 'P')
		return -EBADMSG;
	p++;
	blank = memchr(p, ' ', (size_t)(end - p));
	if (!blank || (blank > p && *p != ':'))
		return -EBADMSG;
	record.data = (const uint8_t *)blank + 1;
	record.len = (size_t)(end - blank - 1) + (record.full ? 1 : 0);
	if (blank > p && record.len == 0)
		crilog_tags(&record, p, blank);
	*ret = record;
	return 0;
}

uint64_t crilog_count(const uint8_t *lines, size_t len)
{
	const uint8_t *end = lines + len;
	uint64_t n = 0;

	while (lines < end) {
		const uint8_t *feed = memchr(lines, '\n', (size_t)(end - lines));
		struct crilog_record record;
		size_t size = feed ? (size_t)(feed - lines) + 1 : (size_t)(end - lines);

		if (feed && crilog_parse(&record, lines, size) == 0)
			n += record.len + (record.mark == CRILOG_MARK_LOST ? record.number : 0);
		lines += size;
	}
	return n;
}
