/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_slots.h"

#include <errno.h>
#include <string.h>

#include "unit.h"

static void has_one_disk_once(void)
{
	struct vm_slots s = { .n = 2 };
	struct error err = ERROR_INIT;

	CHECK_INT(vm_slots_take(&s, "a", &err), 0);
	CHECK_INT(vm_slots_take(&s, "b", &err), 1);
	CHECK_INT(vm_slots_take(&s, "a", &err), 0);
	CHECK(vm_slots_take(&s, "c", &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	CHECK_INT(vm_slots_drop(&s, 0), 1);
	CHECK(vm_slots_take(&s, "c", &err) < 0);
	CHECK_INT(vm_slots_drop(&s, 0), 0);
	CHECK_INT(vm_slots_take(&s, "c", &err), 0);
}

static void knows_what_was_there(void)
{
	struct vm_slots s = { .n = 2 };
	struct error err = ERROR_INIT;

	CHECK_INT(vm_slots_claim(&s, 1, "a"), 0);
	CHECK_INT(vm_slots_claim(&s, 1, "a"), 0);
	CHECK_INT(vm_slots_claim(&s, 1, "b"), -EBADMSG);
	CHECK_INT(vm_slots_claim(&s, 2, "b"), -EBADMSG);
	CHECK_INT(vm_slots_claim(&s, 0, ""), -EBADMSG);
	CHECK_INT(vm_slots_take(&s, "a", &err), 1);
	CHECK_INT(vm_slots_take(&s, "b", &err), 0);
	CHECK_INT(vm_slots_drop(&s, 1), 2);
}

static void refuses_names_that_cannot_be(void)
{
	struct vm_slots s = { .n = 1 };
	struct error err = ERROR_INIT;
	char name[VM_DISK_NAME_MAX + 2];

	memset(name, 'x', sizeof(name));
	name[VM_DISK_NAME_MAX + 1] = '\0';
	CHECK(vm_slots_take(&s, name, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK(vm_slots_take(&s, "", &err) < 0);
	name[VM_DISK_NAME_MAX] = '\0';
	CHECK_INT(vm_slots_take(&s, name, &err), 0);
}

static void has_a_serial_for_each(void)
{
	struct vm_slots s = { .n = 12 };
	char serial[VM_SERIAL_SIZE];

	vm_slots_serial(11, serial);
	CHECK_STR(serial, "slot11");
	CHECK_INT(vm_slots_of(&s, "slot11"), 11);
	CHECK_INT(vm_slots_of(&s, "slot0"), 0);
	CHECK_INT(vm_slots_of(&s, "slot12"), -EINVAL);
	CHECK_INT(vm_slots_of(&s, "slot"), -EINVAL);
	CHECK_INT(vm_slots_of(&s, "disk0"), -EINVAL);
	s.n = 0;
	CHECK_INT(vm_slots_of(&s, "slot0"), -EINVAL);
}

UNIT_MAIN({ "has_one_disk_once", has_one_disk_once },
	  { "knows_what_was_there", knows_what_was_there },
	  { "refuses_names_that_cannot_be", refuses_names_that_cannot_be },
	  { "has_a_serial_for_each", has_a_serial_for_each })
