/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_DROP_H
#define NACRE_GATE_DROP_H

#include <sys/types.h>

#include "base/log/error.h"

/*
 * The privilege that a gate gives up before it reads the first byte of a stranger, in the order of
 * one table (drop.c). Afterwards it has the descriptors that it had, and no way to a file, a
 * program or another process; how it may get more descriptors depends on its role.
 */

enum drop_role {
	DROP_CA,       /* none */
	DROP_NODE,     /* TCP connections to the guest, and those that it accepts */
	DROP_FRONT,    /* those that it accepts, and pairs of sockets */
	DROP_METADATA, /* those that it accepts, and listening ones from the daemon */
	DROP_RELAY,    /* those that it accepts */
	DROP_GUEST, /* connections to the keeper, and those that it accepts. It has no capability to
		       begin with, so its user stays and its root is closed by the filter alone */
	DROP_ROLE_COUNT
};

/* uid and gid: neither 0; not looked at for a guest. The error names the step. */
int drop_privilege(enum drop_role role, uid_t uid, gid_t gid, struct error *err);

#endif
