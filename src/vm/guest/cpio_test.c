/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/cpio.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "unit.h"

/* What the kernel's documentation of the form asks for, digit by digit. */
static void writes_the_form(void)
{
	static const char want[] = "070701"
				   "00000001000041ED0000000000000000"
				   "00000002000000000000000000000000"
				   "00000000000000000000000000000004"
				   "00000000"
				   "dev\0\0\0"
				   "070701"
				   "00000002000081A40000000000000000"
				   "00000001000000000000000500000000"
				   "00000000000000000000000000000002"
				   "00000000"
				   "a\0hello\0\0\0"
				   "070701"
				   "00000003000021800000000000000000"
				   "00000001000000000000000000000000"
				   "0000000000000005000000010000000C"
				   "00000000"
				   "dev/console\0\0\0"
				   "070701"
				   "00000004000000000000000000000000"
				   "00000001000000000000000000000000"
				   "0000000000000000000000000000000B"
				   "00000000"
				   "TRAILER!!!\0\0\0\0";
	_cleanup_fd_ int fd = memfd_create("cpio", MFD_CLOEXEC);
	char got[sizeof(want)] = "";
	struct cpio c = CPIO_INIT(fd);

	CHECK_INT(cpio_add_dir(&c, "dev", NULL), 0);
	CHECK_INT(cpio_add_file(&c, "a", 0644, "hello", 5, NULL), 0);
	CHECK_INT(cpio_add_char_device(&c, "dev/console", 0600, 5, 1, NULL), 0);
	CHECK_INT(cpio_end(&c, NULL), 0);
	CHECK_INT(c.size, sizeof(want) - 1);
	CHECK_INT(pread(fd, got, sizeof(got), 0), sizeof(want) - 1);
	CHECK(memcmp(got, want, sizeof(want) - 1) == 0);
}

static void tells_what_fails(void)
{
	static char name[300];
	struct error err = ERROR_INIT;
	struct cpio c = CPIO_INIT(-1);

	CHECK_INT(cpio_add_dir(&c, "dev", &err), -EBADF);
	memset(name, 'x', sizeof(name) - 1);
	CHECK_INT(cpio_add_dir(&c, name, &err), -EINVAL);
	CHECK_INT(cpio_add_file(&c, "a", 0644, "", (size_t)UINT32_MAX, &err), -EINVAL);
}

UNIT_MAIN({ "writes_the_form", writes_the_form }, { "tells_what_fails", tells_what_fails })
