/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_VMWARE_H
#define NACRE_INIT_GUEST_VMWARE_H

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * A guest of VMware asks its host: a text over the backdoor (an IN from port 0x5658, which a host
 * answers in the registers), in a channel of the protocol RPCI, four bytes at a time. "info-get
 * guestinfo.KEY" reads a setting of the machine, "info-set guestinfo.KEY VALUE" writes it: those
 * alone whose key begins so.
 *
 * VMware answers every process of a guest, whatever its rights are. What is secret in a setting
 * must therefore be overwritten before anything else runs.
 */

#define VMWARE_ANSWER_MAX 65536

/* Appends the answer. ERROR_NOT_FOUND: the host refuses it, as it does where there is no such
 * setting. ERROR_UNAVAILABLE: no host answers. The right to ports is held only meanwhile. */
int guest_vmware_ask(const char *question, struct buf *ret, struct error *err);

/* The same by a process that has the right, or needs none; for tests. */
int guest_vmware_exchange(const char *question, struct buf *ret, struct error *err);

#endif
