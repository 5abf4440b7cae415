/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_EC2_MACHINE_H
#define NACRE_PROVIDER_EC2_MACHINE_H

#include "base/memory/list.h"
#include "instance/provider.h"
#include "loop/loop.h"
#include "provider/ec2_config.h"
#include "wire/message/gatemsg.h"

/* A machine as the private part of an instance (i->own); private to this area. It outlives its
 * instance until the cloud has answered the call that makes it. */

struct gate;
struct instance;

struct ec2_vm {
	struct list link; /* of ec2s.vms */
	struct ec2s *all;
	struct instance *instance; /* NULL: it has gone */
	uid_t uid;                 /* of its gate */
	bool awaits_bundle, asked, awaits_cloud;
	uint8_t token[GATE_TOKEN_SIZE]; /* until the gate has it */
	struct gate *gate;
	char end[192]; /* why it is ended; "": it is not */
	struct loop_defer step;
	struct list disks; /* struct ec2_disk (ec2_disks.c) */
};

/* ec2_disks.c */
int ec2_disk_put(struct ec2_vm *m, const char *name, int fd, char ret_serial[INSTANCE_SERIAL_SIZE],
		 peer_done_fn done, void *userdata, struct error *err);
int ec2_disk_claim(struct ec2_vm *m, const char *name, struct error *err);
void ec2_disk_drop(struct ec2_vm *m, const char *name);
/* Its instance goes: waiters are told err; NULL: the daemon ends, and none is told. */
void ec2_disks_leave(struct ec2_vm *m, const struct error *err);

struct ec2s {
	struct provider provider;
	struct provider_ops ops;
	struct ec2s_config config;
	char *gate_program;
	struct list vms;
};

#endif
