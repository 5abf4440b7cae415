/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/title.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "unit.h"

/* What ps reads. */
static void expect(const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	CHECK(fd_read_file(AT_FDCWD, name, 4096, &b) == 0);
	CHECK(buf_add(&b, "", 1) == 0);
	CHECK_STR((const char *)buf_data(&b), text);
}

static void kernel_shows_it(void)
{
	char *argv[] = { program_invocation_name, NULL };
	char was[4096], cut[4096];
	size_t n = strlen(program_invocation_name);

	title_set("before init nothing happens but the name");
	expect("/proc/self/cmdline", program_invocation_name);
	expect("/proc/self/comm", "nacre\n");
	CHECK(n > 3 && n < sizeof(was));
	title_init(0, argv);
	title_init(1, argv);
	title_set("ab");
	expect("/proc/self/cmdline", "ab");
	memset(was, 'y', sizeof(was));
	was[sizeof(was) - 1] = '\0';
	memset(cut, 'y', n);
	cut[n] = '\0';
	title_set(was);
	expect("/proc/self/cmdline", cut);
	title_set("");
	expect("/proc/self/cmdline", "");
}

/* Only what lies in one run is taken over. */
static void foreign_arguments_are_left(void)
{
	char run[] = "one\0two\0keep";
	char other[] = "other";
	char *argv[] = { run, run + 4, other, NULL };

	title_init(3, argv);
	title_set("0123456789abcdef");
	CHECK_STR(run, "0123456");
	CHECK_STR(run + 8, "keep");
	CHECK_STR(other, "other");
}

UNIT_MAIN({ "the kernel shows it", kernel_shows_it },
	  { "foreign arguments are left", foreign_arguments_are_left })
