/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/metadata.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/format/base64.h"

#define METADATA_LENGTH "content-length:"
#define METADATA_CODING "transfer-encoding:"

/* ---- HTTP ---- */

static bool metadata_status(const char *line, unsigned *ret)
{
	uint64_t status;
	char digits[4] = "";

	if (!str_has_prefix(line, "HTTP/1.") || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return false;
	(void)str_printf(digits, sizeof(digits), "%.3s", line + 9);
	if (strlen(digits) != 3 || (line[12] != ' ' && line[12] != '\0') ||
	    parse_u64(digits, 100, 599, &status) < 0)
		return false;
	*ret = (unsigned)status;
	return true;
}

static bool metadata_header(const char *line, bool *has_len, size_t *len)
{
	uint64_t value;

	if (strncasecmp(line, METADATA_CODING, strlen(METADATA_CODING)) == 0)
		return false;
	if (strncasecmp(line, METADATA_LENGTH, strlen(METADATA_LENGTH)) != 0)
		return true;
	line += strlen(METADATA_LENGTH);
	if (*has_len || parse_u64(line + strspn(line, " \t"), 0, METADATA_BODY_MAX, &value) < 0)
		return false;
	*has_len = true;
	*len = (size_t)value;
	return true;
}

/* head: a text, changed here. */
static bool metadata_head(char *head, struct metadata_answer *a)
{
	bool first = true, has_len = false;

	for (;;) {
		char *line = strsep(&head, "\n");
		size_t n = line ? strlen(line) : 0;

		if (!line)
			return !first && has_len;
		if (n > 0 && line[n - 1] == '\r')
			line[n - 1] = '\0';
		if (first ? !metadata_status(line, &a->status)
			  : !metadata_header(line, &has_len, &a->len))
			return false;
		first = false;
	}
}

int metadata_answer(struct metadata_answer *ret, const uint8_t *data, size_t len)
{
	static const char end[] = "\r\n\r\n";
	struct metadata_answer a = { .status = 0 };
	_cleanup_str_ char *head = NULL;
	const uint8_t *at;

	at = len ? memmem(data, MIN(len, (size_t)METADATA_HEAD_MAX), end, strlen(end)) : NULL;
	if (!at)
		return len < METADATA_HEAD_MAX ? 0 : -EBADMSG;
	if (memchr(data, '\0', (size_t)(at - data)))
		return -EBADMSG;
	head = strndup((const char *)data, (size_t)(at - data));
	if (!head)
		return -ENOMEM;
	if (!metadata_head(head, &a))
		return -EBADMSG;
	a.body = (size_t)(at - data) + strlen(end);
	if (len - a.body < a.len)
		return 0;
	*ret = a;
	return 1;
}

/* ---- user-data ---- */

static void metadata_wipe(struct arena *a, char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	arena_done(a);
}

int metadata_user_data(const uint8_t *frame, size_t len, struct buf *ret)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct arena a = ARENA_INIT;
	char *inner = base64_encode(&a, frame, len), *outer = NULL;
	int r = inner ? buf_addf(&text, METADATA_MARK "\n%s\n", inner) : -ENOMEM;

	if (r == 0 && text.len > METADATA_USER_DATA_MAX)
		r = -EMSGSIZE;
	if (r == 0) {
		outer = base64_encode(&a, buf_data(&text), text.len);
		r = outer ? buf_add_str(ret, outer) : -ENOMEM;
	}
	if (outer)
		explicit_bzero(outer, strlen(outer));
	if (text.base)
		explicit_bzero(text.base, text.size);
	metadata_wipe(&a, inner);
	return r;
}

int metadata_frame(const uint8_t *data, size_t len, struct buf *ret)
{
	static const char mark[] = METADATA_MARK "\n";
	_cleanup_str_ char *text = NULL;
	uint8_t *room;
	size_t n;
	int r;

	if (len > METADATA_USER_DATA_MAX || len < strlen(mark) ||
	    memcmp(data, mark, strlen(mark)) != 0 || memchr(data, '\0', len))
		return -EBADMSG;
	text = strndup((const char *)data + strlen(mark), len - strlen(mark));
	if (!text)
		return -ENOMEM;
	r = buf_reserve(ret, strlen(text) + 1, &room);
	if (r == 0 && !base64_decode_lines(text, room, &n))
		r = -EBADMSG;
	if (r == 0)
		buf_added(ret, n);
	explicit_bzero(text, strlen(text));
	return r;
}
