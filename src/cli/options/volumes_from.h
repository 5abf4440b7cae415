/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_VOLUMES_FROM_H
#define NACRE_CLI_VOLUMES_FROM_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"
#include "base/text/args.h"

/*
 * --volumes-from TARGET[:ro]: the volumes and directories that the containers of another workload
 * have, at the same places, unless the container mounts something of its own there. File systems in
 * memory, secrets and parts of devices are that one's own.
 */

struct client;

struct volumes_from {
	Nacre__V1__InspectResponse **answers; /* which the mounts point into */
	size_t n_answers;
	Aurae__Runtime__V0__Mount **list;
};

#define VOLUMES_FROM_INIT                                                                          \
	{                                                                                          \
		.answers = NULL                                                                    \
	}

/* Asks the daemon; adds to the mounts of the container, whose list is v's then. */
int volumes_from_take(struct volumes_from *v, struct client *client, const struct args *a,
		      Aurae__Runtime__V0__Container *to, struct error *err);
void volumes_from_done(struct volumes_from *v);

#endif
