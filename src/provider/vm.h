/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_H
#define NACRE_PROVIDER_VM_H

#include "base/log/error.h"
#include "provider/vm_config.h"

/*
 * Kind vm of instance/provider.h: an instance with a kernel of its own, in a virtual machine.
 *
 * Its parts: a network of its own (net/port/segment.h), a gate that stands in it and reads every
 * byte of the guest first (vm/driver/gate.h), and the machine (vm/driver/driver.h), each of the two
 * processes with a user and a leaf of the instance's group for itself. In the guest the same
 * program is pid 1 and keeper; it hears from the gate who it is (wire/message/bootmsg.h), and is
 * spoken to over rpc.sock, which the gate serves, as any keeper is. One that is made with volumes
 * has a third process beside these, which serves them (vm/disk/share.h), in a leaf of its own; its
 * end is that of the machine.
 *
 * The machine's end is the instance's. Its reason names the cause and ends with the end of the
 * console, as far as there is one.
 */

struct instances;
struct provider;
struct vms;

int vms_new(struct vms **ret, const struct vms_config *config, struct error *err);
/* When no instance is left in memory. Waits for nothing: machines go on. */
struct vms *vms_free(struct vms *v);
/* Once the daemon serves: what is made ahead of need is begun. */
void vms_begin(struct vms *v, struct instances *all);
/* For struct instances_config. */
struct provider *vms_provider(struct vms *v);

#endif
