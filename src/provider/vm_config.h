/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_CONFIG_H
#define NACRE_PROVIDER_VM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"
#include "vm/driver/driver.h"

/* The configuration of microVMs. */

struct issuer;
struct loop;
struct pool;

struct vms_config {
	struct loop *loop;
	struct pool *pool;
	const struct vm_driver *driver;
	struct issuer *issuer;    /* outlives all of it */
	const char *gate_program; /* path of nacre-gate; copied */
	int root_fd;              /* of the node: guest sets are there (vm/guest/guest_set.h) */
	const char *guest;        /* the set that is booted; "": the default; copied */
	uint64_t memory;          /* bytes of one that has no limit of its own */
	unsigned cpus;
	bool nested;        /* guests may use hardware virtualization themselves */
	bool emulated;      /* this host is an emulated machine itself */
	bool templates;     /* machines go on from one that is saved (provider/vm_template.h) */
	unsigned pool_size; /* machines made ahead of need (provider/vm_pool.h); only with those */
	nsec_t certificate_life;
	nsec_t hello_limit; /* from the start of one to the answer of its keeper; 0: the usual one
			     */
	nsec_t heartbeat; /* a guest that does not answer for so long is stuck; NSEC_NEVER: none is
			   */
	/* Whether hardware virtualization has booted a guest on this host; ret says so, or why not,
	 * in a sentence. */
	bool (*is_fast)(void *userdata, char *ret, size_t size);
	void *userdata;
};

#endif
