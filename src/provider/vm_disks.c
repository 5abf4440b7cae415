/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "instance/model.h"

/* A question for a disk. */
struct machine_disk {
	struct list link;
	struct machine *machine;
	unsigned slot;
	bool first; /* it is being put there for this one */
	peer_done_fn done;
	void *userdata;
	struct loop_defer defer; /* of one that is there already */
};

static void machine_disk_free(struct machine_disk *d)
{
	list_remove(&d->link);
	loop_defer_done(&d->defer);
	free(d);
}

void machine_drop_disks(struct machine *m)
{
	struct machine_disk *d;

	list_for_each (d, &m->disks, struct machine_disk, link)
		machine_disk_free(d);
}

static void machine_disk_answer(struct machine_disk *d, const struct error *err)
{
	peer_done_fn done = d->done;
	void *userdata = d->userdata;

	if (err)
		(void)vm_slots_drop(&d->machine->slots, d->slot);
	machine_disk_free(d);
	done(userdata, err);
}

/* Whoever asked for the same meanwhile is told the same. */
static void machine_on_disk(struct vm *vm, const struct error *err, void *data)
{
	struct machine_disk *d = data, *other;
	struct machine *m = d->machine;
	unsigned slot = d->slot;

	(void)vm;
	list_for_each (other, &m->disks, struct machine_disk, link)
		if (other != d && other->slot == slot)
			machine_disk_answer(other, err);
	machine_disk_answer(d, err);
}

static bool machine_disk_is_coming(const struct machine *m, unsigned slot)
{
	const struct machine_disk *d;

	list_for_each (d, &m->disks, struct machine_disk, link)
		if (d->slot == slot && d->first)
			return true;
	return false;
}

static void machine_disk_is_there(struct loop_defer *defer)
{
	machine_disk_answer(container_of(defer, struct machine_disk, defer), NULL);
}

int machine_put_disk(struct machine *m, const char *name, int fd,
		     char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
		     struct error *err)
{
	const struct vm_disk disk = { .fd = fd, .format = VM_DISK_RAW };
	struct machine_disk *d;
	int r;

	if (!m->vm)
		return error_refuse(err, ERROR_UNAVAILABLE, "its machine has ended");
	r = vm_slots_take(&m->slots, name, err);
	if (r < 0)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)vm_slots_drop(&m->slots, (unsigned)r);
		return error_set(err, -ENOMEM, "a disk");
	}
	*d = (struct machine_disk){
		.machine = m, .slot = (unsigned)r, .done = done, .userdata = userdata
	};
	d->first = m->slots.slot[d->slot].n_users == 1;
	loop_defer_init(&d->defer, m->vms->config.loop, machine_disk_is_there);
	list_init(&d->link);
	vm_slots_serial(d->slot, ret_serial);
	r = d->first ? m->vm->driver->put_disk(m->vm, d->slot, &disk, machine_on_disk, d, err) : 0;
	if (r < 0) {
		(void)vm_slots_drop(&m->slots, d->slot);
		machine_disk_free(d);
		return r;
	}
	if (!d->first && !machine_disk_is_coming(m, d->slot))
		loop_defer_schedule(&d->defer);
	list_add_tail(&m->disks, &d->link);
	return 0;
}
