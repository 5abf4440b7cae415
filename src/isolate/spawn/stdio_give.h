/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STDIO_GIVE_H
#define NACRE_ISOLATE_STDIO_GIVE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"

/*
 * Makes uid, an id of this process's user namespace, the owner of those of the three streams (-1:
 * none) that are a pipe or a FIFO or, with `terminal`, the slave of a pseudoterminal. A descriptor
 * lets its holder use the open file, but the owner decides who may open it again through
 * /proc/self/fd. Files, devices and other terminals keep their owner: they outlive the container,
 * and an owner may do more with a file than the descriptor allows (doc/decisions/stdio-owner.md).
 * An owner that the kernel does not let this process change stays.
 */
int stdio_give(const int fds[3], uid_t uid, bool terminal, struct error *err);
/* Whether one of them is of that kind. */
bool stdio_has_any(const int fds[3], bool terminal);

#endif
