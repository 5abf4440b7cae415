/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/disk/disk_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

/* The kernel shows the name of the file beside the device, so the serial is in that. */
#define DISK_LOOP_NAME "nacre-disk-"
#define DISK_LOOP_SHOWN "/memfd:" DISK_LOOP_NAME
#define DISK_LOOP_TRIES 8
#define DISK_LOOP_DEVICE_MAX 32

bool disk_loop_serial_is_valid(const char *serial)
{
	size_t n = strlen(serial);

	return n > 0 && n <= DISK_LOOP_SERIAL_MAX &&
	       strspn(serial, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

int disk_loop_file(const char *serial, struct error *err)
{
	char name[sizeof(DISK_LOOP_NAME) + DISK_LOOP_SERIAL_MAX];
	int fd;

	if (!disk_loop_serial_is_valid(serial) ||
	    str_printf(name, sizeof(name), DISK_LOOP_NAME "%s", serial) < 0)
		return error_field(err, ERROR_INVALID, "serial",
				   "\"%.32s\" is not 1 to %d of a-z, 0-9 and '-'", serial,
				   DISK_LOOP_SERIAL_MAX);
	fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? error_set(err, -errno, "make a file in memory") : fd;
}

static int disk_loop_configure(int dev_fd, int control_fd, int file_fd)
{
	const struct loop_config config = { .fd = (uint32_t)file_fd,
					    .info = { .lo_flags = LO_FLAGS_READ_ONLY } };
	char name[DISK_LOOP_DEVICE_MAX];
	_cleanup_fd_ int fd = -1;
	int n = ioctl(control_fd, LOOP_CTL_GET_FREE);

	if (n < 0)
		return -errno;
	(void)str_printf(name, sizeof(name), "loop%d", n);
	fd = sysio_openat(dev_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	return ioctl(fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

int disk_loop_attach(int dev_fd, int file_fd, struct error *err)
{
	_cleanup_fd_ int control_fd =
		sysio_openat(dev_fd, "loop-control", O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
	int r = -EBUSY;

	if (control_fd < 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the kernel of this machine has no loop devices (%s)",
				    strerror(errno));
	/* Somebody else may take the one that is free. */
	for (int n = 0; r == -EBUSY && n < DISK_LOOP_TRIES; n++)
		r = disk_loop_configure(dev_fd, control_fd, file_fd);
	return r < 0 ? error_set(err, r, "make a disk of a file in memory") : 0;
}

bool disk_loop_is(int sys_fd, const char *device, const char *serial)
{
	static const char shown[] = DISK_LOOP_SHOWN, gone[] = " (deleted)\n";
	_cleanup_(buf_done) struct buf name = BUF_INIT_LIMIT(256);
	char path[256];
	size_t n = strlen(serial);
	const char *text;

	if (!str_has_prefix(device, "loop") ||
	    str_printf(path, sizeof(path), "%s/loop/backing_file", device) < 0 ||
	    fd_read_file(sys_fd, path, 128, &name) < 0 ||
	    name.len != strlen(shown) + n + strlen(gone))
		return false;
	text = (const char *)buf_data(&name);
	return memcmp(text, shown, strlen(shown)) == 0 &&
	       memcmp(text + strlen(shown), serial, n) == 0 &&
	       memcmp(text + strlen(shown) + n, gone, strlen(gone)) == 0;
}
