/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_NS_H
#define NACRE_ISOLATE_NS_H

#include <stdint.h>
#include <sys/types.h>

#include "isolate/plan/plan.h"

/* Namespaces as descriptors, which the caller owns; a negative errno where there is none. */

/* For a clone; 0: it is not made by one (steps_ns.c). */
uint64_t isolate_ns_flag(enum isolate_ns kind);
/* That of a process. proc_fd: a /proc in which pid has that number. */
int isolate_ns_open(int proc_fd, pid_t pid, enum isolate_ns kind);
/* The same of this thread. */
int isolate_ns_open_own(enum isolate_ns kind);
/* The user namespace that a namespace of this process belongs to, where that is below its own; else
 * -EPERM or what opening it says. */
int isolate_ns_owner(enum isolate_ns kind);

#endif
