/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu_slots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "vm/qemu/qemu.h"

/*
 * A change is a chain of commands, each asked when the one before was answered: the descriptor, the
 * file node on it, the qcow2 node over that, and the slot opened again on top. Then what was in the
 * slot before is taken away, or what was new where the chain broke; whether that succeeds changes
 * nothing, but who is told that a disk is out of its slot can rely on its file being let go.
 */

/*
 * QEMU takes the number of a set for an int: there are 2^26 generations. A machine that is adopted
 * has sets from before. Where they are counted from is a time, so that what an adopter says before
 * it has learned them is hardly one of them; and from what it has learned it goes on behind them.
 */
#define SLOTS_GENERATIONS (INT32_MAX / SLOTS_PER_SET)
#define SLOTS_GENERATIONS_FIRST (SLOTS_GENERATIONS / 2)

/* There is such a set. Those of the last quarter nobody comes to, unless he has begun there. */
static void slots_pass(struct slots *s, uint64_t set)
{
	uint64_t generation = set / SLOTS_PER_SET;

	if (generation >= s->generation && generation < SLOTS_GENERATIONS / 4 * 3)
		s->generation = generation + 1;
}

void slots_init(struct slots *s, struct vm *vm, unsigned n, uint32_t writable)
{
	*s = (struct slots){ .vm = vm, .n = n, .writable = writable };
	for (size_t i = 0; i < ARRAY_SIZE(s->slot); i++)
		s->slot[i] = (struct slots_change){ .slots = s, .disk.fd = -1, .next.fd = -1 };
	s->generation = clock_mono() / NSEC_PER_MSEC % SLOTS_GENERATIONS_FIRST + 1;
}

void slots_done(struct slots *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->slot); i++)
		s->slot[i].next.fd = fd_close(s->slot[i].next.fd);
}

static unsigned slots_number(const struct slots_change *c)
{
	return (unsigned)(c - c->slots->slot);
}

static void slots_put_fd(struct json *j, const void *what)
{
	const struct slots_change *c = what;

	json_put_unsigned(j, "fdset-id", c->next_set);
	/* What QEMU keeps for whoever asks later. */
	json_put_string(j, "opaque", c->next_name);
}

static void slots_put_file(struct json *j, const void *what)
{
	const struct slots_change *c = what;

	qemu_put_file(j, c->next_set, &c->next);
}

static void slots_put_image(struct json *j, const void *what)
{
	const struct slots_change *c = what;

	qemu_put_image(j, c->next_set, &c->next);
}

static void slots_put_slot(struct json *j, const void *what)
{
	const struct slots_change *c = what;

	qemu_put_slot(j, slots_number(c), c->next_set, c->next_filled ? &c->next : NULL,
		      c->slots->writable & 1U << slots_number(c));
}

enum slots_when { SLOTS_ALWAYS, SLOTS_FILLED, SLOTS_QCOW2 };

static const struct {
	const char *command;
	enum slots_when when;
	bool with_fd;
	void (*put)(struct json *j, const void *what);
} slots_steps[] = {
	{ "add-fd", SLOTS_FILLED, true, slots_put_fd },
	{ "blockdev-add", SLOTS_FILLED, false, slots_put_file },
	{ "blockdev-add", SLOTS_QCOW2, false, slots_put_image },
	{ "blockdev-reopen", SLOTS_ALWAYS, false, slots_put_slot },
};

static bool slots_step_applies(const struct slots_change *c)
{
	switch (slots_steps[c->step].when) {
	case SLOTS_FILLED:
		return c->next_filled;
	case SLOTS_QCOW2:
		return c->next_filled && c->next.format == VM_DISK_QCOW2;
	case SLOTS_ALWAYS:
		return true;
	}
	return true;
}

/* 1: asked, 0: no step is left. */
static int slots_ask(struct slots_change *c, qmp_fn fn, struct error *err)
{
	struct qmp_command command = { .what = c, .fd = -1 };
	int r;

	while (c->step < ARRAY_SIZE(slots_steps) && !slots_step_applies(c))
		c->step++;
	if (c->step == ARRAY_SIZE(slots_steps))
		return 0;
	command.name = slots_steps[c->step].command;
	command.put = slots_steps[c->step].put;
	if (slots_steps[c->step].with_fd)
		command.fd = c->next.fd;
	r = qmp_ask(c->slots->qmp, &command, fn, c, err);
	return r < 0 ? r : 1;
}

