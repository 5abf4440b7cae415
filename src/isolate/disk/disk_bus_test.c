/* SPDX-License-Identifier: Apache-2.0 */

/* A directory stands for /sys/bus/virtio; what is bound is read from the file that takes it. */

#include "isolate/disk/disk_bus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static struct {
	char dir[64];
	int fd;
} bus = { .fd = -1 };

static void make_dir(const char *path)
{
	CHECK(mkdirat(bus.fd, path, 0755) == 0);
}

static void put(const char *path, const char *text)
{
	_cleanup_fd_ int fd = openat(bus.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
}

static void put_device(const char *name, const char *kind)
{
	char path[64];

	(void)str_printf(path, sizeof(path), "devices/%s", name);
	make_dir(path);
	(void)str_printf(path, sizeof(path), "devices/%s/device", name);
	put(path, kind);
}

static void begin(void)
{
	(void)str_copy(bus.dir, sizeof(bus.dir), "/tmp/isolate-disk-bus-XXXXXX");
	CHECK(mkdtemp(bus.dir) != NULL);
	bus.fd = open(bus.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_dir("devices");
	make_dir("drivers");
	make_dir("drivers/virtio_blk");
	put("drivers/virtio_blk/bind", "");
	put_device("virtio0", "0x0001\n");
	put_device("virtio2", "0x0002\n");
	put_device("virtio10", "0x0002\n");
	put_device("virtio9", "0x0002\n");
	put_device("other", "0x0002\n");
	put_device("virtio11", "0x00020\n");
}

static void end(void)
{
	bus.fd = fd_close(bus.fd);
	CHECK_INT(scratch_remove(bus.dir), 0);
}

static bool bound(const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	return fd_read_file(bus.fd, "drivers/virtio_blk/bind", 256, &b) == 0 &&
	       b.len == strlen(want) && memcmp(buf_data(&b), want, b.len) == 0;
}

static void in_the_order_of_their_numbers(void)
{
	static const char *const order[] = { "virtio2", "virtio9", "virtio10" };

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		char driver[64];

		put("drivers/virtio_blk/bind", "");
		CHECK_INT(disk_bring_up(bus.fd), 0);
		CHECK(bound(order[i]));
		(void)str_printf(driver, sizeof(driver), "devices/%s/driver", order[i]);
		make_dir(driver);
	}
	CHECK_INT(disk_bring_up(bus.fd), -ENODEV);
	end();
}

static void one_that_cannot_be_bound_is_passed_over(void)
{
	begin();
	CHECK(unlinkat(bus.fd, "drivers/virtio_blk/bind", 0) == 0);
	CHECK_INT(disk_bring_up(bus.fd), -ENODEV);
	/* Takes no byte. */
	CHECK(symlinkat("/dev/full", bus.fd, "drivers/virtio_blk/bind") == 0);
	CHECK_INT(disk_bring_up(bus.fd), -ENODEV);
	end();
}

UNIT_MAIN({ "in_the_order_of_their_numbers", in_the_order_of_their_numbers },
	  { "one_that_cannot_be_bound_is_passed_over", one_that_cannot_be_bound_is_passed_over })
