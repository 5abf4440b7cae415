/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_size.h"

#include <inttypes.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/limits_words.h"
#include "vm/driver/driver.h"
#include "vm/guest/guest_desc.h"

#define SIZE_MIB ((uint64_t)1 << 20)
#define SIZE_MAX_BYTES (VM_MEMORY_MIB_MAX * SIZE_MIB)

/* With what its monitor takes besides. */
static uint64_t vm_size_whole(const struct instance_machine *m)
{
	return m->memory + m->memory / VM_OVERHEAD_SHARE + VM_OVERHEAD_MIB * SIZE_MIB;
}

int vm_size_plan(const struct vms_config *c, const struct guest_desc *set,
		 const struct instance_size *wish, unsigned host_cpus, struct instance_machine *ret,
		 struct error *err)
{
	uint64_t own = set->memory_mib * SIZE_MIB, limit = wish->memory ?: wish->memory_of_parts;
	unsigned most = MIN(MAX(host_cpus, 1U), (unsigned)VM_CPUS_MAX);
	uint64_t memory = MIN(limit, SIZE_MAX_BYTES);

	memory += own + memory / VM_SIZE_SHARE;
	if (!wish->memory)
		memory = MAX(memory, c->memory);
	if (memory > SIZE_MAX_BYTES)
		return error_field(err, ERROR_PRECONDITION, "resources.memory",
				   "%" PRIu64 " MiB and what its guest needs are more than the "
				   "%" PRIu64 " MiB that a machine can have",
				   limit / SIZE_MIB, SIZE_MAX_BYTES / SIZE_MIB);
	memory = (memory + SIZE_MIB - 1) / SIZE_MIB * SIZE_MIB;
	*ret = (struct instance_machine){
		.memory = memory,
		.room = (memory - own) / (VM_SIZE_SHARE + 1) * VM_SIZE_SHARE,
	};
	ret->cpus = MIN(wish->cpus_of_parts, most);
	ret->cpus = MAX(c->cpus, ret->cpus);
	if (wish->cpus)
		ret->cpus = MIN(wish->cpus, most);
	/* Not less than what it was made for, whatever was rounded. */
	ret->room = MAX(ret->room, limit);
	return 0;
}

int vm_size_plan_nested(const struct vms_config *c, const struct guest_desc *set,
			const struct instance_size *wish, const struct instance *around,
			struct instance_machine *ret, struct error *err)
{
	const struct instance_machine *outer = &around->machine;
	uint64_t whole;
	int r = vm_size_plan(c, set, wish, outer->cpus, ret, err);

	if (r < 0)
		return r;
	whole = vm_size_whole(ret);
	if (whole <= outer->room)
		return 0;
	return error_field(err, ERROR_PRECONDITION, "resources.memory",
			   "a machine of %" PRIu64 " MiB takes up to %" PRIu64
			   " MiB of the one around it, and %s has room for %" PRIu64
			   ": spawn that with a limit of memory of %" PRIu64 " MiB or more",
			   ret->memory / SIZE_MIB, whole / SIZE_MIB, around->path,
			   outer->room / SIZE_MIB, (whole + SIZE_MIB - 1) / SIZE_MIB);
}

int vm_size_wall(int leaf_fd, const struct instance_machine *machine, struct error *err)
{
	char word[64];
	char *words[] = { word, NULL };

	if (!(cgroup_controllers(leaf_fd) >> CGROUP_MEMORY & 1))
		return 0;
	(void)str_printf(word, sizeof(word), "memory.max=%" PRIu64, vm_size_whole(machine));
	return limits_words_apply(leaf_fd, words, err);
}
