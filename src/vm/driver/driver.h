/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_DRIVER_H
#define NACRE_VM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "loop/loop.h"

/*
 * A virtual machine as its monitor (VMM) shows it: one process, jailed (vm/driver/jail.h), that
 * gets all it needs by descriptor, and is spoken to by those who made it. A driver is a const table
 * of functions for one kind of VMM; the first is QEMU's `microvm` (vm/qemu/qemu_driver.h).
 *
 * A machine outlives its maker: its control socket is bound in the instance's directory, so that a
 * daemon that comes later adopts it. All that a VMM says is treated as the word of a stranger,
 * since a guest may have broken into it.
 */

struct vm;

#define VM_MEMORY_MIB_MIN 32
#define VM_MEMORY_MIB_MAX (1U << 20)
#define VM_CPUS_MAX 64
/*
 * Memory of the host that a VMM takes beyond the RAM of its guest, at most: itself, its devices'
 * buffers, the guest's kernel and initramfs as they are loaded, and of an emulated machine the code
 * that it translates (VM_CODE_CACHE_MIB). One byte for VM_OVERHEAD_SHARE bytes of RAM comes on top:
 * tables of pages. QEMU 7.2 was seen to take 65 MiB with hardware virtualization, and its
 * cache more without.
 */
#define VM_OVERHEAD_MIB 256U
#define VM_OVERHEAD_SHARE 128
#define VM_CODE_CACHE_MIB 128U
#define VM_SLOTS_MAX 16
#define VM_NICS_MAX 5
#define VM_PORTS_MAX 2
#define VM_SHARES_MAX 4
#define VM_DISKS_MAX 4
#define VM_DISK_NAME_MAX 127
/* Devices of all kinds together, as many as `microvm` has places for. */
#define VM_DEVICES_MAX 21
#define VM_NAME_MAX 63           /* of a port or share; letters, digits and ".-_" */
#define VM_WORDS_MAX 64          /* of the kernel's command line, beside the driver's own */
#define VM_COMMAND_LINE_MAX 2047 /* bytes, of the kernel */

/* The firmware that a machine boots by. */
enum vm_firmware {
	VM_FIRMWARE_NONE, /* by its kernel, which the spec has: QEMU's `microvm` */
	VM_FIRMWARE_BIOS, /* as a PC does, from its first disk: QEMU's `q35` with SeaBIOS */
	VM_FIRMWARE_UEFI, /* the same with OVMF, which wants vars_fd */
	VM_FIRMWARE_COUNT
};

enum vm_accel {
	VM_ACCEL_EMULATED, /* slow, everywhere */
	VM_ACCEL_HARDWARE, /* KVM; only where vm/probe/probe.h has seen it boot a guest */
	/* Emulated in a machine that is emulated itself. A guest whose clocks are the world's would
	 * spend all of its time on their ticks: so they count its instructions, and stand behind
	 * the world's by what it could not do in time. */
	VM_ACCEL_EMULATED_TWICE,
};

struct vm_nic {
	int tap_fd; /* of a TAP device with IFF_VNET_HDR */
	uint8_t mac[6];
};

/* A port of virtio-serial: a connected stream socket, whose other end is the host's. */
struct vm_port {
	const char *name; /* the name that the guest finds it by, "org.nacre.boot" */
	int fd;
};

/* A directory by virtiofs: a connected socket of a vhost-user daemon. Guest memory is then shared
 * with whoever has that socket. */
struct vm_share {
	const char *tag;
	int fd;
};

enum vm_disk_format { VM_DISK_RAW, VM_DISK_QCOW2 };

/* A disk by an open file (O_RDONLY, or O_RDWR where writable). The format is told, never guessed,
 * and a backing file that a qcow2 names is ignored. The backing file of a qcow2 is `base`; NULL:
 * none, and clusters that it has not allocated read as zeroes. A base is read only and has no base
 * itself.
 */
struct vm_disk {
	int fd;
	enum vm_disk_format format;
	bool writable;
	bool device; /* fd is a block device, and nothing that is read from it is kept: it may be
			another disk later. Raw, O_RDONLY | O_DIRECT */
	const char *name;           /* in a slot: told again by slot(); NULL: "" */
	const struct vm_disk *base; /* only of `disks` in a specification */
};

/*
 * The specification of a machine. All descriptors stay the caller's, all of it must live until the
 * start has returned. The order of devices is that of the guest's: disks, slots; each disk has the
 * serial "disk0", ..., each slot "slot0", ....
 */
