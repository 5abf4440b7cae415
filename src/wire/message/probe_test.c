/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/probe.h"

#include "base/macros.h"
#include "unit.h"
#include "wire/format/h2frame.h"

/* In pieces of each size, which must make no difference. */
static enum probe_verdict http(const char *answer, unsigned *ret_status)
{
	enum probe_verdict verdict = PROBE_MORE;

	for (size_t step = 1; step < 20; step++) {
		struct probe_http p = { .n = 0 };
		enum probe_verdict one = PROBE_MORE;

		for (size_t at = 0; one == PROBE_MORE && at < strlen(answer); at += step)
			one = probe_http_feed(&p, (const uint8_t *)answer + at,
					      MIN(step, strlen(answer) - at));
		CHECK(step == 1 || one == verdict);
		verdict = one;
		*ret_status = p.status;
	}
	return verdict;
}

static void reads_a_status_line(void)
{
	static const struct {
		const char *answer;
		enum probe_verdict verdict;
		unsigned status;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\n\r\n", PROBE_GOOD, 200 },
		{ "HTTP/1.0 399\r\n", PROBE_GOOD, 399 },
		{ "HTTP/1.1 302 Found", PROBE_GOOD, 302 },
		{ "HTTP/1.1 400 Bad", PROBE_BAD, 400 },
		{ "HTTP/1.1 503 \r\n", PROBE_BAD, 503 },
		{ "HTTP/1.1 199 \r\n", PROBE_BAD, 199 },
		{ "HTTP/1.1 2000 OK", PROBE_BAD, 0 },
		{ "HTTP/2.0 200 OK", PROBE_BAD, 0 },
		{ "SSH-2.0-OpenSSH_9.2", PROBE_BAD, 0 },
		{ "HTTP/1.1 200", PROBE_MORE, 0 },
	};
	unsigned status;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK_INT(http(cases[i].answer, &status), cases[i].verdict);
		CHECK_INT(status, cases[i].status);
	}
}

static void asks_over_http(void)
{
	uint8_t request[PROBE_REQUEST_MAX];
	char path[PROBE_PATH_MAX + 1];
	size_t n;

	memset(path, 'a', PROBE_PATH_MAX);
	path[0] = '/';
	path[PROBE_PATH_MAX] = '\0';
	n = probe_http_request(request, 65535, path);
	CHECK(n > PROBE_PATH_MAX && n < sizeof(request));
	n = probe_http_request(request, 80, "/live");
	CHECK(memcmp(request, "GET /live HTTP/1.1\r\nHost: localhost:80\r\n", 40) == 0);
	CHECK(memcmp(request + n - 4, "\r\n\r\n", 4) == 0);
}

/* Our own gate takes it for what a client of HTTP/2 says. */
static void asks_over_grpc(void)
{
	struct h2frame f = { .from_client = true };
	uint8_t request[PROBE_REQUEST_MAX];
	char service[PROBE_SERVICE_MAX + 1];
	size_t n;

	memset(service, 's', PROBE_SERVICE_MAX);
	service[PROBE_SERVICE_MAX] = '\0';
	n = probe_grpc_request(request, service);
	CHECK_INT(h2frame_feed(&f, request, n, NULL), 0);
	CHECK(h2frame_is_whole(&f) && f.asked);
	n = probe_grpc_request(request, "");
	f = (struct h2frame){ .from_client = true };
	CHECK_INT(h2frame_feed(&f, request, n, NULL), 0);
	CHECK(h2frame_is_whole(&f));
}

static enum probe_verdict grpc(const void *answer, size_t len, struct probe_grpc *ret)
{
	enum probe_verdict verdict = PROBE_MORE;

	for (size_t step = 1; step < 40; step++) {
		struct probe_grpc p = { .n_head = 0 };
		enum probe_verdict one = PROBE_MORE;

		for (size_t at = 0; one == PROBE_MORE && at < len; at += step)
			one = probe_grpc_feed(&p, (const uint8_t *)answer + at,
					      MIN(step, len - at));
		CHECK(step == 1 || one == verdict);
		verdict = one;
		*ret = p;
	}
	return verdict;
}

