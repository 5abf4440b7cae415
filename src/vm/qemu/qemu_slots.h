/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QEMU_SLOTS_H
#define NACRE_VM_QEMU_SLOTS_H

#include <stdint.h>

#include "base/log/error.h"
#include "vm/driver/driver.h"
#include "vm/qemu/qmp.h"

/*
 * Which disk is in which slot of a machine, and the conversation that changes it (vm/qemu/qemu.h
 * has the words). A value. A change that fails half-way is undone; an object that QEMU refuses to
 * remove stays in it, with a name that is never used again.
 */

/* Of a descriptor set: which slot it is for, and the how manieth. */
#define SLOTS_PER_SET 32

struct slots;

struct slots_change {
	struct slots *slots;
	bool busy;
	unsigned step;
	bool filled; /* the medium in it now: whether there is one, its set, its format */
	uint64_t set;
	struct vm_disk disk;
	char name[VM_DISK_NAME_MAX + 1];
	bool next_filled;
	uint64_t next_set;
	struct vm_disk next;
	char next_name[VM_DISK_NAME_MAX + 1];
	struct error err;
	vm_done_fn done;
	void *data;
};

struct slots {
	struct qmp *qmp; /* NULL: nobody to ask */
	struct vm *vm;   /* for done() */
	unsigned n;
	uint32_t writable;
	uint64_t generation;
	struct slots_change slot[VM_SLOTS_MAX];
};

/* Nothing is in any. */
void slots_init(struct slots *s, struct vm *vm, unsigned n, uint32_t writable);
/* Calls nothing. */
void slots_done(struct slots *s);
/* As vm_driver.put_disk; disk NULL: remove_disk. */
int slots_change(struct slots *s, unsigned slot, const struct vm_disk *disk, vm_done_fn done,
		 void *data, struct error *err);
/* Learns the slots and their media from QEMU's answer to query-block. -EPROTO where it is no such
 * answer. */
int slots_learn(struct slots *s, const struct json_value *answer, struct error *err);
/* Learns the names of the disks from its answer to query-fdsets, after slots_learn(). */
int slots_learn_names(struct slots *s, const struct json_value *answer, struct error *err);

#endif
