/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_NEST_DISKS_H
#define NACRE_INIT_NEST_DISKS_H

#include "base/log/error.h"
#include "isolate/disk/disk.h"

/*
 * The disks of a guest as those of a machine in it. Each slot of that machine shows the block
 * device of the same slot of this one, from its start to its end: so an image that is put into a
 * slot of the outer machine is in the inner one too, by the same serial, and nothing needs to be
 * passed on. The disk in a slot may change; nothing of it is kept on the way (O_DIRECT).
 */

#define NEST_SLOTS 12

struct instance;

struct nest_disks {
	struct disk_places places;
	int fds[NEST_SLOTS];
	unsigned n_open, n_left; /* slots that are there; that are not shown yet */
	struct error err;
	void (*done)(struct nest_disks *d, const struct error *err);
};

#define NEST_DISKS_INIT                                                                            \
	{                                                                                          \
		.places = {.sys_fd = -1, .dev_fd = -1, .bus_fd = -1, .own_fd = -1 }                \
	}

/* All slots that this machine has. */
int nest_disks_open(struct nest_disks *d, struct error *err);
void nest_disks_close(struct nest_disks *d);
/* The EROFS on the disk of this serial: a detached mount. ERROR_PRECONDITION names `tools` where
 * there is no such disk. */
int nest_disks_mount(struct nest_disks *d, const char *serial, struct error *err);
/* Into the slots of an instance that is READY. done is called once. */
void nest_disks_put(struct nest_disks *d, struct instance *i,
		    void (*done)(struct nest_disks *d, const struct error *err));

#endif