/* What the change was for is settled, and what is not needed is gone. */
static void slots_finish(struct slots_change *c)
{
	struct error err = c->err;
	vm_done_fn done = c->done;

	c->next.fd = fd_close(c->next.fd);
	c->busy = false;
	if (done)
		done(c->slots->vm, err.code ? &err : NULL, c->data);
}

/* What is not there to be taken away is refused, and that is all. */
static void slots_on_cleared(const struct json_value *answer, const struct error *err, void *data)
{
	slots_finish(data);
}

struct slots_gone {
	const char *kind; /* of a node; NULL: the descriptors */
	uint64_t set;
};

static void slots_put_gone(struct json *j, const void *what)
{
	const struct slots_gone *gone = what;
	char name[32];

	if (!gone->kind) {
		json_put_unsigned(j, "fdset-id", gone->set);
		return;
	}
	(void)snprintf(name, sizeof(name), "%s%" PRIu64, gone->kind, gone->set);
	json_put_string(j, "node-name", name);
}

static int slots_tell(struct slots *s, const struct slots_gone *gone, qmp_fn fn, void *data)
{
	const struct qmp_command command = {
		.name = gone->kind ? "blockdev-del" : "remove-fd",
		.put = slots_put_gone,
		.what = gone,
		.fd = -1,
	};

	return s->qmp ? qmp_ask(s->qmp, &command, fn, data, NULL) : -ENOTCONN;
}

/* Takes a set away, and then finishes the change. */
static void slots_clear(struct slots_change *c, uint64_t set, const struct vm_disk *disk)
{
	struct slots *s = c->slots;
	int r = 0;

	if (disk->format == VM_DISK_QCOW2)
		r = slots_tell(s, &(struct slots_gone){ "image", set }, NULL, NULL);
	if (r == 0)
		r = slots_tell(s, &(struct slots_gone){ "file", set }, NULL, NULL);
	if (r == 0)
		r = slots_tell(s, &(struct slots_gone){ NULL, set }, slots_on_cleared, c);
	if (r < 0)
		slots_finish(c);
}

/* The chain is at its end, or broken. */
static void slots_settle(struct slots_change *c, const struct error *err)
{
	bool was_filled = c->filled;
	uint64_t was_set = c->set;
	struct vm_disk was = c->disk;

	c->err = (struct error)ERROR_INIT;
	if (err) {
		c->err = *err;
		was_filled = c->next_filled;
		was_set = c->next_set;
		was = c->next;
	} else {
		c->filled = c->next_filled;
		c->set = c->next_set;
		c->disk = c->next;
		c->disk.fd = -1;
		memcpy(c->name, c->next_name, sizeof(c->name));
	}
	if (was_filled)
		slots_clear(c, was_set, &was);
	else
		slots_finish(c);
}

static void slots_on_answer(const struct json_value *answer, const struct error *err, void *data)
{
	struct slots_change *c = data;
	struct error own = ERROR_INIT;
	int r;

	if (err) {
		own = *err;
		(void)error_wrap(&own, own.code, "change slot %u", slots_number(c));
		slots_settle(c, &own);
		return;
	}
	c->step++;
	r = slots_ask(c, slots_on_answer, &own);
	if (r < 0)
		slots_settle(c, &own);
	else if (r == 0)
		slots_settle(c, NULL);
}

static int slots_check(const struct slots *s, unsigned slot, const struct vm_disk *disk,
		       struct error *err)
{
	bool writable = s->writable & 1U << (slot % SLOTS_PER_SET);

