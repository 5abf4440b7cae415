/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_TEMPLATE_H
#define NACRE_PROVIDER_VM_TEMPLATE_H

#include <stdbool.h>

#include "base/log/error.h"
#include "vm/driver/driver.h"

/*
 * A guest that has come up as far as it can without knowing who it is, saved, for machines of the
 * plain form to go on from instead of booting: its pid 1 waits for BOOT (wire/message/bootmsg.h),
 * has drawn no random byte, and knows nothing of this node. The state that is unique to such a
 * machine is made behind BOOT, whose first part is random bytes of the node.
 *
 * There is one template, for the set, the size, the accelerator and the programs that a machine has
 * where nobody asks for others. It is two sealed files in memory, which are in no directory, so
 * that nobody can change them, the machines that map them least of all; it lives as long as the
 * daemon, and, page by page, as long as a machine that has it mapped. Another guest set, or another
 * QEMU, is another template: the old one is dropped when that is seen.
 *
 * It is made in idle time, behind the first machine that would have gone on from one, by a machine
 * like all others but that it dies with this daemon.
 */

struct instances;
struct templates;
struct vms;

/* A user that no machine and no other process has. */
#define TEMPLATE_UID 1879113724
/* So long a guest may take to come up; then there is no template. */
#define TEMPLATE_PATIENCE (180 * NSEC_PER_SEC)
/* The time that a guest still needs processors after it has said that it waits: drivers probe. */
#define TEMPLATE_SETTLES (500 * NSEC_PER_MSEC)
/* Behind the first machine's being ready, or the last one's that was cold. */
#define TEMPLATE_IDLE (1 * NSEC_PER_SEC)
/* So often it is tried again for one and the same form, after one that cannot be used. */
#define TEMPLATE_TRIES 3

/* Told when there is another one, or none any more. */
typedef void (*templates_fn)(struct vms *v);

/* Starts nothing. */
int templates_new(struct templates **ret, struct vms *v, templates_fn changed, struct error *err);
/* Waits for the end of a machine that one is being made with, and leaves nothing of it. NULL is
 * taken. */
struct templates *templates_free(struct templates *t);

/* Lets a machine that is to be started go on from the template: fills in memory_fd and state_fd,
 * which stay ours, and is true. False: it has to boot, either since it is of another form or since
 * there is no template yet; then one is wanted. */
bool templates_use(struct templates *t, struct vm_spec *spec);
/* A machine is ready, and nobody waits: one that is wanted is made soon, for `all`, whose place it
 * is made in. */
void templates_make(struct templates *t, struct instances *all);
/* One shall be there before anybody asks for a machine; nothing where there is no guest set. */
void templates_want(struct templates *t);
/* MiB of the RAM of its machines; 0: there is none. NULL is taken. */
unsigned templates_memory(const struct templates *t);
/* Of the machine that one is being made with; NULL: none is. NULL is taken. */
const char *templates_id(const struct templates *t);
/* A machine did not come up from it: it is no good. */
void templates_drop(struct templates *t, const char *why);

#endif
