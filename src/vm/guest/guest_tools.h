/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_GUEST_TOOLS_H
#define NACRE_VM_GUEST_TOOLS_H

#include "base/log/error.h"

/*
 * The files that a guest needs to have guests of its own, as one EROFS: a root directory for the
 * process that makes them there, with QEMU, its firmware and its libraries as this host has them,
 * nacre-gate, and the guest set itself, below the names that these have on a node. It is the file
 * "tools" of a set (vm/guest/guest_set.h), and goes with that.
 */

struct guest_tools {
	int dir_fd;       /* of the set: "kernel", "initrd" and "set" are there */
	const char *name; /* of the set */
	const void *gate; /* nacre-gate */
	size_t gate_len;
};

/* Nothing is left of one that failed. ERROR_PRECONDITION names what this host lacks. Blocks. */
int guest_tools_make(const struct guest_tools *t, struct error *err);

#endif
