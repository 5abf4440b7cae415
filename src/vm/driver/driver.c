/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/driver.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/text/str.h"

#define VM_ALWAYS_DEVICES 2 /* the bus of the ports, and the source of entropy */

void vm_spec_init(struct vm_spec *spec)
{
	*spec = (struct vm_spec){
		.title = "",
		.cpus = 1,
		.memory_fd = -1,
		.state_fd = -1,
		.kernel_fd = -1,
		.initrd_fd = -1,
		.vars_fd = -1,
		.console_fd = -1,
		.dir_fd = -1,
		.cgroup_fd = -1,
		.net_ns_fd = -1,
	};
}

static bool vm_is_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n && n <= VM_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
		       n;
}

static bool vm_size_is_wrong(const struct vm_spec *s)
{
	return s->memory_mib < VM_MEMORY_MIB_MIN || s->memory_mib > VM_MEMORY_MIB_MAX;
}

static bool vm_cpus_are_wrong(const struct vm_spec *s)
{
	return !s->cpus || s->cpus > VM_CPUS_MAX;
}

static bool vm_kernel_is_wrong(const struct vm_spec *s)
{
	if (s->firmware == VM_FIRMWARE_NONE)
		return s->kernel_fd < 0;
	return s->kernel_fd >= 0 || s->initrd_fd >= 0;
}

static bool vm_firmware_is_wrong(const struct vm_spec *s)
{
	return s->firmware >= VM_FIRMWARE_COUNT ||
	       (s->firmware == VM_FIRMWARE_UEFI) != (s->vars_fd >= 0);
}

/* A word is printable ASCII: what a kernel makes of anything else, quotes among it, is its own
 * affair. */
static bool vm_words_are_wrong(const struct vm_spec *s)
{
	size_t n = 0, length = 0;

	for (const char *const *w = s->words; w && *w; w++) {
		for (const char *c = *w; *c; c++)
			if (*c <= ' ' || *c > '~' || *c == '"')
				return true;
		length += strlen(*w) + 1;
		if (!**w || ++n > VM_WORDS_MAX || length > VM_COMMAND_LINE_MAX / 2)
			return true;
	}
	return false;
}

/* A daemon that has the memory of the guest cannot be put aside, nor can a disk be without what was
 * done to it since. */
static bool vm_template_is_wrong(const struct vm_spec *s)
{
	if (s->memory_fd < 0)
		return s->state_fd >= 0 || s->held;
	return s->firmware != VM_FIRMWARE_NONE || s->n_shares || s->n_disks ||
	       (s->held && s->state_fd < 0);
}

static bool vm_slots_are_wrong(const struct vm_spec *s)
{
	return s->n_slots > VM_SLOTS_MAX || s->writable_slots >> s->n_slots;
}

static bool vm_disk_is_wrong(const struct vm_disk *d)
{
	const struct vm_disk *base = d->base;

	if (d->fd < 0 || d->format > VM_DISK_QCOW2)
		return true;
	return base && (d->format != VM_DISK_QCOW2 || base->fd < 0 ||
			base->format > VM_DISK_QCOW2 || base->writable || base->base);
}

static bool vm_disks_are_wrong(const struct vm_spec *s)
{
	if (s->n_disks > VM_DISKS_MAX || (s->n_disks && !s->disks))
		return true;
	for (size_t i = 0; i < s->n_disks; i++)
		if (vm_disk_is_wrong(&s->disks[i]))
			return true;
	return false;
}

/* An address of one card, which neither a group nor nobody has. */
static bool vm_nics_are_wrong(const struct vm_spec *s)
{
	static const uint8_t none[6];

	if (s->n_nics > VM_NICS_MAX || (s->n_nics && !s->nics))
		return true;
	for (size_t i = 0; i < s->n_nics; i++)
		if (s->nics[i].tap_fd < 0 || s->nics[i].mac[0] & 1 ||
		    memcmp(s->nics[i].mac, none, sizeof(none)) == 0)
			return true;
	return false;
}

