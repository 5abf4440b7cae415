/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QEMU_END_H
#define NACRE_VM_QEMU_END_H

#include <stdbool.h>

#include "base/log/error.h"
#include "vm/driver/driver.h"

/* How QEMU ended, out of what was seen of it. Pure. */

struct qemu_seen {
	bool up;             /* it has answered */
	bool asked;          /* we have killed it, or asked it to end */
	bool panicked;       /* GUEST_PANICKED */
	char reason[32];     /* of SHUTDOWN: "guest-reset", ...; "" without one */
	struct error failed; /* of the jail's steps */
	struct error broken; /* it said what QEMU does not say */
	int code, status;    /* as of loop_child_fn */
};

/* words: the end of its error stream, printable. */
void qemu_end_judge(struct vm_end *ret, const struct qemu_seen *seen, const char *words);

#endif
