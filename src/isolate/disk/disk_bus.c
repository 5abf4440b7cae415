/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/disk_bus.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"

#define BUS_PATH_SIZE 128
#define BUS_VALUE_MAX 64
#define BUS_PREFIX "virtio"
#define BUS_DISK "0x0002\n" /* as virtio numbers kinds of devices */

/* "virtio7": 7 */
static int bus_number(const char *device, uint64_t *ret)
{
	return str_has_prefix(device, BUS_PREFIX)
		       ? parse_u64(device + strlen(BUS_PREFIX), 0, INT_MAX, ret)
		       : -EINVAL;
}

static bool bus_has(int bus_fd, const char *device, const char *name)
{
	char path[BUS_PATH_SIZE];
	_cleanup_fd_ int fd = -1;

	if (str_printf(path, sizeof(path), "devices/%s/%s", device, name) < 0)
		return false;
	fd = sysio_openat(bus_fd, path, O_PATH | O_CLOEXEC, 0);
	return fd >= 0;
}

static bool bus_waits(int bus_fd, const char *device)
{
	_cleanup_(buf_done) struct buf kind = BUF_INIT_LIMIT(BUS_VALUE_MAX);
	char path[BUS_PATH_SIZE];

	return str_printf(path, sizeof(path), "devices/%s/device", device) > 0 &&
	       fd_read_file(bus_fd, path, BUS_VALUE_MAX / 2, &kind) == 0 &&
	       kind.len == strlen(BUS_DISK) && memcmp(buf_data(&kind), BUS_DISK, kind.len) == 0 &&
	       !bus_has(bus_fd, device, "driver");
}

static const char *bus_next(int bus_fd, char **devices, uint64_t from, uint64_t *ret_number)
{
	const char *next = NULL;
	uint64_t number;

	for (size_t i = 0; devices && devices[i]; i++) {
		if (bus_number(devices[i], &number) < 0 || number < from ||
		    (next && number > *ret_number) || !bus_waits(bus_fd, devices[i]))
			continue;
		next = devices[i];
		*ret_number = number;
	}
	return next;
}

int disk_bring_up(int bus_fd)
{
	_cleanup_strv_ char **devices = NULL;
	_cleanup_fd_ int dir_fd = -1, bind_fd = -1;
	const char *device;
	uint64_t number = 0;

	dir_fd = sysio_openat(bus_fd, "devices", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	bind_fd = sysio_openat(bus_fd, "drivers/virtio_blk/bind", O_WRONLY | O_CLOEXEC, 0);
	if (dir_fd < 0 || bind_fd < 0 || fd_list_dir(dir_fd, &devices) < 0)
		return -ENODEV;
	for (uint64_t from = 0;; from = number + 1) {
		device = bus_next(bus_fd, devices, from, &number);
		if (!device)
			return -ENODEV;
		/* Somebody else may have been quicker, or it is broken: the next one. */
		if (fd_write_full(bind_fd, device, strlen(device)) == 0)
			return 0;
	}
}
