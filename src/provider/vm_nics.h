/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_NICS_H
#define NACRE_PROVIDER_VM_NICS_H

#include "base/log/error.h"
#include "base/text/id.h"
#include "instance/nic.h"
#include "loop/pool.h"

struct gate;

/*
 * The second network device of a machine. Its TAP device is in the machine's network namespace, in
 * a bridge of its own, from which a cable leads into the bridge of the node that was named: so the
 * process of the machine stands in the node's network at no time. The end at the node is called
 * "vm" and the first twelve digits of the instance's id.
 */
struct machine_nic {
	struct pool_work work;
	void (*fn)(struct machine_nic *nic);
	struct instance_nic wanted;
	char id[ID_SIZE];
	int ns_fd; /* of the machine, while it is made */
	/* The result, once fn is called. */
	int r;
	struct error err;
	int tap_fd; /* -1: none */
	uint8_t mac[6];
	uint32_t mtu;
};

void machine_nic_init(struct machine_nic *nic, void (*fn)(struct machine_nic *nic));
/* fn is called on the loop's thread, later. */
void machine_nic_start(struct machine_nic *nic, struct pool *pool, int ns_fd,
		       const struct instance_nic *wanted, const char *id);
/* Says to the guest what it is to make of it, before BOOT. */
int machine_nic_tell(const struct machine_nic *nic, struct gate *gate, struct error *err);
/* The same of the device of its pod's network, which every machine without such a cable has. */
int machine_link_tell(const struct instance_link *link, struct gate *gate, struct error *err);
/* The machine has ended: takes the cable away, where there is one, on a thread of the pool. The
 * kernel would do it as soon as nothing of the machine's network is left, but connections of TCP
 * that its gate had hold that for minutes. */
void machine_nic_remove(struct pool *pool, const char *id);
/* Closes the descriptors; not while the work is under way. */
void machine_nic_done(struct machine_nic *nic);

#endif
