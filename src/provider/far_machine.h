/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_FAR_MACHINE_H
#define NACRE_PROVIDER_FAR_MACHINE_H

#include "base/memory/list.h"
#include "instance/model.h"
#include "instance/provider.h"
#include "loop/loop.h"
#include "provider/far_config.h"
#include "wire/message/gatemsg.h"

/* A machine as the private part of an instance (i->own); private to this area. It outlives its
 * instance until the cloud has answered the call that makes it. */

struct gate;
struct instance;

struct far_vm {
	struct list link; /* of fars.vms */
	struct fars *all;
	struct instance *instance; /* NULL: it has gone */
	uid_t uid;                 /* of its gate */
	bool awaits_bundle, asked, awaits_cloud;
	uint8_t token[GATE_TOKEN_SIZE]; /* until the gate has it */
	struct gate *gate;
	char end[192]; /* why it is ended; "": it is not */
	struct loop_defer step;
	struct list disks; /* struct far_disk (far_disks.c) */
};

/* far_disks.c */
int far_disk_put(struct far_vm *m, const char *name, int fd, char ret_serial[INSTANCE_SERIAL_SIZE],
		 peer_done_fn done, void *userdata, struct error *err);
int far_disk_claim(struct far_vm *m, const char *name, struct error *err);
void far_disk_drop(struct far_vm *m, const char *name);
/* Its instance goes: waiters are told err; NULL: the daemon ends, and none is told. */
void far_disks_leave(struct far_vm *m, const struct error *err);

/* One for each cloud: the provider of its kind. */
#define FAR_KINDS 3

struct far_kind {
	struct provider provider;
	struct fars *all;
	enum instance_kind kind;
};

struct fars {
	struct far_kind kinds[FAR_KINDS];
	struct provider_ops ops;
	struct fars_config config;
	char *gate_program;
	struct list vms;
};

#endif
