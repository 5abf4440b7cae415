/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_GUEST_BUILD_H
#define NACRE_VM_GUEST_BUILD_H

#include <stdbool.h>

#include "base/log/error.h"
#include "vm/guest/guest_set.h"

/* Makes a guest set (vm/guest/guest_set.h) of a kernel, its modules and this nacre. */

struct guest_build {
	int root_fd;       /* the node's root directory */
	const char *name;  /* NULL: made of the release and the builds */
	int kernel_fd;     /* a bzImage or vmlinux */
	int modules_fd;    /* its lib/modules/RELEASE; -1: everything is built in */
	int nacre_fd;      /* the program, static */
	int gate_fd;       /* nacre-gate, static; -1: none, and nobody reaches the keeper */
	bool keep_default; /* where there is one: it stays */
	bool nested;       /* with what its guests need to have guests (vm/guest/guest_tools.h) */
	bool cloud;        /* for machines in a cloud: with the drivers of their networks */
	/* Gets notes for people that are no failures. */
	void (*tell)(void *userdata, const char *text);
	void *userdata;
};

/*
 * *ret is what was made; or what was there already by this name, of the same kernel's release and
 * the same builds of nacre and its gate: then *ret_made is false. ERROR_EXISTS where that is
 * another one. Nothing is left of one that failed.
 */
int guest_build(const struct guest_build *b, struct guest_set_info *ret, bool *ret_made,
		struct error *err);

#endif
