/* SPDX-License-Identifier: Apache-2.0 */

/* The daemon's configuration. */

#include "daemon/config.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_fd_ int fd = memfd_create("config", MFD_CLOEXEC);
	struct error err = ERROR_INIT;
	static struct config c; /* larger than a frame may be */
	char path[64];

	fuzz_need(fd >= 0 && fd_write_full(fd, data, size) == 0);
	fuzz_need(lseek(fd, 0, SEEK_SET) == 0);
	fuzz_need(str_printf(path, sizeof(path), "/proc/self/fd/%d", fd) >= 0);
	config_init(&c);
	if (config_load(&c, path, false, &err) < 0)
		fuzz_need(err.code != 0 && err.text[0] != '\0');
	return 0;
}
