/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_START_VENDOR_DEVICES_H
#define NACRE_RUNTIME_START_VENDOR_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "runtime/storage/cdi_call.h"

/*
 * The devices of vendors (Container.cdi_devices) of the containers of one request: looked up one
 * container after the other, before the request is turned into a specification
 * (runtime/start/run_spec.h), and anew at each start. A request is kept with the names alone.
 */

struct arena;
struct pod_container_spec;
struct rpc_call;

/* A value, which lives until one of go_on and fail was called. */
struct vendor_devices {
	struct cdi_calls *all;
	struct rpc_call *call; /* that waits and is failed where fail is NULL, or NULL */
	struct arena *arena;
	Aurae__Runtime__V0__Container *const *containers;
	size_t n;
	const char *only; /* name of the one container that is started; NULL: all of them */
	void (*go_on)(void *userdata);
	void (*fail)(void *userdata, const struct error *err);
	void *userdata;
	size_t at; /* the container that is looked up */
	bool *known;
	struct cdi_changes *changes; /* of each container; NULL: nothing was looked up */
};

/* 1: there are none. 0: go_on or fail (of a call: its failure) is called later. Errors name the
 * field. all, call or fail, arena, containers, only, go_on and userdata are set. */
int vendor_devices_start(struct vendor_devices *v, struct error *err);

/* Refuses what answers alone have, and names where no device of the node can be. */
int vendor_devices_check(Aurae__Runtime__V0__Container *const *containers, size_t n, bool remote,
			 struct error *err);
/* The containers, whose list is the caller's, with what was looked up; changes may be NULL. */
int vendor_devices_add(struct arena *a, const struct cdi_changes *changes,
		       Aurae__Runtime__V0__Container **containers, size_t n, struct error *err);
/* Marks what is mounted for them: links lead where they lead, and errors name their field. */
int vendor_devices_settle(struct arena *a, Aurae__Runtime__V0__Container *const *containers,
			  size_t n, struct pod_container_spec *to, struct error *err);
/* An error about a mount or device of theirs names their field, not one that the request has not.
 */
void vendor_devices_blame(Aurae__Runtime__V0__Container *const *containers, size_t n,
			  struct error *err);

#endif
