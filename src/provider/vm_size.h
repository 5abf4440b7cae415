/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_SIZE_H
#define NACRE_PROVIDER_VM_SIZE_H

#include "base/log/error.h"
#include "instance/model.h"
#include "provider/vm_config.h"

/*
 * How large a machine is. A limit of memory for what runs in it is added to what its guest takes:
 *
 *   what the guest set needs to start (`memory` of guest_desc: kernel, initramfs, keeper, gate),
 *   and one byte for VM_SIZE_SHARE bytes of the limit: the kernel's own tables of that memory,
 *   and what it keeps free.
 *
 * Measured with Debian's kernel 6.1, as the difference between RAM and MemFree of an idle guest
 * with one container: 113 MiB of 256, 137 MiB of 1184. So it holds although the machine has no
 * memory beyond its RAM. The limit itself is set in the guest, by its keeper; the RAM is the wall
 * around that.
 *
 * The VMM's own leaf on the host has, where the host has the controller, the RAM and
 * VM_OVERHEAD_MIB as its limit (vm/driver/driver.h).
 */

#define VM_SIZE_SHARE 16

struct guest_desc;

/* Pure, but for host_cpus: more processors than those are of no use. ERROR_PRECONDITION for more
 * memory than a machine can have. */
int vm_size_plan(const struct vms_config *c, const struct guest_desc *set,
		 const struct instance_size *wish, unsigned host_cpus, struct instance_machine *ret,
		 struct error *err);

/* The same of a machine in that of `around`, which must have room for it and for its monitor. */
int vm_size_plan_nested(const struct vms_config *c, const struct guest_desc *set,
			const struct instance_size *wish, const struct instance *around,
			struct instance_machine *ret, struct error *err);

/* Limits the VMM's leaf, where the host can. */
int vm_size_wall(int leaf_fd, const struct instance_machine *machine, struct error *err);

#endif
