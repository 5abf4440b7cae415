/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"
#include "wire/format/base64.h"

static int read_text(struct metadata_answer *a, const char *text)
{
	return metadata_answer(a, (const uint8_t *)text, strlen(text));
}

static void takes_answers(void)
{
	static const char whole[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
				    "CONTENT-LENGTH: 4\r\n\r\nabcd";
	struct metadata_answer a;

	if (read_text(&a, whole) == -ENOMEM)
		return;
	CHECK_INT(read_text(&a, whole), 1);
	CHECK_INT(a.status, 200);
	CHECK_INT(a.len, 4);
	CHECK(memcmp(whole + a.body, "abcd", 4) == 0);
	for (size_t n = 0; n < strlen(whole); n++)
		CHECK_INT(metadata_answer(&a, (const uint8_t *)whole, n), 0);
	CHECK_INT(read_text(&a, "HTTP/1.0 404\r\nContent-Length: 0\r\n\r\n"), 1);
	CHECK_INT(a.status, 404);
}

static void refuses_others(void)
{
	static const char *const wrong[] = {
		"HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.\r\nContent-Length: 0\r\n\r\n",
		"ICY 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 16385\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	};
	_cleanup_str_ char *endless = malloc(METADATA_HEAD_MAX + 1);
	struct metadata_answer a;

	if (!endless || read_text(&a, wrong[0]) == -ENOMEM)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (read_text(&a, wrong[i]) != -EBADMSG)
			CHECK_INT(i, -1);
	memset(endless, 'a', METADATA_HEAD_MAX);
	endless[METADATA_HEAD_MAX] = '\0';
	CHECK_INT(read_text(&a, endless), -EBADMSG);
}

static void carries_a_frame(void)
{
	_cleanup_(buf_done) struct buf outer = BUF_INIT, inner = BUF_INIT, frame = BUF_INIT;
	static const uint8_t bytes[] = { 0, 1, 255, '\n', 7 };
	uint8_t *room;
	size_t n;

	if (metadata_user_data(bytes, sizeof(bytes), &outer) == -ENOMEM)
		return;
	/* The cloud takes one base64 away. */
	if (buf_add(&outer, "", 1) < 0 || buf_reserve(&inner, outer.len, &room) < 0)
		return;
	CHECK(base64_decode_lines((const char *)buf_data(&outer), room, &n));
	buf_added(&inner, n);
	CHECK(n > strlen(METADATA_MARK));
	if (metadata_frame(buf_data(&inner), inner.len, &frame) == -ENOMEM)
		return;
	CHECK_INT(frame.len, sizeof(bytes));
	CHECK(memcmp(buf_data(&frame), bytes, sizeof(bytes)) == 0);
	room[0] = '!';
	CHECK_INT(metadata_frame(buf_data(&inner), inner.len, &frame), -EBADMSG);
	CHECK_INT(metadata_frame((const uint8_t *)"#cloud-config\n", 14, &frame), -EBADMSG);
	CHECK_INT(metadata_frame(NULL, 0, &frame), -EBADMSG);
}

static void has_the_limit_of_the_cloud(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *much = calloc(1, METADATA_USER_DATA_MAX);

	if (much && metadata_user_data((const uint8_t *)much, 12000, &b) != -ENOMEM)
		CHECK_INT(metadata_user_data((const uint8_t *)much, 12300, &b), -EMSGSIZE);
}

UNIT_MAIN({ "answers are taken when they are whole", takes_answers },
	  { "what has no told length is refused", refuses_others },
	  { "user-data carry a frame", carries_a_frame },
	  { "user-data have the limit of the cloud", has_the_limit_of_the_cloud })
