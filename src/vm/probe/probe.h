/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_PROBE_H
#define NACRE_VM_PROBE_H

#include "base/log/error.h"
#include "loop/loop.h"
#include "vm/driver/driver.h"
#include "vm/probe/probe_record.h"

/*
 * Whether a guest really comes up: one is started with a whole kernel, since where KVM is itself
 * emulated simple code may run and a kernel does not. It is up when its pid 1 says something: on
 * the port that the trial gives it, or a line with `marker` on its console; or powers off by
 * itself. A guest that is not up within PROBE_WAIT has failed.
 */

#define PROBE_WAIT (20 * NSEC_PER_SEC)

struct probe;
/* Once; never from within a call. The machine is gone by then. */
typedef void (*probe_fn)(struct probe *p, const struct probe_record *record, void *owner);

struct probe_trial {
	const struct vm_driver *driver;
	/* With kernel, first root and jail; ports and console are the trial's. */
	const struct vm_spec *machine;
	const char *port; /* of virtio-serial, or NULL */
	/* Said on that port before anybody listens; lives until probe_start() has returned. */
	const void *hello;
	size_t n_hello;
	const char *marker; /* a string constant, or NULL */
};

/* Does not wait. */
int probe_start(struct probe **ret, struct loop *l, const struct probe_trial *trial, probe_fn fn,
		void *owner, struct error *err);
/* A trial that still runs is ended, and its process waited for; fn is not called. */
struct probe *probe_free(struct probe *p);

#endif
