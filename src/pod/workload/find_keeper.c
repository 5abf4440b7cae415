/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/find_keeper.h"

#include "base/text/str.h"
#include "pod/networks/plug.h"
#include "pod/workload/life.h"

int keeper_check_parent(const struct workloads *all, const struct workload_spec *spec,
			struct error *err)
{
	const struct instance *in =
		spec->parent ? spec->parent : instances_find(all->config.instances, "");

	if (!in || in->state != INSTANCE_READY)
		return error_refuse(err, in && in->path[0] ? ERROR_PRECONDITION : ERROR_UNAVAILABLE,
				    "the instance %s is %s",
				    in && in->path[0] ? in->path : "of the node",
				    in ? instance_state_word(in->state) : "gone");
	return 0;
}

int keeper_find(struct workload *w, const struct workload_spec *spec, struct error *err)
{
	struct instance_link link;
	int r;

	if (w->kind != WORKLOAD_POD) {
		w->start_due = true;
		return 0;
	}
	plug_tell_guest(w, &link);
	r = instance_create(w->all->config.instances, spec->parent,
			    &(struct instance_spec){ .name = name_last(w->path),
						     .owner = w->id,
						     .host_network = str_eq(w->network, "host"),
						     .cgroup_parent = spec->cgroup_parent,
						     .sysctls = spec->sysctls,
						     .host_pids = spec->host_pids,
						     .host_ipc = spec->host_ipc,
						     .host_uts = spec->host_uts,
						     .ids = w->ids,
						     .volumes = w->lasts || !list_empty(&w->shares),
						     .size = spec->size,
						     .limits = spec->limits,
						     .choice = w->choice,
						     .nic = spec->nic,
						     .link = &link },
			    workload_on_instance_ready, w, &w->instance, err);
	w->awaits_keeper = r == 0;
	return r;
}
