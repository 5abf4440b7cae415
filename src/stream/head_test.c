/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/head.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "stream/resize.h"
#include "unit.h"

#define GOOD                                                                                       \
	"POST /exec/0123?a=b HTTP/1.1\r\nHost: x\r\nconnection: keep-alive, Upgrade\r\n"           \
	"UPGRADE:\tSPDY/3.1 \r\nX-Stream-Protocol-Version: "                                       \
	"v4.channel.k8s.io,v3.channel.k8s.io\r\n"                                                  \
	"X-Stream-Protocol-Version: other\r\nContent-Length: 0\r\n\r\n"

static int take(const char *text, size_t *used, struct head *ret)
{
	return head_take((const uint8_t *)text, strlen(text), used, ret);
}

static void reads_a_request(void)
{
	struct head h;
	size_t used;

	for (size_t n = 0; n < strlen(GOOD); n++)
		CHECK_INT(head_take((const uint8_t *)GOOD, n, &used, &h), 0);
	CHECK_INT(take(GOOD "rest", &used, &h), 1);
	CHECK_INT(used, strlen(GOOD));
	CHECK_STR(h.method, "POST");
	CHECK_STR(h.path, "/exec/0123");
	CHECK(h.is_upgrade);
	CHECK_STR(h.upgrade, "SPDY/3.1");
	CHECK_INT(h.protocols.n, 3);
	CHECK_STR(h.protocols.words[1], "v3.channel.k8s.io");
	CHECK_STR(h.protocols.words[2], "other");
}

static void refuses_what_is_none(void)
{
	static const char *const bad[] = {
		"GET /\r\n\r\n",
		"GET  / HTTP/1.1\r\n\r\n",
		"GET x HTTP/1.1\r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.1\r\nno field\r\n\r\n",
		"GET / HTTP/1.1\r\n: x\r\n\r\n",
		"GET / HTTP/1.1\r\nname : x\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
		"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
	};
	static char longest[HEAD_MAX + 100] = "GET /";
	struct head h;
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(take(bad[i], &used, &h), -EPROTO);
	CHECK_INT(head_take((const uint8_t *)"GET / HTTP/1.1\r\na: \0\r\n\r\n", 24, &used, &h),
		  -EPROTO);
	memset(longest + 5, 'x', sizeof(longest) - 6);
	CHECK_INT(take(longest, &used, &h), -ENOBUFS);
	memcpy(longest + 400, " HTTP/1.1\r\n\r\n", 14);
	CHECK_INT(take(longest, &used, &h), -ENOBUFS);
}

static void leaves_out_what_is_too_much(void)
{
	_cleanup_str_ char *text =
		str_format("GET / HTTP/1.1\r\nX-Stream-Protocol-Version: %0100d,a,,"
			   "b,c,d,e,f,g,h,i,j\r\n\r\n",
			   1);
	struct head h;
	size_t used;

	CHECK_INT(take(text, &used, &h), 1);
	CHECK_INT(h.protocols.n, HEAD_PROTOCOLS_MAX);
	CHECK_STR(h.protocols.words[0], "a");
	CHECK_STR(h.protocols.words[7], "h");
}

/* ---- sizes of terminals ---- */

static void reads_sizes(void)
{
	static const char text[] =
		"{\"Width\":80,\"Height\":24}{\"Height\" : 1 ,\n \"Width\":65535}"
		"{\"Width\":65536,\"Height\":1}{\"Width\":-1,\"Height\":1}{}x{\"Width\":\"9\"}"
		"{\"Width\":7,\"Height\":8";
	struct resize r = { .len = 0 };
	uint16_t width = 0, height = 0;
	char filler[400];
	size_t used = 0;

#define TAKE(t, n) resize_take(&r, (const uint8_t *)(t), (n), &used, &width, &height)
	CHECK(TAKE(text, sizeof(text) - 1));
	CHECK(width == 80 && height == 24);
	CHECK(TAKE(text, sizeof(text) - 1));
	CHECK(width == 65535 && height == 1);
	CHECK(!TAKE(text, sizeof(text) - 1));
	used = 0;
	CHECK(TAKE("9}", 2));
	CHECK(width == 7 && height == 89);
	memset(filler, ' ', sizeof(filler));
	filler[0] = '{';
	used = 0;
	CHECK(!TAKE(filler, sizeof(filler)));
	used = 0;
	CHECK(TAKE("{\"Width\":1,\"Height\":2}", 22));
#undef TAKE
}

UNIT_MAIN({ "reads_a_request", reads_a_request }, { "refuses_what_is_none", refuses_what_is_none },
	  { "leaves_out_what_is_too_much", leaves_out_what_is_too_much },
	  { "reads_sizes", reads_sizes })