#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define ACK "\0\0\0\4\1\0\0\0\0"
#define PING "\0\0\10\6\0\0\0\0\0pingpong"
#define HEADERS "\0\0\3\1\4\0\0\0\1abc"
#define GRPC(text, ret) grpc(text, sizeof(text) - 1, ret)

static void reads_a_status(void)
{
	struct probe_grpc p;

	CHECK_INT(GRPC(SETTINGS ACK PING HEADERS "\0\0\7\0\0\0\0\0\1\0\0\0\0\2\10\1", &p),
		  PROBE_GOOD);
	CHECK_INT(p.status, 1);
	CHECK_INT(GRPC(SETTINGS HEADERS "\0\0\7\0\0\0\0\0\1\0\0\0\0\2\10\2", &p), PROBE_BAD);
	CHECK_INT(p.status, 2);
	CHECK(p.answered);
	/* In two frames, and padded. */
	CHECK_INT(GRPC(SETTINGS HEADERS
		       "\0\0\4\0\0\0\0\0\1\0\0\0\0\0\0\7\0\10\0\0\0\1\3\2\10\1\0\0\0",
		       &p),
		  PROBE_GOOD);
	/* With a field that nobody knows. */
	CHECK_INT(GRPC(SETTINGS "\0\0\13\0\0\0\0\0\1\0\0\0\0\6\22\2xx\10\1", &p), PROBE_GOOD);
	/* Without a status: UNKNOWN. */
	CHECK_INT(GRPC(SETTINGS HEADERS "\0\0\5\0\0\0\0\0\1\0\0\0\0\0", &p), PROBE_BAD);
	CHECK(p.answered);
	CHECK_INT(GRPC(SETTINGS HEADERS, &p), PROBE_MORE);
}

static void refuses_what_is_no_answer(void)
{
	static uint8_t flood[PROBE_ANSWER_MAX + 64];
	struct probe_grpc p;

	CHECK_INT(GRPC("HTTP/1.1 400 Bad Request\r\n", &p), PROBE_BAD);
	/* Headers alone: an error. */
	CHECK_INT(GRPC(SETTINGS "\0\0\3\1\5\0\0\0\1abc", &p), PROBE_BAD);
	CHECK(!p.answered);
	CHECK_INT(GRPC(SETTINGS "\0\0\4\3\0\0\0\0\1\0\0\0\0", &p), PROBE_BAD);
	/* Too long a frame, a padding without room, a message that is compressed, or long. */
	CHECK_INT(GRPC(SETTINGS "\0\100\1\0\0\0\0\0\1", &p), PROBE_BAD);
	CHECK_INT(GRPC(SETTINGS "\0\0\2\0\10\0\0\0\1\7\0", &p), PROBE_BAD);
	CHECK_INT(GRPC(SETTINGS "\0\0\0\0\10\0\0\0\1", &p), PROBE_BAD);
	CHECK_INT(GRPC(SETTINGS "\0\0\7\0\0\0\0\0\1\1\0\0\0\2\10\1", &p), PROBE_BAD);
	CHECK_INT(GRPC(SETTINGS "\0\0\7\0\0\0\0\0\1\0\0\0\0\377\10\1", &p), PROBE_BAD);
	/* A stream that ends in the middle, another's data, a number without an end. */
	CHECK_INT(GRPC(SETTINGS "\0\0\2\0\1\0\0\0\1\0\0", &p), PROBE_BAD);
	CHECK_INT(GRPC(SETTINGS "\0\0\7\0\0\0\0\0\3\0\0\0\0\2\10\1", &p), PROBE_MORE);
	CHECK_INT(GRPC(SETTINGS "\0\0\6\0\0\0\0\0\1\0\0\0\0\1\10", &p), PROBE_BAD);
	/* Settings without an end. */
	for (size_t at = 0; at + 9 <= sizeof(flood); at += 9)
		flood[at + 3] = 4;
	CHECK_INT(grpc(flood, sizeof(flood), &p), PROBE_BAD);
}

UNIT_MAIN({ "reads_a_status_line", reads_a_status_line }, { "asks_over_http", asks_over_http },
	  { "asks_over_grpc", asks_over_grpc }, { "reads_a_status", reads_a_status },
	  { "refuses_what_is_no_answer", refuses_what_is_no_answer })