struct vm_spec {
	const char *title; /* the name of the process, "pod/web" */
	enum vm_accel accel;
	unsigned memory_mib, cpus;
	/* The guest may use hardware virtualization itself: it reaches code of the host's kernel
	 * that no other guest does. */
	bool nested;

	/*
	 * A file of exactly that size which is the memory of the machine; -1: it has its own.
	 * Without state_fd what the guest does is done to the file: so a template is made, by
	 * snapshot() later. With it the machine goes on where the one of that state stood, which
	 * had the same members of this struct but names and sockets; what it changes in its memory
	 * is copied first, and the file stays as it is. It must be one that QEMU's user can open
	 * for writing, and then may not write: a memfd with F_SEAL_WRITE.
	 */
	int memory_fd;
	int state_fd;
	bool held; /* only with a state: it is PAUSED then, until resume() */

	enum vm_firmware firmware;
	int kernel_fd; /* a file that everybody may read; only without firmware */
	int initrd_fd; /* the same; -1: none */
	int vars_fd;   /* of UEFI: what it remembers, a copy of firmware_open_vars(); O_RDWR */
	const char *const *words; /* of the kernel's command line; no blanks in them; NULL: none */

	/*
	 * Slots for disks that come while the machine runs: the guest sees each as a device of 1
	 * TiB from the start, all zeroes while nothing is in it. A bit of writable_slots for each
	 * that can take a writable disk.
	 */
	unsigned n_slots;
	uint32_t writable_slots;

	/* A machine may boot again; else that is its end. */
	bool reboots;

	const struct vm_disk *disks; /* there from the start, with their own sizes */
	size_t n_disks;
	const struct vm_nic *nics;
	size_t n_nics;
	const struct vm_port *ports;
	size_t n_ports;
	const struct vm_share *shares;
	size_t n_shares;
	int console_fd; /* connected stream socket: the serial line; -1: nowhere */

	/* The jail. */
	int dir_fd;    /* the instance's directory: control socket and last words are made there */
	int cgroup_fd; /* the VMM's own leaf: nothing else lives in it; -1: the caller's group */
	int net_ns_fd; /* where its TAP devices are; -1: a new, empty one */
	bool fleeting; /* it ends with the thread that starts it, and is never adopted */
	uid_t uid;     /* its own: nobody else's processes have it; not 0 */
	gid_t gid;
};

/* No descriptor, one processor: what a caller starts from. */
void vm_spec_init(struct vm_spec *spec);
/* Whether the spec makes sense for any driver. Pure. ERROR_INVALID with the name of the member. */
int vm_spec_check(const struct vm_spec *spec, struct error *err);
/* Whether the kernel would ever promise so much to one machine, by its rules of overcommitment. A
 * VMM is refused in the same way, and tells of it in words alone. ERROR_EXHAUSTED. */
int vm_room_check(unsigned memory_mib, struct error *err);

/*
 * STARTING  the VMM was cloned, or is being adopted; nobody has answered yet
 * RUNNING   the guest runs, as far as the VMM knows
 * PAUSED    its processors stand still
 * ENDED     the process is gone; only vm_driver.free() is left to be called
 */
enum vm_state { VM_STARTING, VM_RUNNING, VM_PAUSED, VM_ENDED, VM_STATE_COUNT };

/* Why it ended, as far as is known. */
enum vm_end_cause {
	VM_END_POWERED_OFF, /* by the guest, asked or not */
	VM_END_RESET,       /* the guest wanted to boot again; a machine lives once */
	VM_END_PANIC,       /* the guest's kernel said that it has died */
	VM_END_ASKED,       /* kill() or stop(), by us */
	VM_END_NOT_STARTED, /* the jail or the VMM refused */
	VM_END_BROKEN,      /* the VMM said what no VMM says, and was killed */
	VM_END_CRASHED,     /* the VMM died by itself, or by somebody else's signal */
	VM_END_UNSEEN, /* it was gone when it was adopted, or ended without a word afterwards */
	VM_END_CAUSE_COUNT
};

#define VM_LAST_WORDS_MAX 1024

struct vm_end {
	enum vm_end_cause cause;
	int code, status; /* as of loop_child_fn; code 0: it was not our child */
	/* A sentence: "the guest's kernel panicked". */
	char text[ERROR_TEXT_MAX];
	/* The end of what the VMM wrote to its error stream, without what `text` has of it:
	 * printable,
	 * "" where there is none. */
	char words[VM_LAST_WORDS_MAX + 1];
};

/* A disk of the host did not do what it was asked. The guest was told so, unless the machine stands
 * still for it: behind a full file system it can go on. */
