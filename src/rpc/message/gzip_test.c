/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define MANY (1024U * 1024)

static uint8_t many[MANY];

/* Text that repeats itself, but not too much. */
static void fill(void)
{
	for (size_t i = 0; i < MANY; i++)
		many[i] = (uint8_t)("nacre owns every workload of a node\n"[i % 36] + i / 4096 % 7);
}

static void there_and_back(void)
{
	static const size_t sizes[] = { 200, 1000, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, MANY };
	struct buf small = BUF_INIT, large = BUF_INIT;

	fill();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CHECK_INT(gzip_deflate(&small, many, sizes[i]), 0);
		CHECK(small.len < sizes[i]);
		CHECK_INT(gzip_inflate(&large, buf_data(&small), small.len, sizes[i]), 0);
		CHECK_INT(large.len, sizes[i]);
		CHECK(memcmp(buf_data(&large), many, sizes[i]) == 0);
		buf_done(&large);
		/* One byte more than is allowed. */
		CHECK_INT(gzip_inflate(&large, buf_data(&small), small.len, sizes[i] - 1),
			  -EMSGSIZE);
		buf_done(&large);
		buf_done(&small);
	}
}

static void a_bomb_is_not_made(void)
{
	struct buf small = BUF_INIT, large = BUF_INIT;
	uint8_t *zeros = calloc(64, MANY);

	CHECK(zeros != NULL);
	CHECK_INT(gzip_deflate(&small, zeros, (size_t)64 * MANY), 0);
	free(zeros);
	CHECK_INT(gzip_inflate(&large, buf_data(&small), small.len, MANY), -EMSGSIZE);
	CHECK(large.size <= 4 * MANY);
	buf_done(&large);
	buf_done(&small);
}

static void what_does_not_shrink(void)
{
	struct buf out = BUF_INIT;
	uint8_t noise[1000];
	uint32_t x = 1;

	for (size_t i = 0; i < sizeof(noise); i++) {
		x = x * 1664525 + 1013904223;
		noise[i] = (uint8_t)(x >> 24);
	}
	CHECK_INT(gzip_deflate(&out, noise, sizeof(noise)), -ENOBUFS);
	CHECK_INT(out.len, 0);
	CHECK_INT(gzip_deflate(&out, noise, 0), -ENOBUFS);
	buf_done(&out);
}

static void what_is_no_gzip(void)
{
	struct buf small = BUF_INIT, out = BUF_INIT;
	uint8_t bytes[4096];

	fill();
	CHECK_INT(gzip_deflate(&small, many, 1000), 0);
	CHECK(small.len + 1 < sizeof(bytes));
	/* Cut at every byte. */
	for (size_t n = 0; n < small.len; n++) {
		CHECK_INT(gzip_inflate(&out, buf_data(&small), n, MANY), -EBADMSG);
		buf_done(&out);
	}
	/* Something behind it. */
	memcpy(bytes, buf_data(&small), small.len);
	bytes[small.len] = 0;
	CHECK_INT(gzip_inflate(&out, bytes, small.len + 1, MANY), -EBADMSG);
	buf_done(&out);
	/* A wrong checksum. */
	bytes[small.len - 8] ^= 1;
	CHECK_INT(gzip_inflate(&out, bytes, small.len, MANY), -EBADMSG);
	buf_done(&out);
	CHECK_INT(gzip_inflate(&out, many, 1000, MANY), -EBADMSG);
	buf_done(&out);
	buf_done(&small);
}

UNIT_MAIN({ "there and back", there_and_back }, { "a bomb is not made", a_bomb_is_not_made },
	  { "what does not shrink", what_does_not_shrink }, { "what is no gzip", what_is_no_gzip })
