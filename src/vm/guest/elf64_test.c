/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/elf64.h"

#include <fcntl.h>

#include "base/file/fd.h"
#include "unit.h"
#include "vm/guest/elf64_test.h"

#define PVH_NOTE "\4\0\0\0\4\0\0\0\x12\0\0\0Xen\0\0\0\0\1"

static void finds_the_way_in(void)
{
	struct elf_made e;

	elf_made_segment(&e, PT_NOTE, PVH_NOTE, sizeof(PVH_NOTE) - 1);
	CHECK(elf_is_valid(e.data, e.len));
	CHECK(elf_is_pvh(e.data, e.len));
	CHECK(!elf_is_dynamic(e.data, e.len));
	e.data[512 + 8] = 0x13;
	CHECK(!elf_is_pvh(e.data, e.len));
	e.data[512 + 8] = 0x12;
	e.data[512 + 4] = 5;
	CHECK(!elf_is_pvh(e.data, e.len));
	elf_made_segment(&e, PT_INTERP, "/lib/ld.so", 11);
	CHECK(elf_is_dynamic(e.data, e.len));
	CHECK(!elf_is_pvh(e.data, e.len));
}

static void tells_its_memory(void)
{
	struct elf_made e;

	elf_made_segment(&e, PT_LOAD, "x", 1);
	CHECK_INT(elf_memory(e.data, e.len), 101);
	elf_made_segment(&e, PT_NOTE, "x", 1);
	CHECK_INT(elf_memory(e.data, e.len), 0);
}

static void finds_a_section(void)
{
	const uint8_t *found;
	struct elf_made e;
	size_t len;

	elf_made_module(&e, "depends=\0", 9);
	CHECK(elf_section(e.data, e.len, ".modinfo", &found, &len));
	CHECK_INT(len, 9);
	CHECK(found == e.data + 1024);
	CHECK(!elf_section(e.data, e.len, ".modinf", &found, &len));
	CHECK(!elf_section(e.data, e.len, ".modinfo2", &found, &len));
}

/* Every length and every byte of its tables: nothing outside of it is read. */
static void survives_other_bytes(void)
{
	struct elf_made module, program, other;
	const uint8_t *found;
	size_t len;

	elf_made_module(&module, "depends=a\0", 10);
	elf_made_segment(&program, PT_NOTE, PVH_NOTE, sizeof(PVH_NOTE) - 1);
	for (size_t n = 0; n < module.len; n++) {
		uint8_t *copy = malloc(n + 1);

		CHECK(copy != NULL);
		if (!copy)
			return;
		memcpy(copy, module.data, n);
		CHECK(!elf_section(copy, n, ".modinfo", &found, &len));
		memcpy(copy, program.data, MIN(n, program.len));
		(void)elf_is_pvh(copy, MIN(n, program.len));
		free(copy);
	}
	for (size_t at = 0; at < 512; at++)
		for (unsigned value = 0; value < 256; value += 15) {
			other = module;
			other.data[at] = (uint8_t)value;
			if (elf_section(other.data, other.len, ".modinfo", &found, &len))
				CHECK(found >= other.data && len <= other.len &&
				      found + len <= other.data + other.len);
			other = program;
			other.data[at] = (uint8_t)value;
			(void)elf_is_pvh(other.data, other.len);
			(void)elf_memory(other.data, other.len);
			CHECK(elf_trim(other.data, other.len) <= other.len);
		}
}

/* This very program. */
static void leaves_what_runs(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const uint8_t *found;
	size_t len, was;

	if (fd_read_file(AT_FDCWD, "/proc/self/exe", (size_t)256 << 20, &b) < 0)
		SKIP("no memory for it");
	was = b.len;
	CHECK(elf_section(buf_data(&b), b.len, ".symtab", &found, &len));
	b.len = elf_trim(b.base + b.head, b.len);
	CHECK(b.len < was);
	CHECK(elf_is_valid(buf_data(&b), b.len));
	CHECK(elf_memory(buf_data(&b), b.len) > 0);
	CHECK(!elf_section(buf_data(&b), b.len, ".symtab", &found, &len));
}

UNIT_MAIN({ "finds_the_way_in", finds_the_way_in }, { "tells_its_memory", tells_its_memory },
	  { "finds_a_section", finds_a_section }, { "survives_other_bytes", survives_other_bytes },
	  { "leaves_what_runs", leaves_what_runs })
