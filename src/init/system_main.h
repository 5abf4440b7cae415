/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_SYSTEM_MAIN_H
#define NACRE_INIT_SYSTEM_MAIN_H

#include "base/log/error.h"
#include "init/system_config.h"

/*
 * `nacre daemon` as pid 1 of a machine, a container or a pid namespace: mounts what is missing
 * (init/system_mounts.h), brings up the network (init/system_net.h), runs the daemon as its child
 * and starts it again when it ends, and reaps what has lost its parent. The daemon itself is not
 * pid 1, as the keeper of a guest is not: what can fail may end, and be told.
 *
 *   SIGTERM, SIGPWR, SIGUSR1, SIGUSR2, power button  the end: workloads, the rest, power off
 *   SIGINT                                           the same, but a machine starts again
 *                                                    (control, alternate, delete)
 *   one of them again                                the next step at once
 *   SIGHUP                                           the daemon reads its files again
 *
 * Where the configuration cannot be read, or no daemon comes up with it, the daemon gets none: it
 * serves at its unix socket, and NodeService.Info says why. SIGHUP tries the file again.
 */

/* For the daemon: why it does not have its configuration. */
#define SYSTEM_FAULT_WORD "NACRE_CONFIG_FAULT"

struct system_start {
	const char *const *argv; /* "nacre", "daemon" and its options; lives as long as this */
	size_t argc;
	const char *root; /* its --root */
	/* Reads the configuration. *ret is what holds without one where it fails. */
	int (*load)(void *userdata, struct system_config *ret, struct error *err);
	void *userdata;
};

/* Returns (the exit status) where it ends in a pid namespace that is not a machine's. */
int system_main(const struct system_start *start);

#endif