struct vm_io_error {
	bool slot;     /* it is in a slot, else one of `disks` */
	unsigned n;    /* which of those */
	bool writing;  /* else it was to be read */
	bool stopped;  /* VM_PAUSED follows, or was told */
	char text[64]; /* of the error: "Input/output error" */
};

/* Each is called from the loop, never from within a call of the driver; any may be NULL. */
struct vm_events {
	/* STARTING is over. Once; not where the machine ends before. */
	void (*on_up)(struct vm *vm, void *owner);
	/* The guest's kernel has panicked; the end follows. */
	void (*on_panic)(struct vm *vm, void *owner);
	/* Between RUNNING and PAUSED: also an I/O error that stops the machine. */
	void (*on_state)(struct vm *vm, enum vm_state state, void *owner);
	/* For each request that failed: a guest can cause as many as it likes. */
	void (*on_io_error)(struct vm *vm, const struct vm_io_error *e, void *owner);
	/* The process is gone. Last, and once; free() may be called in it. */
	void (*on_end)(struct vm *vm, const struct vm_end *end, void *owner);
};

/* An answer to what was asked of a machine; NULL: it was done. */
typedef void (*vm_done_fn)(struct vm *vm, const struct error *err, void *data);

struct vm_driver {
	const char *name;

	/* Whether its programs are here, for a machine without firmware (vm/driver/firmware.h has
	 * the others). ERROR_PRECONDITION says what to install. */
	int (*check)(struct error *err);

	/* A number that is another one when one of its programs is, so that what snapshot() has
	 * saved is of no use any more. */
	int (*identity)(uint64_t *ret);

	/* Clones the VMM; on_up or on_end follow. */
	int (*start)(struct vm **ret, struct loop *l, const struct vm_spec *spec,
		     const struct vm_events *events, void *owner, struct error *err);

	/*
	 * Takes up a machine that another process made: by the control socket in dir_fd, and by the
	 * one process of the leaf cgroup_fd. -ESRCH: it is gone. Then as after start(); disks are
	 * in their slots as before.
	 */
	int (*adopt)(struct vm **ret, struct loop *l, int dir_fd, int cgroup_fd,
		     const struct vm_events *events, void *owner, struct error *err);

	enum vm_state (*state)(const struct vm *vm);
	/* Of the VMM as this process sees it; 0 once it has ended. */
	pid_t (*pid)(const struct vm *vm);

	/* The power button; what the guest makes of it is the guest's. -ENOTCONN before on_up. */
	int (*stop)(struct vm *vm, struct error *err);
	/* SIGKILL; on_end follows. */
	void (*kill)(struct vm *vm);

	/*
	 * Puts a disk into a slot, in the place of what is in there; the guest sees it at once. A
	 * slot is for writable disks or for others. The descriptor is copied. One change of a slot
	 * at a time: ERROR_ABORTED while another is under way. done is not called where the call
	 * itself fails, and with an error where the machine ends meanwhile.
	 */
	int (*put_disk)(struct vm *vm, unsigned slot, const struct vm_disk *disk, vm_done_fn done,
			void *data, struct error *err);
	/* Empties a slot: reads of the guest give zeroes. An empty one is success. When it is done,
	 * the VMM has let go of the file; so it has of what put_disk() has replaced. */
	int (*remove_disk)(struct vm *vm, unsigned slot, vm_done_fn done, void *data,
			   struct error *err);

	/*
	 * Stops the machine for good, and writes into a file what another one needs to go on in
	 * its place, but for its memory (vm_spec.memory_fd). It is of no use then but to be killed;
	 * once it has ended, memory and state belong together. done as of put_disk().
	 */
	int (*snapshot)(struct vm *vm, int state_fd, vm_done_fn done, void *data,
			struct error *err);
	/* Lets a machine that is held go on; on_state follows. ERROR_UNAVAILABLE: it has ended. */
	int (*resume)(struct vm *vm, struct error *err);

	/* Whether a slot has a disk, as far as is known once on_up has come, and the name that was
	 * put with it ("" where that is not known), which lives until the next change of the slot.
	 * False for one behind the last slot, too. */
	bool (*slot)(const struct vm *vm, unsigned slot, const char **ret_name);

	/* Lets go: neither kills nor waits, calls nothing. Takes NULL, returns NULL. */
	struct vm *(*free)(struct vm *vm);
};

/* The head of each driver's own object. */
struct vm {
	const struct vm_driver *driver;
};

/* "the guest's kernel panicked", ...: the sentence for a cause. */
const char *vm_end_sentence(enum vm_end_cause cause);

#endif
