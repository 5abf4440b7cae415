/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_slots.h"

#include <assert.h>
#include <errno.h>

#include "base/text/parse.h"
#include "base/text/str.h"

#define SLOTS_SERIAL "slot"

int vm_slots_take(struct vm_slots *s, const char *name, struct error *err)
{
	int empty = -1;

	if (str_empty(name) || strlen(name) > VM_DISK_NAME_MAX)
		return error_refuse(err, ERROR_INVALID, "\"%.40s\" is no name of a disk", name);
	for (unsigned i = 0; i < s->n; i++) {
		if (str_eq(s->slot[i].name, name)) {
			s->slot[i].n_users++;
			return (int)i;
		}
		if (empty < 0 && !s->slot[i].name[0])
			empty = (int)i;
	}
	if (empty < 0)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "all %u slots of the machine have a disk of another image",
				    s->n);
	(void)str_copy(s->slot[empty].name, sizeof(s->slot[empty].name), name);
	s->slot[empty].n_users = 1;
	return empty;
}

int vm_slots_claim(struct vm_slots *s, unsigned slot, const char *name)
{
	struct vm_slot *at = &s->slot[slot];

	if (slot >= s->n || str_empty(name) || strlen(name) > VM_DISK_NAME_MAX ||
	    (at->name[0] && !str_eq(at->name, name)))
		return -EBADMSG;
	(void)str_copy(at->name, sizeof(at->name), name);
	at->n_users++;
	return 0;
}

unsigned vm_slots_drop(struct vm_slots *s, unsigned slot)
{
	struct vm_slot *at = &s->slot[slot];

	assert(slot < s->n && at->n_users > 0);
	at->n_users--;
	if (at->n_users == 0)
		at->name[0] = '\0';
	return at->n_users;
}

int vm_slots_find(const struct vm_slots *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->slot[i].name[0] && str_eq(s->slot[i].name, name))
			return (int)i;
	return -ENOENT;
}

void vm_slots_serial(unsigned slot, char ret[VM_SERIAL_SIZE])
{
	(void)str_printf(ret, VM_SERIAL_SIZE, SLOTS_SERIAL "%u", slot);
}

int vm_slots_of(const struct vm_slots *s, const char *serial)
{
	uint64_t slot;

	if (!str_has_prefix(serial, SLOTS_SERIAL) || s->n == 0 ||
	    parse_u64(serial + strlen(SLOTS_SERIAL), 0, s->n - 1, &slot) < 0)
		return -EINVAL;
	return (int)slot;
}
