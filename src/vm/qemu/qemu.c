/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/str.h"

/* Larger than any image: the guest is told no size but this one (no event of a resize comes). */
#define QEMU_SLOT_BYTES "1099511627776"
#define QEMU_FD_FIRST 3
/* An instruction of one that is emulated twice lasts 2^5 ns of its time: less than it takes in
 * truth, so that its clock is behind and never ahead. */
#define QEMU_COUNTED_SHIFT 5

/* Words and descriptors so far; the first failure stays. */
struct qemu_writer {
	struct qemu_call *call;
	int r;
};

static void qemu_add(struct qemu_writer *w, const char *word)
{
	if (w->r == 0)
		w->r = strv_add(&w->call->argv, word);
}

static _printf_(3, 4) void qemu_option(struct qemu_writer *w, const char *option, const char *fmt,
				       ...)
{
	char value[VM_COMMAND_LINE_MAX + 1];
	va_list ap;
	int n;

	qemu_add(w, option);
	va_start(ap, fmt);
	n = vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(value))
		w->r = w->r ?: -E2BIG;
	qemu_add(w, value);
}

/* The number that a descriptor has in QEMU. */
static int qemu_fd(struct qemu_writer *w, int fd)
{
	struct qemu_call *c = w->call;

	if (c->n_fds >= ARRAY_SIZE(c->fds)) {
		w->r = w->r ?: -EMFILE;
		return -1;
	}
	c->fds[c->n_fds] = fd;
	return QEMU_FD_FIRST + (int)c->n_fds++;
}

/* A comma ends a value, two are one of it. */
static void qemu_add_name(struct qemu_writer *w, const char *title)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *name = NULL;
	int r = buf_add_str(&b, "guest=");

	for (; r == 0 && *title; title++)
		r = buf_add(&b, *title == ',' ? ",," : title, *title == ',' ? 2 : 1);
	name = r == 0 ? buf_take_str(&b) : NULL;
	if (!name) {
		w->r = w->r ?: -ENOMEM;
		return;
	}
	qemu_add(w, "-name");
	qemu_add(w, name);
}

/* The virtio device of that kind as the machine has it, "virtio-blk-device". */
static const char *qemu_bus(const struct vm_spec *s)
{
	return s->firmware == VM_FIRMWARE_NONE ? "device" : "pci";
}

/* A PC without a screen: what its firmware would show there goes to the console. */
static void qemu_add_type(struct qemu_writer *w, const struct vm_spec *s)
{
	static const char *const types[] = {
		[VM_FIRMWARE_NONE] = "microvm,acpi=on,rtc=on,x-option-roms=off",
		[VM_FIRMWARE_BIOS] = "q35,graphics=off,smm=off,usb=off",
		[VM_FIRMWARE_UEFI] =
			"q35,graphics=off,smm=off,usb=off,pflash0=file16,pflash1=file17",
	};

	qemu_option(w, "-machine", "%s%s", types[s->firmware],
		    s->n_shares || s->memory_fd >= 0 ? ",memory-backend=memory" : "");
}

static void qemu_add_accel(struct qemu_writer *w, const struct vm_spec *s)
{
	if (s->accel == VM_ACCEL_HARDWARE) {
		qemu_option(w, "-accel", "kvm");
		/* Names of features of x86; one that the processor lacks may be switched off. */
		qemu_option(w, "-cpu", "host%s", s->nested ? "" : ",vmx=off,svm=off");
		return;
	}
	if (s->accel == VM_ACCEL_EMULATED_TWICE) {
		qemu_option(w, "-accel", "tcg,thread=single,tb-size=%u", VM_CODE_CACHE_MIB);
		qemu_option(w, "-icount", "shift=%d,align=off,sleep=on", QEMU_COUNTED_SHIFT);
	} else {
		qemu_option(w, "-accel", "tcg,thread=multi,tb-size=%u", VM_CODE_CACHE_MIB);
	}
	/* Emulated, no guest reaches the host's KVM; and without svm, static programs of Debian
	 * were seen to abort in QEMU 7.2. */
	qemu_option(w, "-cpu", "max");
}

