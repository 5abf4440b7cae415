/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/build_id.h"

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "unit.h"

/* A hash of 20 bytes, and the very bytes that stand in the file. */
static void is_that_of_the_program(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const char *id = build_id();
	uint8_t raw[20];

	CHECK_INT(strlen(id), 40);
	CHECK_INT(strspn(id, "0123456789abcdef"), 40);
	CHECK(build_id() == id);
	for (size_t i = 0; i < sizeof(raw); i++) {
		char two[3] = { id[2 * i], id[2 * i + 1], '\0' };

		raw[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	CHECK_INT(fd_read_file(-100, "/proc/self/exe", 64 << 20, &b), 0);
	CHECK(memmem(buf_data(&b), b.len, raw, sizeof(raw)) != NULL);
}

UNIT_MAIN({ "is that of the program", is_that_of_the_program })