	if (slot >= s->n)
		return error_refuse(err, ERROR_INVALID, "a machine with %u slots has no slot %u",
				    s->n, slot);
	if (!s->qmp)
		return error_refuse(err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	if (disk && disk->name && strlen(disk->name) > VM_DISK_NAME_MAX)
		return error_refuse(err, ERROR_INVALID, "the name of a disk is too long");
	if (s->slot[slot].busy)
		return error_refuse(err, ERROR_ABORTED, "slot %u is being changed already", slot);
	if (disk && disk->writable != writable)
		return error_refuse(err, ERROR_INVALID, "slot %u is for %s disks", slot,
				    writable ? "writable" : "read-only");
	return 0;
}

int slots_change(struct slots *s, unsigned slot, const struct vm_disk *disk, vm_done_fn done,
		 void *data, struct error *err)
{
	struct slots_change *c;
	int r = slots_check(s, slot, disk, err);

	if (r < 0)
		return r;
	c = &s->slot[slot];
	c->next_filled = disk;
	c->next = disk ? *disk : (struct vm_disk){ .fd = -1 };
	if (disk) {
		c->next.fd = fd_copy(disk->fd);
		if (c->next.fd < 0)
			return error_set(err, c->next.fd, "copy the descriptor of a disk");
	}
	c->next.name = NULL;
	(void)str_copy(c->next_name, sizeof(c->next_name), disk && disk->name ? disk->name : "");
	c->next_set = s->generation++ * SLOTS_PER_SET + slot;
	c->step = 0;
	c->done = done;
	c->data = data;
	r = slots_ask(c, slots_on_answer, err);
	if (r < 0) {
		c->next.fd = fd_close(c->next.fd);
		return r;
	}
	c->busy = true;
	return 0;
}

/* ---- of a machine that is adopted ---- */

/* "slot7": 7, or -ENOENT. */
static int slots_of_name(const char *name)
{
	uint64_t n;

	if (!str_has_prefix(name, "slot") ||
	    parse_u64(name + strlen("slot"), 0, VM_SLOTS_MAX - 1, &n) < 0)
		return -ENOENT;
	return (int)n;
}

/* The set that the name of a file names somewhere, or 0. */
static uint64_t slots_set_of(const char *file)
{
	const char *at = strstr(file, "/dev/fdset/");
	uint64_t set = 0;

	if (!at)
		return 0;
	for (at += strlen("/dev/fdset/"); *at >= '0' && *at <= '9' && set < UINT64_MAX / 100; at++)
		set = set * 10 + (uint64_t)(*at - '0');
	return set;
}

static const char *slots_text(const struct json_value *object, const char *name)
{
	const struct json_value *v = json_member(object, name);

	return v && v->kind == JSON_STRING ? v->text : NULL;
}

static void slots_learn_one(struct slots *s, const struct json_value *inserted)
{
	const char *name = slots_text(inserted, "node-name");
	const char *file = slots_text(inserted, "file");
	const struct json_value *ro = json_member(inserted, "ro");
	struct slots_change *c;
	int n = name ? slots_of_name(name) : -ENOENT;

	if (n < 0 || !file)
		return;
	c = &s->slot[n];
	s->n = MAX(s->n, (unsigned)n + 1);
	if (ro && ro->kind == JSON_BOOL && !ro->truth)
		s->writable |= 1U << n;
	c->set = slots_set_of(file);
	c->filled = c->set >= SLOTS_PER_SET;
	c->disk.format = strstr(file, "qcow2") ? VM_DISK_QCOW2 : VM_DISK_RAW;
}

int slots_learn(struct slots *s, const struct json_value *answer, struct error *err)
{
	if (!answer || answer->kind != JSON_ARRAY)
		return error_refuse(err, ERROR_FAULT,
				    "the machine's monitor does not tell its disks");
	for (const struct json_value *v = answer->first; v; v = v->next) {
		const struct json_value *in =
			v->kind == JSON_OBJECT ? json_member(v, "inserted") : NULL;

		if (in && in->kind == JSON_OBJECT)
			slots_learn_one(s, in);
	}
	return 0;
}

/* The slot that has that set, whose number is not given again; NULL: none. */
static struct slots_change *slots_with_set(struct slots *s, const struct json_value *id)
{
	uint64_t set;

	if (!id || id->kind != JSON_NUMBER || parse_u64(id->text, 0, UINT64_MAX, &set) < 0)
		return NULL;
	slots_pass(s, set);
	for (unsigned n = 0; n < s->n; n++)
		if (s->slot[n].filled && s->slot[n].set == set)
			return &s->slot[n];
	return NULL;
}

/* The name that the first descriptor of a set was given; NULL: none. */
static const char *slots_name_of(const struct json_value *set)
{
	const struct json_value *fds = json_member(set, "fds");

	return fds && fds->kind == JSON_ARRAY && fds->first && fds->first->kind == JSON_OBJECT
		       ? slots_text(fds->first, "opaque")
		       : NULL;
}

int slots_learn_names(struct slots *s, const struct json_value *answer, struct error *err)
{
	if (!answer || answer->kind != JSON_ARRAY)
		return error_refuse(err, ERROR_FAULT,
				    "the machine's monitor does not tell its descriptors");
	for (const struct json_value *v = answer->first; v; v = v->next) {
		struct slots_change *c = NULL;
		const char *name;

		if (v->kind == JSON_OBJECT)
			c = slots_with_set(s, json_member(v, "fdset-id"));
		name = c ? slots_name_of(v) : NULL;
		if (name && str_is_clean(name))
			(void)str_copy(c->name, sizeof(c->name), name);
	}
	return 0;
}