static bool vm_ports_are_wrong(const struct vm_spec *s)
{
	if (s->n_ports > VM_PORTS_MAX || (s->n_ports && !s->ports))
		return true;
	for (size_t i = 0; i < s->n_ports; i++)
		if (s->ports[i].fd < 0 || !vm_is_name(s->ports[i].name))
			return true;
	return false;
}

static bool vm_shares_are_wrong(const struct vm_spec *s)
{
	if (s->n_shares > VM_SHARES_MAX || (s->n_shares && !s->shares))
		return true;
	for (size_t i = 0; i < s->n_shares; i++)
		if (s->shares[i].fd < 0 || !vm_is_name(s->shares[i].tag))
			return true;
	return false;
}

static bool vm_devices_are_wrong(const struct vm_spec *s)
{
	return VM_ALWAYS_DEVICES + s->n_slots + s->n_disks + s->n_nics + s->n_shares >
	       VM_DEVICES_MAX;
}

static bool vm_user_is_wrong(const struct vm_spec *s)
{
	return s->uid == 0 || s->gid == 0 || s->uid == (uid_t)-1 || s->gid == (gid_t)-1;
}

static bool vm_place_is_wrong(const struct vm_spec *s)
{
	return s->dir_fd < 0;
}

static bool vm_title_is_wrong(const struct vm_spec *s)
{
	return !s->title || !str_is_clean(s->title);
}

static bool vm_accel_is_wrong(const struct vm_spec *s)
{
	return s->accel > VM_ACCEL_EMULATED_TWICE;
}

int vm_room_check(unsigned memory_mib, struct error *err)
{
	size_t size = (size_t)memory_mib << 20;
	void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "this node has no %u MiB of memory for a machine: %s",
				    memory_mib, strerror(errno));
	(void)munmap(room, size);
	return 0;
}

int vm_spec_check(const struct vm_spec *spec, struct error *err)
{
	static const struct {
		const char *member;
		bool (*is_wrong)(const struct vm_spec *s);
	} rules[] = {
		{ "title", vm_title_is_wrong },       { "accel", vm_accel_is_wrong },
		{ "memory_mib", vm_size_is_wrong },   { "cpus", vm_cpus_are_wrong },
		{ "kernel_fd", vm_kernel_is_wrong },  { "firmware", vm_firmware_is_wrong },
		{ "words", vm_words_are_wrong },      { "slots", vm_slots_are_wrong },
		{ "disks", vm_disks_are_wrong },      { "nics", vm_nics_are_wrong },
		{ "ports", vm_ports_are_wrong },      { "shares", vm_shares_are_wrong },
		{ "template", vm_template_is_wrong }, { "devices", vm_devices_are_wrong },
		{ "uid", vm_user_is_wrong },          { "dir_fd", vm_place_is_wrong },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].is_wrong(spec))
			return error_refuse(err, ERROR_INVALID, "%s of a machine is wrong",
					    rules[i].member);
	return 0;
}

const char *vm_end_sentence(enum vm_end_cause cause)
{
	static const char *const sentences[] = {
		[VM_END_POWERED_OFF] = "the guest powered off",
		[VM_END_RESET] = "the guest asked for a reset",
		[VM_END_PANIC] = "the guest's kernel panicked",
		[VM_END_ASKED] = "the machine was ended",
		[VM_END_NOT_STARTED] = "the machine could not be started",
		[VM_END_BROKEN] = "the machine's monitor broke the protocol and was killed",
		[VM_END_CRASHED] = "the machine's monitor died",
		[VM_END_UNSEEN] = "the machine's monitor ended while nobody saw it",
	};

	static_assert(ARRAY_SIZE(sentences) == VM_END_CAUSE_COUNT, "a sentence for each cause");
	return cause < VM_END_CAUSE_COUNT ? sentences[cause] : "the machine ended";
}
