/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_MACHINE_H
#define NACRE_PROVIDER_VM_MACHINE_H

#include "base/memory/list.h"
#include "instance/provider.h"
#include "loop/loop.h"
#include "net/port/segment.h"
#include "provider/vm_config.h"
#include "provider/vm_nics.h"
#include "provider/vm_slots.h"
#include "provider/vm_volumes.h"
#include "vm/driver/gate.h"
#include "wire/message/bootmsg.h"

/*
 * A machine, its gate and its network, as the private part of an instance (i->own); private to this
 * area. It outlives its instance until its processes are reaped and no thread works for it.
 */

struct guest_set;
struct instance;
struct pooled;
struct machine;
struct templates;
struct vm_pool;

#define MACHINE_SLOTS 12
/* The device that the node reaches the guest by, and those of its pod's networks. */
#define MACHINE_NICS (1 + SEGMENT_POD_TAPS)
#define MACHINE_CONSOLE_MAX 320
#define MACHINE_TEXT_MAX 256

/* Where a machine is, and what it is called: as its instance has it, or for as long as it is in the
 * warm pool. */
struct machine_seat {
	const char *id, *title;
	int dir_fd, cgroup_fd;
};

/*
 * Events of a machine that has no instance yet: the warm pool (vm_pool.c) answers them. Functions
 * return at once and free nothing.
 */
struct machine_pool_ops {
	void (*up)(struct machine *m); /* its guest waits for its identity */
	void (*broken)(struct machine *m, const char *reason); /* it is of no use any more */
	void (*gone)(struct machine *m);                       /* all its processes have ended */
	bool (*is_ending)(const struct machine *m);
	struct machine_seat (*seat)(const struct machine *m);
	struct instance_machine *(*size)(struct machine *m); /* its RAM and processors */
};

/*
 * Steps of a machine that units above this one carry out; vm.c has the table. Calls go down by
 * name, so this unit knows them as functions only.
 */
struct machine_steps {
	/* All that it needs is here: starts gate and VMM. */
	int (*start)(struct machine *m, struct error *err);
	/* It cannot go on. True: another machine takes its place (vm_again.c); it is not the
	 * instance's any more. False: that is the end of the instance. */
	bool (*again)(struct machine *m, const char *reason);
	void (*on_patience)(struct loop_timer *t); /* the gate did not return the console */
	void (*on_button)(struct loop_timer *t);   /* the keeper did not end the machine */
	void (*on_volumes_lost)(struct vm_volumes *v, const char *reason);
	const struct vm_events *vm_events;     /* of the driver */
	const struct gate_events *gate_events; /* of the gate */
};

struct machine {
	struct list link; /* of vms.machines */
	struct vms *vms;
	struct instance *instance; /* NULL: it has gone, or nobody has taken it yet */
	struct pooled *pooled;     /* its part of the warm pool; NULL: it is not in there */
	const struct machine_pool_ops *pool_ops; /* where `pooled` is set */
	struct segment_job network;
	struct machine_nic nic; /* the second one */
	bool has_nic;           /* or may have, if it is of an earlier life */
	uint8_t *bundle;        /* DER of what the guest is to trust; NULL: not here yet */
	size_t bundle_len;
	bool awaits_bundle;
	uint8_t token[GATE_TOKEN_SIZE]; /* for its enrolment, until the guest was told */
	struct gate *gate;              /* NULL: none, or it has ended */
	struct vm *vm;                  /* likewise */
	uid_t uid;                      /* of the machine; that of the gate is the next one */
	char end[MACHINE_TEXT_MAX];     /* why it has ended; "" : it has not */
	struct loop_timer patience;     /* for the end of its console */
	struct vm_volumes volumes;
	struct vm_slots slots;
	/* Of one that was taken up: what is in which its monitor has still to tell, `slots` are
	 * those that are used. */
	bool asks_slots;
	struct vm_beat {
		struct loop_timer timer;
		nsec_t due;      /* when it should go off */
		nsec_t alive_at; /* when the guest was last heard, as far as that counts */
		nsec_t starved;  /* how long its processors had waited for ours by then */
		bool asked;      /* and not answered yet */
	} beat;
	struct loop_timer button; /* while it is told to end */
	/* Of each slot: the file, and how long it was when it was put there. */
	struct {
		int fd; /* -1: not known */
		off_t size;
	} files[MACHINE_SLOTS];
	struct list leaving; /* disks that are being taken out */
	struct list disks;   /* questions for one that are not answered yet */
	bool taken;          /* from the pool */
	bool cold;           /* it may not go on from a template */
	bool warm;           /* it was told to, and has not come up yet: if it ends now, it boots */
	int again_boot_fd,
		again_console_fd; /* its lines, for that; with the network's descriptors */
};

