/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_START_H
#define NACRE_INIT_GUEST_START_H

#include "base/log/error.h"
#include "init/guest_root.h"
#include "isolate/spawn/spawn.h"
#include "wire/message/bootmsg.h"

/* The two programs that pid 1 of a guest starts. */

/* Their files, opened before the root changes. gate_fd is -1 where this guest has none. */
struct guest_programs {
	int exe_fd;
	int gate_fd;
};

int guest_programs_open(struct guest_programs *ret, struct error *err);

/*
 * The keeper of this layer, in the guest's own namespaces: the walls are those of the machine. dir
 * (mode 0700) gets its sockets and its last words, as of every keeper (instance/spawn.h). Returns
 * when it runs.
 */
int guest_start_keeper(const struct guest_programs *programs, const struct guest_groups *groups,
		       const char *title, int dir_fd, struct isolate_child *ret, struct error *err);

/* The boot message of the node, for the gate. */
struct guest_boot {
	const struct bootmsg_boot *boot;
	const struct bootmsg_blob *frame; /* the same as it came */
	int device;                       /* index of the interface of the node's network */
};

/* The gate (wire/message/guestgate.h). Returns when it runs. */
int guest_start_gate(const struct guest_programs *programs, const struct guest_groups *groups,
		     const struct guest_boot *b, int dir_fd, struct isolate_child *ret,
		     struct error *err);

#endif
