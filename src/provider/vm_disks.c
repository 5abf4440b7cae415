/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/error.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/end.h"
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

static void machine_forget_file(struct machine *m, unsigned slot)
{
	m->files[slot].fd = fd_close(m->files[slot].fd);
}

/* Without one it is a disk that nobody looks after. */
static void machine_keep_file(struct machine *m, unsigned slot, int fd)
{
	struct stat st;

	machine_forget_file(m, slot);
	if (fstat(fd, &st) < 0)
		return;
	m->files[slot].fd = fd_copy(fd);
	m->files[slot].size = st.st_size;
}

/* The monitor reads zeroes behind the end of a file, without a word, and so does the guest. One
 * that was only removed is there for as long as it is open. */
void machine_check_disks(struct machine *m)
{
	char reason[MACHINE_TEXT_MAX];
	struct stat st;

	for (unsigned n = 0; n < MACHINE_SLOTS; n++) {
		if (m->files[n].fd < 0 || fstat(m->files[n].fd, &st) < 0 ||
		    st.st_size >= m->files[n].size)
			continue;
		(void)str_printf(reason, sizeof(reason),
				 "the disk of the image %.80s was cut from %lld to %lld bytes "
				 "while it was used",
				 m->slots.slot[n].name, (long long)m->files[n].size,
				 (long long)st.st_size);
		instance_break(m->instance, reason);
		return;
	}
}

static void machine_disk_answer(struct machine_disk *d, const struct error *err)
{
	peer_done_fn done = d->done;
	void *userdata = d->userdata;

	if (err && vm_slots_drop(&d->machine->slots, d->slot) == 0)
		machine_forget_file(d->machine, d->slot);
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
	FAILPOINT_AFTER("vm.disk");
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
	struct vm_disk disk = { .fd = fd, .format = VM_DISK_RAW, .name = name };
	struct machine_disk *d;
	struct stat st;
	int r;

	if (!m->vm)
		return error_refuse(err, ERROR_UNAVAILABLE, "its machine has ended");
	if (m->asks_slots)
		return error_refuse(err, ERROR_UNAVAILABLE, "its machine is still being taken up");
	disk.device = fstat(fd, &st) == 0 && S_ISBLK(st.st_mode);
	r = FAILPOINT("vm.disk");
	if (r < 0)
		return error_set(err, r, "put a disk into a machine");
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
	if (d->first)
		machine_keep_file(m, d->slot, fd);
	if (!d->first && !machine_disk_is_coming(m, d->slot))
		loop_defer_schedule(&d->defer);
	list_add_tail(&m->disks, &d->link);
	return 0;
}

/* ---- that nobody uses any more ---- */

/* Of a slot whose disk is being taken out: no image is called so. */
#define MACHINE_LEAVING "-"

struct machine_leaving {
	struct list link;
	struct machine *machine;
	unsigned slot;
};

static void machine_leaving_free(struct machine_leaving *l)
{
	list_remove(&l->link);
	free(l);
}

static void machine_on_removed(struct vm *vm, const struct error *err, void *data)
{
	struct machine_leaving *l = data;
	struct machine *m = l->machine;

	(void)vm;
	FAILPOINT_AFTER("vm.disk_out");
	/* A slot that cannot be emptied stays taken. */
	if (err && m->instance)
		log_warn("a disk cannot be taken out of a machine",
			 LOG_STR("instance", m->instance->path), LOG_ERR(err));
	else if (!err)
		(void)vm_slots_drop(&m->slots, l->slot);
	machine_leaving_free(l);
}

/* Empty for us, and full until the machine says otherwise. */
static void machine_empty_slot(struct machine *m, unsigned slot)
{
	struct machine_leaving *l = calloc(1, sizeof(*l));
	struct error err = ERROR_INIT;
	int r;

	FAILPOINT_BEFORE("vm.disk_out");
	machine_forget_file(m, slot);
	(void)vm_slots_claim(&m->slots, slot, MACHINE_LEAVING);
	if (!l) {
		log_warn("a disk stays in a machine: out of memory",
			 LOG_STR("instance", m->instance->path));
		return;
	}
	l->machine = m;
	l->slot = slot;
	list_init(&l->link);
	list_add_tail(&m->leaving, &l->link);
	r = m->vm->driver->remove_disk(m->vm, slot, machine_on_removed, l, &err);
	if (r == 0)
		return;
	log_warn("a disk cannot be taken out of a machine", LOG_STR("instance", m->instance->path),
		 LOG_ERR(&err));
	machine_leaving_free(l);
}

void machine_drop_disk(struct machine *m, const char *name)
{
	int slot = vm_slots_find(&m->slots, name);

	if (slot < 0 || vm_slots_drop(&m->slots, (unsigned)slot) > 0 || m->asks_slots || !m->vm)
		return;
	machine_empty_slot(m, (unsigned)slot);
}

int machine_claim_disk(struct machine *m, const char *name, struct error *err)
{
	int r = vm_slots_take(&m->slots, name, err);

	return r < 0 ? r : 0;
}

/* Before the machine told it, users were counted by the names of their disks, in slots of no
 * meaning. */
void machine_learn_slots(struct machine *m)
{
	struct vm_slots used = m->slots;
	const char *name;

	m->asks_slots = false;
	memset(m->slots.slot, 0, sizeof(m->slots.slot));
	for (unsigned n = 0; n < m->slots.n; n++) {
		int user;

		if (!m->vm->driver->slot(m->vm, n, &name))
			continue;
		user = name[0] ? vm_slots_find(&used, name) : -ENOENT;
		/* Nobody's: its last user went while there was no daemon. */
		if (user < 0 || vm_slots_claim(&m->slots, n, name) < 0) {
			machine_empty_slot(m, n);
			continue;
		}
		m->slots.slot[n].n_users = used.slot[user].n_users;
		(void)memset(&used.slot[user], 0, sizeof(used.slot[user]));
	}
}

void machine_drop_disks(struct machine *m)
{
	struct machine_leaving *l;
	struct machine_disk *d;

	list_for_each (d, &m->disks, struct machine_disk, link)
		machine_disk_free(d);
	list_for_each (l, &m->leaving, struct machine_leaving, link)
		machine_leaving_free(l);
	for (unsigned n = 0; n < MACHINE_SLOTS; n++)
		machine_forget_file(m, n);
}