static void qemu_add_machine(struct qemu_writer *w, const struct vm_spec *s)
{
	qemu_add_name(w, s->title);
	qemu_add(w, "-nodefaults");
	qemu_add(w, "-no-user-config");
	if (!s->reboots)
		qemu_add(w, "-no-reboot");
	qemu_option(w, "-display", "none");
	qemu_option(w, "-sandbox",
		    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	qemu_add_type(w, s);
	qemu_option(w, "-m", "%uM", s->memory_mib);
	if (s->memory_fd >= 0)
		qemu_option(w, "-object",
			    "memory-backend-file,id=memory,size=%uM,mem-path=/proc/self/fd/%d,"
			    "share=%s",
			    s->memory_mib, qemu_fd(w, s->memory_fd),
			    s->state_fd < 0 ? "on" : "off");
	if (s->n_shares)
		qemu_option(w, "-object", "memory-backend-memfd,id=memory,size=%uM,share=on",
			    s->memory_mib);
	qemu_option(w, "-smp", "%u", s->cpus);
	qemu_add_accel(w, s);
	/* The other has a file that is only of use to old systems under KVM. */
	qemu_option(w, "-global",
		    s->firmware == VM_FIRMWARE_NONE ? "virtio-mmio.force-legacy=false"
						    : "apic-common.vapic=off");
}

/* The rate of the counter is told: without it an emulated guest hangs at boot on a busy host. */
static void qemu_add_kernel(struct qemu_writer *w, const struct vm_spec *s,
			    const struct qemu_place *place)
{
	_cleanup_(buf_done) struct buf words = BUF_INIT;
	_cleanup_str_ char *line = NULL;
	int r;

	qemu_option(w, "-bios", "/proc/self/fd/%d", qemu_fd(w, place->firmware_fd));
	if (s->state_fd >= 0) {
		/* All of it is in its memory. The kernel's file says that its set is in use. */
		(void)qemu_fd(w, s->kernel_fd);
		qemu_option(w, "-incoming", "defer");
		return;
	}
	r = buf_add_str(&words, "reboot=t panic=-1");
	qemu_option(w, "-kernel", "/proc/self/fd/%d", qemu_fd(w, s->kernel_fd));
	if (s->initrd_fd >= 0)
		qemu_option(w, "-initrd", "/proc/self/fd/%d", qemu_fd(w, s->initrd_fd));
	if (r == 0 && s->console_fd >= 0)
		r = buf_add_str(&words, " console=ttyS0");
	if (r == 0 && s->accel != VM_ACCEL_HARDWARE)
		r = buf_addf(&words,
			     " tsc_early_khz=%u tsc=reliable no_timer_check mitigations=off",
			     place->tsc_khz);
	for (const char *const *word = s->words; r == 0 && word && *word; word++)
		r = buf_addf(&words, " %s", *word);
	line = r == 0 ? buf_take_str(&words) : NULL;
	if (!line) {
		w->r = w->r ?: -ENOMEM;
		return;
	}
	qemu_option(w, "-append", "%s", line);
}

static void qemu_add_sockets(struct qemu_writer *w, const struct vm_spec *s, int qmp_fd)
{
	qemu_option(w, "-chardev", "socket,id=control,fd=%d,server=on,wait=off",
		    qemu_fd(w, qmp_fd));
	qemu_option(w, "-mon", "chardev=control,mode=control");
	if (s->console_fd >= 0) {
		qemu_option(w, "-chardev", "socket,id=console,fd=%d", qemu_fd(w, s->console_fd));
		qemu_option(w, "-serial", "chardev:console");
	}
	qemu_option(w, "-device", "pvpanic");
	qemu_option(w, "-device", "virtio-rng-%s", qemu_bus(s));
	if (s->n_ports)
		qemu_option(w, "-device", "virtio-serial-%s", qemu_bus(s));
	for (size_t i = 0; i < s->n_ports; i++) {
		qemu_option(w, "-chardev", "socket,id=port%zu,fd=%d", i,
			    qemu_fd(w, s->ports[i].fd));
		qemu_option(w, "-device", "virtserialport,chardev=port%zu,name=%s", i,
			    s->ports[i].name);
	}
}

typedef void (*qemu_node_fn)(struct json *j, uint64_t set, const struct vm_disk *disk);

/* A node as JSON, since there is no other way to say that an image has no backing file. */
static void qemu_add_node(struct qemu_writer *w, qemu_node_fn put, unsigned set,
			  const struct vm_disk *disk)
{
	_cleanup_str_ char *text = NULL;
	size_t len = 0;
	struct json j = { .compact = true };
	bool failed;

	j.to = open_memstream(&text, &len);
	if (!j.to) {
		w->r = w->r ?: -ENOMEM;
		return;
	}
	json_put_object(&j, NULL);
	put(&j, set, disk);
	json_put_end(&j);
	failed = ferror(j.to);
	if (fclose(j.to) != 0 || failed || !text) {
		w->r = w->r ?: -ENOMEM;
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	qemu_add(w, "-blockdev");
	qemu_add(w, text);
}

static void qemu_add_file(struct qemu_writer *w, unsigned set, const struct vm_disk *disk)
{
	qemu_option(w, "-add-fd", "fd=%d,set=%u", qemu_fd(w, disk->fd), set);
	qemu_add_node(w, qemu_put_file, set, disk);
}

static void qemu_add_image(struct qemu_writer *w, unsigned set, const struct vm_disk *disk)
{
	qemu_add_file(w, set, disk);
	if (disk->format == VM_DISK_QCOW2)
		qemu_add_node(w, qemu_put_image, set, disk);
}

/* Firmware boots from the first. */
static void qemu_add_disk(struct qemu_writer *w, const struct vm_spec *s, unsigned i)
{
	const struct vm_disk *disk = &s->disks[i];
	bool boots = s->firmware != VM_FIRMWARE_NONE && i == 0;

	if (disk->base)
		qemu_add_image(w, i + QEMU_BASE_SET, disk->base);
	qemu_add_image(w, i, disk);
	qemu_option(w, "-device", "virtio-blk-%s,drive=%s%u,serial=disk%u%s", qemu_bus(s),
		    disk->format == VM_DISK_QCOW2 ? "image" : "file", i, i,
		    boots ? ",bootindex=0" : "");
}

/* The code is read only; what UEFI remembers is a file of the machine's own. */
static void qemu_add_firmware(struct qemu_writer *w, const struct vm_spec *s,
			      const struct qemu_place *place)
{
	const struct vm_disk code = { .fd = place->firmware_fd };
	const struct vm_disk vars = { .fd = s->vars_fd, .writable = true };

	if (s->firmware == VM_FIRMWARE_BIOS) {
		qemu_option(w, "-bios", "/proc/self/fd/%d", qemu_fd(w, place->firmware_fd));
		return;
	}
	qemu_add_file(w, QEMU_FIRMWARE_SET, &code);
	qemu_add_file(w, QEMU_VARS_SET, &vars);
}

static void qemu_add_slot(struct qemu_writer *w, const struct vm_spec *s, unsigned i)
{
	bool writable = s->writable_slots & 1U << i;

	qemu_option(w, "-blockdev",
		    "driver=null-co,node-name=none%u,size=" QEMU_SLOT_BYTES ",read-zeroes=on", i);
	qemu_option(w, "-blockdev", "driver=raw,node-name=slot%u,file=none%u,read-only=%s", i, i,
		    writable ? "off" : "on");
	qemu_option(w, "-device", "virtio-blk-%s,drive=slot%u,serial=slot%u", qemu_bus(s), i, i);
}

static void qemu_add_devices(struct qemu_writer *w, const struct vm_spec *s)
{
	for (size_t i = 0; i < s->n_disks; i++)
		qemu_add_disk(w, s, (unsigned)i);
	for (unsigned i = 0; i < s->n_slots; i++)
		qemu_add_slot(w, s, i);
	for (size_t i = 0; i < s->n_nics; i++) {
		const uint8_t *m = s->nics[i].mac;

		qemu_option(w, "-netdev", "tap,id=nic%zu,fd=%d", i, qemu_fd(w, s->nics[i].tap_fd));
		qemu_option(w, "-device",
			    "virtio-net-%s,netdev=nic%zu,mac=%02x:%02x:%02x:%02x:%02x:%02x%s",
			    qemu_bus(s), i, m[0], m[1], m[2], m[3], m[4], m[5],
			    s->firmware == VM_FIRMWARE_NONE ? "" : ",romfile=");
	}
	for (size_t i = 0; i < s->n_shares; i++) {
		qemu_option(w, "-chardev", "socket,id=share%zu,fd=%d", i,
			    qemu_fd(w, s->shares[i].fd));
		qemu_option(w, "-device",
			    "vhost-user-fs-%s,chardev=share%zu,tag=%s,queue-size=1024", qemu_bus(s),
			    i, s->shares[i].tag);
	}
}

int qemu_call_make(struct qemu_call *ret, const struct vm_spec *spec,
		   const struct qemu_place *place, struct error *err)
{
	_cleanup_(qemu_call_done) struct qemu_call call = QEMU_CALL_INIT;
	struct qemu_writer w = { .call = &call };

	qemu_add(&w, QEMU_PROGRAM);
	qemu_add_machine(&w, spec);
	if (spec->firmware == VM_FIRMWARE_NONE)
		qemu_add_kernel(&w, spec, place);
	else
		qemu_add_firmware(&w, spec, place);
	qemu_add_sockets(&w, spec, place->qmp_fd);
	qemu_add_devices(&w, spec);
	if (w.r == -E2BIG)
		return error_refuse(err, ERROR_INVALID,
				    "the kernel's command line is longer than %d bytes",
				    VM_COMMAND_LINE_MAX);
	if (w.r < 0)
		return error_set(err, w.r, "make the command line of QEMU");
	*ret = call;
	call.argv = NULL;
	return 0;
}

void qemu_call_done(struct qemu_call *call)
{
	strv_free(call->argv);
	call->argv = NULL;
}

/* "file7" */
static void qemu_put_name(struct json *j, const char *key, const char *kind, uint64_t n)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s%" PRIu64, kind, n);
	json_put_string(j, key, name);
}

/* Without locks: they would be of the host's file, which other machines may read as well, and are
 * nothing that could be trusted. */
void qemu_put_file(struct json *j, uint64_t set, const struct vm_disk *disk)
{
	json_put_string(j, "driver", disk->device ? "host_device" : "file");
	qemu_put_name(j, "node-name", "file", set);
	qemu_put_name(j, "filename", "/dev/fdset/", set);
	json_put_string(j, "locking", "off");
	if (disk->device) {
		json_put_object(j, "cache");
		json_put_bool(j, "direct", true);
		json_put_end(j);
	}
	json_put_bool(j, "read-only", !disk->writable);
}

void qemu_put_image(struct json *j, uint64_t set, const struct vm_disk *disk)
{
	json_put_string(j, "driver", "qcow2");
	qemu_put_name(j, "node-name", "image", set);
	qemu_put_name(j, "file", "file", set);
	if (disk->base)
		qemu_put_name(j, "backing", disk->base->format == VM_DISK_QCOW2 ? "image" : "file",
			      set + QEMU_BASE_SET);
	else
		json_put_null(j, "backing");
	json_put_bool(j, "read-only", !disk->writable);
}

void qemu_put_slot(struct json *j, unsigned slot, uint64_t set, const struct vm_disk *disk,
		   bool writable)
{
	const char *node = !disk ? "none" : disk->format == VM_DISK_QCOW2 ? "image" : "file";

	json_put_array(j, "options");
	json_put_object(j, NULL);
	json_put_string(j, "driver", "raw");
	qemu_put_name(j, "node-name", "slot", slot);
	qemu_put_name(j, "file", node, disk ? set : slot);
	json_put_bool(j, "read-only", !writable);
	json_put_end(j);
	json_put_end(j);
}
