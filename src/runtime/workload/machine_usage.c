/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/machine_usage.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "instance/instance.h"
#include "isolate/cgroup/footprint.h"
#include "runtime/core/groups.h"
#include "runtime/services.h"

int machine_usage_plan(struct machine_usage *m, struct arena *a, struct workload_service *s,
		       const struct instance *i)
{
	char vmm[GROUP_PATH_MAX], gate[GROUP_PATH_MAX];

	if (!i || group_of_machine(s, i, "vmm", vmm) < 0 ||
	    group_of_machine(s, i, "gate", gate) < 0)
		return 0;
	m->vmm = arena_strdup(a, vmm);
	m->gate = arena_strdup(a, gate);
	m->memory = i->machine.memory;
	m->cpus = i->machine.cpus;
	return m->vmm && m->gate ? 0 : -ENOMEM;
}

/* That there is no gate (any more) is no reason to tell nothing. */
static int machine_usage_add_gate(struct machine_usage *m, int cgroup_fd)
{
	struct footprint of_gate = { 0, 0 };
	struct usage gate;
	int r = usage_read(cgroup_fd, m->gate, &gate);

	if (r == 0)
		r = footprint_of_group(cgroup_fd, m->gate, 0, &of_gate);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	m->usage.cpu_total_us += gate.cpu_total_us;
	m->usage.cpu_user_us += gate.cpu_user_us;
	m->usage.cpu_system_us += gate.cpu_system_us;
	m->usage.cpu_throttled_us += gate.cpu_throttled_us;
	m->overhead += of_gate.other;
	return 0;
}

void machine_usage_read(struct machine_usage *m, int cgroup_fd)
{
	struct footprint of_vmm = { 0, 0 };

	if (!m->vmm)
		return;
	m->result = usage_read(cgroup_fd, m->vmm, &m->usage);
	if (m->result == 0)
		m->result = footprint_of_group(cgroup_fd, m->vmm, m->memory, &of_vmm);
	m->host_memory = of_vmm.ram;
	m->overhead = of_vmm.other;
	if (m->result == 0)
		m->result = machine_usage_add_gate(m, cgroup_fd);
}

int machine_usage_convert(const struct machine_usage *m, struct arena *a,
			  Nacre__V1__MachineUsage **ret)
{
	struct {
		Nacre__V1__MachineUsage machine;
		Nacre__V1__CpuUsage cpu;
	} * to;

	*ret = NULL;
	if (!m->vmm || m->result < 0)
		return 0;
	to = arena_alloc(a, sizeof(*to));
	if (!to)
		return -ENOMEM;
	nacre__v1__machine_usage__init(&to->machine);
	nacre__v1__cpu_usage__init(&to->cpu);
	to->cpu.total_us = m->usage.cpu_total_us;
	to->cpu.user_us = m->usage.cpu_user_us;
	to->cpu.system_us = m->usage.cpu_system_us;
	to->cpu.throttled_us = m->usage.cpu_throttled_us;
	to->machine.memory = m->memory;
	to->machine.cpus = m->cpus;
	to->machine.cpu = &to->cpu;
	to->machine.host_memory = m->host_memory;
	to->machine.overhead = m->overhead;
	to->machine.limit = m->usage.memory_limit;
	*ret = &to->machine;
	return 0;
}
