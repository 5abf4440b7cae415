/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QEMU_H
#define NACRE_VM_QEMU_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/text/json.h"
#include "vm/driver/driver.h"

/*
 * The arguments of QEMU for a machine, and its commands to add and remove a disk: pure functions of
 * a specification. It gets every file and socket by descriptor. The kernel, its first root and the
 * firmware are the only ones that it opens by name, /proc/self/fd/N: it takes no descriptor for
 * those.
 */

#define QEMU_PROGRAM "/usr/bin/qemu-system-x86_64"
#define QEMU_FDS_MAX (7 + 2 * VM_DISKS_MAX + VM_NICS_MAX + VM_PORTS_MAX + VM_SHARES_MAX)

/* The arguments that the driver adds to a specification. */
struct qemu_place {
	int qmp_fd;       /* a listening socket */
	int firmware_fd;  /* vm/driver/firmware.h */
	unsigned tsc_khz; /* the host's (vm/driver/tsc.h); only for an emulated processor */
};

/* Of one whose instructions are counted: the counter is in nanoseconds. */
#define QEMU_COUNTED_KHZ 1000000

struct qemu_call {
	char **argv;
	int fds[QEMU_FDS_MAX]; /* the caller's descriptors that become 3, 4, ... in QEMU */
	size_t n_fds;
};

#define QEMU_CALL_INIT                                                                             \
	{                                                                                          \
		.argv = NULL                                                                       \
	}

/* The spec was checked (vm_spec_check()). ERROR_INVALID where the kernel's command line gets too
 * long. */
int qemu_call_make(struct qemu_call *ret, const struct vm_spec *spec,
		   const struct qemu_place *place, struct error *err);
void qemu_call_done(struct qemu_call *call);

/* ---- disks: members of QEMU's JSON ---- */

/* Sets of what is there from the start; those of slots have higher ones (vm/qemu/qemu_slots.h). */
#define QEMU_BASE_SET 8
#define QEMU_FIRMWARE_SET 16
#define QEMU_VARS_SET 17

/*
 * A disk is a file node "file<set>" on descriptor set `set`, with a qcow2 one over it,
 * "image<set>", where it is one. A base is a disk on the set QEMU_BASE_SET behind. The device's own
 * node, "slot<n>", is opened again on top of either, or of the empty one, "none<n>". A set is
 * numbered once in the life of a machine.
 */
void qemu_put_file(struct json *j, uint64_t set, const struct vm_disk *disk);
void qemu_put_image(struct json *j, uint64_t set, const struct vm_disk *disk);
/* The slot with the disk of that set in it, or with none (disk NULL). writable: the slot. */
void qemu_put_slot(struct json *j, unsigned slot, uint64_t set, const struct vm_disk *disk,
		   bool writable);

#endif
