/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/footprint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

#define MIB ((uint64_t)1 << 20)

/* 256 MiB of RAM between the rest, and a reservation that is larger. */
static const char recorded[] =
	"55d0e0000000-55d0e0400000 r-xp 00000000 fe:00 1234    /usr/bin/qemu\n"
	"Size:               4096 kB\n"
	"Rss:                3000 kB\n"
	"Pss:                1500 kB\n"
	"Pss_Dirty:             0 kB\n"
	"7f0000000000-7f0040000000 rwxp 00000000 00:00 0\n"
	"Size:            1048576 kB\n"
	"Pss:                 700 kB\n"
	"7f1000000000-7f1010000000 rw-p 00000000 00:00 0\n"
	"Size:             262144 kB\n"
	"Pss:              100000 kB\n"
	"7fff00000000-7fff00021000 rw-p 00000000 00:00 0   [stack]\n"
	"Pss:                  20 kB\n";

static void ram_is_told_apart(void)
{
	struct footprint f = { 0, 0 };

	footprint_parse(recorded, 256 * MIB, &f);
	CHECK_INT(f.ram, 100000 * 1024);
	CHECK_INT(f.other, (1500 + 700 + 20) * 1024);
	/* One after the other adds up. */
	footprint_parse(recorded, 0, &f);
	CHECK_INT(f.ram, 100000 * 1024);
	CHECK_INT(f.other, (2 * (1500 + 700 + 20) + 100000) * 1024);
	f = (struct footprint){ 0, 0 };
	footprint_parse(recorded, 2048 * MIB, &f);
	CHECK(f.ram == 0 && f.other > 0);
	footprint_parse("", MIB, &f);
	footprint_parse("Pss:", MIB, &f);
	footprint_parse("x\nPss: x\n1-\n-2 \n", MIB, &f);
	CHECK_INT(f.ram, 0);
}

/* Of this very process, with memory that it has touched. */
static void is_what_the_kernel_says(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	struct footprint f = { 0, 0 };
	size_t size = 64 * MIB;
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 1, 16 * MIB);
	if (fd_read_file(AT_FDCWD, "/proc/self/smaps", 8 * MIB, &b) == 0)
		text = buf_take_str(&b);
	if (text) {
		footprint_parse(text, size, &f);
		CHECK(f.ram >= 16 * MIB && f.ram < 64 * MIB);
		CHECK(f.other > 0 && f.other < 1024 * MIB);
	}
	CHECK_INT(munmap(p, size), 0);
}

UNIT_MAIN({ "RAM is told apart", ram_is_told_apart },
	  { "is what the kernel says", is_what_the_kernel_says })
