/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_DISK_H
#define NACRE_ISOLATE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * A block device as the root of a container, where no mount can be passed to the keeper that starts
 * it: the device is found by the serial that its machine gives it, its EROFS lies under a tmpfs,
 * and both live as long as the overlay that is made of them. All of this may block.
 */

#define DISK_NAME_MAX 31
/* Of /sys/block that are looked at. */
#define DISK_DEVICES_MAX 1024

/* Where the devices are, not owned. */
struct disk_places {
	int sys_fd; /* of /sys/block */
	int dev_fd; /* of /dev */
	/*
	 * Of /sys/bus/virtio, where the driver of disks has not looked at its devices when it was
	 * loaded (init/guest_modules.h): a machine shows slots for many, and to look at one takes
	 * milliseconds where the processor is emulated. -1: all were looked at.
	 */
	int bus_fd;
	/* A directory on a mount of this process's own, where a name is used for a moment. */
	int own_fd;
};

#define DISK_PLACES_NONE                                                                           \
	{                                                                                          \
		.sys_fd = -1, .dev_fd = -1, .bus_fd = -1, .own_fd = -1                             \
	}

/* Those of the machine that this process sees, but for own_fd; they are the caller's. */
int disk_places_open(struct disk_places *ret, struct error *err);
void disk_places_close(struct disk_places *places);

struct disk_file {
	const char *path;
	unsigned mode;
	const void *data;
	size_t len;
};

struct disk_root {
	const char *name;     /* one component, that nothing has in own_fd */
	uint64_t upper_bytes; /* of the tmpfs; 0: as the kernel has it */
	const struct disk_file *files;
	size_t n_files;
};

/* The device with this serial; those that nobody has looked at yet come up, in their order, until
 * it is there. -ENODEV where there is none (yet). */
int disk_find(const struct disk_places *places, const char *serial, char ret[DISK_NAME_MAX + 1]);
/* Whether nobody holds a device: 1 or 0; or an errno. */
int disk_is_free(const struct disk_places *places, const char *device);
/* The EROFS on it as a detached mount, read-only. ERROR_PRECONDITION where there is none. */
int disk_mount(const struct disk_places *places, const char *device, struct error *err);
/* A detached mount, writable. Each file takes the place of whatever the disk has there
 * (base/file/rootfd.h, rootfd_put()); where the path to it leads to no directory there is none.
 * ERROR_PRECONDITION where there is no EROFS on the device, or a directory with something in it in
 * a file's place. Nothing is left of what fails. */
int disk_mount_root(const struct disk_places *places, const char *device,
		    const struct disk_root *root, struct error *err);

/*
 * The volumes of the machine (vm/disk/share.h): one virtiofs, with each of them by its name. It is
 * mounted once, on own_fd/DISK_SHARES_PLACE, and stays there: the kernel might take a volume for
 * the whole when it was mounted again. A descriptor of it. ERROR_PRECONDITION where the machine has
 * none.
 */
#define DISK_SHARES_TAG "nacre"
#define DISK_SHARES_PLACE "shares"
int disk_mount_shares(int own_fd, struct error *err);
/* The directory or file of this name as a detached mount (isolate/mount/bind.h). ERROR_PRECONDITION
 * where the machine is given none such. */
int disk_open_share(int shares_fd, const char *name, bool read_only, bool no_exec,
		    struct error *err);

#endif
