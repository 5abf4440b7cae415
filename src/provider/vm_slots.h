/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_SLOTS_H
#define NACRE_PROVIDER_VM_SLOTS_H

#include <stddef.h>

#include "vm/driver/driver.h"

/*
 * Which disk is in which slot of a machine, and for how many: what is only read, is there once for
 * all that want it. A disk is known by a name of at most VM_DISK_NAME_MAX bytes, such as the digest
 * of its image.
 */

struct vm_slot {
	char name[VM_DISK_NAME_MAX + 1]; /* "" : empty */
	unsigned n_users;
};

struct vm_slots {
	struct vm_slot slot[VM_SLOTS_MAX];
	unsigned n;
};

/* The slot of that disk, with one user more: the one that has it, or an empty one. ERROR_EXHAUSTED
 * where all are taken, ERROR_INVALID for a name that cannot be. */
int vm_slots_take(struct vm_slots *s, const char *name, struct error *err);
/* The same for one that is known to be there already, after a restart: -EBADMSG where it cannot be.
 */
int vm_slots_claim(struct vm_slots *s, unsigned slot, const char *name);
/* The users that are left; with 0 it is empty. */
unsigned vm_slots_drop(struct vm_slots *s, unsigned slot);

/* The slot that has that disk, or -ENOENT. */
int vm_slots_find(const struct vm_slots *s, const char *name);

/* "slot3": what the guest finds it by. */
#define VM_SERIAL_SIZE 16
void vm_slots_serial(unsigned slot, char ret[VM_SERIAL_SIZE]);
/* The slot, or -EINVAL. */
int vm_slots_of(const struct vm_slots *s, const char *serial);

#endif