struct vms {
	struct provider provider;
	struct provider_ops ops;
	struct vms_config config;
	char *gate_program, *guest;
	struct templates *templates; /* NULL: none is wanted */
	struct vm_pool *pool;        /* NULL: none is wanted */
	struct list machines;
	const struct machine_steps *steps;
	int proc_fd;
};

/* Users that nobody else has, two for each machine. */
#define MACHINE_UID_FIRST 1879113728

/* Makes a machine without resources, as i->own. i NULL: for the pool. NULL without memory. */
struct machine *machine_new(struct vms *v, struct instance *i);
/* Begins: instance_made(), instance_break() or instance_fail() follow. */
int machine_begin(struct machine *m, struct error *err);
/* Takes up one that lives. ERROR_UNAVAILABLE: it does not. */
int machine_adopt(struct machine *m, struct error *err);
/* Its keeper was asked to end it: where that has not helped after a while, its power button does.
 */
void machine_stopping(struct machine *m);
/* instance_ended() follows where the machine runs. */
void machine_kill(struct machine *m);
/* See instance/provider.h. */
int machine_put_disk(struct machine *m, const char *name, int fd,
		     char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
		     struct error *err);
/* One user more of a disk of an earlier life; one less. */
int machine_claim_disk(struct machine *m, const char *name, struct error *err);
void machine_drop_disk(struct machine *m, const char *name);
/* Its instance goes. over: it has ended, and its processes are killed: they are waited for. Else
 * they go on without us. */
void machine_leave(struct machine *m, bool over);
/* For vms_free(): without waiting. */
void machine_free(struct machine *m);

/* ---- what the files of a machine are to each other ---- */

/* Frees it once nobody will call it any more. */
void machine_check_gone(struct machine *m);
struct machine_seat machine_seat(const struct machine *m);
struct gate_config machine_gate_config(const struct machine *m);
struct share_config machine_share_config(const struct machine *m);

/* Goes on as soon as all that it needs is here. */
void machine_go_on(struct machine *m);

/* Closes the lines and the network that a machine from a template keeps for a cold start. */
void machine_forget_lines(struct machine *m);
/* Nobody has it any more. */
bool machine_has_gone(const struct machine *m);
/* It cannot go on: ends it, or the instance whose it is, which tells of it as instance_break() and
 * instance_fail() do. */
void machine_break(struct machine *m, const char *reason);
void machine_fail(struct machine *m, const struct error *err);

/* vm_again.c: it cannot go on. True: it was one of the pool and of no use to anybody yet; it is not
 * the instance's any more, which goes on with another one, or is broken. False: that is the end of
 * the instance. */
bool machine_again(struct machine *m, const char *reason);

/* vm_boot.c */
int machine_random(void *data, size_t len, struct error *err);
/* Tells the guest, by its gate, that it is that of the instance. */
int machine_tell(struct machine *m, struct error *err);

/* vm_start.c: gate and machine, when all that they need is here. */
int machine_start(struct machine *m, struct error *err);
/* It did not come up from a template: it boots. */
int machine_start_cold(struct machine *m, struct error *err);
/* vm_plain.c: the devices that every machine has, but for those with one of a bridge of the node;
 * net NULL: without descriptors. */
void vms_plain_nics(const struct segment *net, struct vm_nic ret[MACHINE_NICS]);
/* The rest of what every machine has in common that nobody asks to be another; the set and the
 * words, which lie in it, must live as long. The number of words. */
size_t vms_plain_spec(const struct vms *v, struct guest_set *set,
		      const char *words[VM_WORDS_MAX + 1], struct vm_spec *ret);
/* Notes its process in the instance, for checks whether it lives. */
int machine_take_process(struct machine *m, struct error *err);

/* vm_end.c: what driver and gate tell. */
extern const struct vm_events machine_vm_events;
extern const struct gate_events machine_gate_events;
/* Nobody has answered for the console. */
void machine_on_patience(struct loop_timer *t);

/* vm_beat.c: sees to it that the guest answers, from when it is READY on. */
void machine_beat_init(struct machine *m);
void machine_beat_start(struct machine *m);
void machine_beat_stop(struct machine *m);
void machine_beat_done(struct machine *m);

/* vm_end.c: its keeper was asked to end it; that it does not is its button's affair. */
void machine_on_button(struct loop_timer *t);
void machine_on_volumes_lost(struct vm_volumes *v, const char *reason);

/* vm_disks.c: questions that nobody will answer. */
void machine_drop_disks(struct machine *m);
/* Whether the files of its disks are still what they were: ends it with the cause where one is not.
 */
void machine_check_disks(struct machine *m);
/* Its monitor has told what is in its slots. */
void machine_learn_slots(struct machine *m);

#endif
