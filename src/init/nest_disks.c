/* SPDX-License-Identifier: Apache-2.0 */
#include "init/nest_disks.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "instance/instance.h"

static void disks_name(unsigned slot, char ret[INSTANCE_SERIAL_SIZE])
{
	(void)str_printf(ret, INSTANCE_SERIAL_SIZE, "slot%u", slot);
}

static int disks_open_place(const char *path, int *ret, struct error *err)
{
	*ret = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return *ret < 0 ? error_set(err, -errno, "open %s", path) : 0;
}

int nest_disks_open(struct nest_disks *d, struct error *err)
{
	char name[INSTANCE_SERIAL_SIZE], device[DISK_NAME_MAX + 1];
	int r;

	r = disks_open_place("/sys/block", &d->places.sys_fd, err);
	if (r == 0)
		r = disks_open_place("/dev", &d->places.dev_fd, err);
	if (r == 0)
		r = disks_open_place("/sys/bus/virtio", &d->places.bus_fd, err);
	for (; r == 0 && d->n_open < NEST_SLOTS; d->n_open++) {
		disks_name(d->n_open, name);
		r = disk_find(&d->places, name, device);
		if (r < 0)
			return error_refuse(err, ERROR_PRECONDITION,
					    "this machine has no %s: machines in it are for those "
					    "that nacre has made",
					    name);
		r = sysio_openat(d->places.dev_fd, device,
				 O_RDONLY | O_DIRECT | O_NOFOLLOW | O_CLOEXEC, 0);
		if (r < 0)
			return error_set(err, -errno, "open the disk %s", device);
		d->fds[d->n_open] = r;
		r = 0;
	}
	return r;
}

void nest_disks_close(struct nest_disks *d)
{
	while (d->n_open > 0)
		(void)fd_close(d->fds[--d->n_open]);
	d->places.sys_fd = fd_close(d->places.sys_fd);
	d->places.dev_fd = fd_close(d->places.dev_fd);
	d->places.bus_fd = fd_close(d->places.bus_fd);
}

int nest_disks_mount(struct nest_disks *d, const char *serial, struct error *err)
{
	char device[DISK_NAME_MAX + 1];
	int r = disk_find(&d->places, serial, device);

	if (r < 0)
		return error_field(err, ERROR_PRECONDITION, "tools", "there is no disk %s", serial);
	return disk_mount(&d->places, device, err);
}

static void disks_on_put(void *userdata, const struct error *err)
{
	struct nest_disks *d = userdata;

	if (err && !d->err.code)
		d->err = *err;
	if (--d->n_left == 0)
		d->done(d, d->err.code ? &d->err : NULL);
}

void nest_disks_put(struct nest_disks *d, struct instance *i,
		    void (*done)(struct nest_disks *d, const struct error *err))
{
	char name[INSTANCE_SERIAL_SIZE], serial[INSTANCE_SERIAL_SIZE];
	struct error err = ERROR_INIT;

	d->done = done;
	d->n_left = d->n_open;
	for (unsigned n = 0; n < d->n_open; n++) {
		disks_name(n, name);
		if (instance_put_disk(i, name, d->fds[n], serial, disks_on_put, d, &err) == 0 &&
		    !str_eq(name, serial))
			(void)error_refuse(&err, ERROR_FAULT, "%s became %s", name, serial);
		if (!err.code)
			continue;
		done(d, &err);
		return;
	}
}
