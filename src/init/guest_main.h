/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_MAIN_H
#define NACRE_INIT_GUEST_MAIN_H

#include <stdbool.h>

#include "base/macros.h"

/*
 * `nacre` as pid 1 of a virtual machine: what the kernel executes as /init of an initramfs that
 * vm/guest/guest_set.h has written. It sets the machine up, hears from its node who it is
 * (wire/message/bootmsg.h), starts the gate and the keeper, and from there on only reaps and waits
 * for the end: of the keeper, of the gate, or asked for by the node, by the power button or by
 * SIGTERM.
 */

bool guest_is_init(const char *name);

/* main() has called title_init(). Ends with the machine. */
_noreturn_ void guest_main(void);

#endif
