/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/find_keeper.h"

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/plan/plan.h"
#include "network/attachment.h"
#include "pod/networks/netns.h"
#include "pod/networks/plug.h"
#include "pod/workload/life.h"
#include "pod/workload/workloads.h"

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

static struct workload *keeper_find_other(const struct workload *w, const char *id)
{
	struct workload *other;

	list_for_each (other, &w->all->list, struct workload, link)
		if (str_eq(other->id, id))
			return other;
	return NULL;
}

/* Its devices do not end with it any more. */
static void keeper_note_shared(struct workload *of)
{
	for (struct attachment *a = of->attachment; a; a = a->next)
		a->is_shared = true;
	of->save_due = of->attachment != NULL;
	loop_defer_schedule(&of->defer);
}

/* The namespaces of other pods that it is to have. Each may have ended since that was asked for. */
static int keeper_open_joins(const struct workload *w, const struct workload_spec *spec,
			     int ret[ISOLATE_NS_COUNT], struct error *err)
{
	const struct {
		const char *of, *kind, *field;
		enum isolate_ns ns;
	} joins[] = { { spec->net_of, "net", "network", ISOLATE_NS_NET },
		      { spec->uts_of, "uts", "security.uts", ISOLATE_NS_UTS } };

	for (size_t i = 0; i < ARRAY_SIZE(joins); i++) {
		struct workload *of;

		if (!joins[i].of)
			continue;
		of = keeper_find_other(w, joins[i].of);
		if (!of || of->state != WORKLOAD_RUNNING)
			return error_field(err, ERROR_PRECONDITION, joins[i].field,
					   "the pod whose namespace it is to have has ended");
		if (joins[i].ns == ISOLATE_NS_NET)
			keeper_note_shared(of);
		ret[joins[i].ns] = netns_open_kind(of, joins[i].kind, err);
		if (ret[joins[i].ns] < 0)
			return ret[joins[i].ns];
	}
	return 0;
}

int keeper_find(struct workload *w, const struct workload_spec *spec, struct error *err)
{
	int joins[ISOLATE_NS_COUNT] = { -1, -1, -1, -1, -1, -1, -1, -1 };
	struct instance_link link;
	int r;

	if (w->kind != WORKLOAD_POD) {
		w->start_due = true;
		return 0;
	}
	plug_tell_guest(w, &link);
	(void)str_copy(w->net_of, sizeof(w->net_of), spec->net_of ? spec->net_of : "");
	r = keeper_open_joins(w, spec, joins, err);
	if (r == 0)
		r = instance_create(
			w->all->config.instances, spec->parent,
			&(struct instance_spec){ .name = name_last(w->path),
						 .owner = w->id,
						 .host_network = str_eq(w->network, "host"),
						 .cgroup_parent = spec->cgroup_parent,
						 .sysctls = spec->sysctls,
						 .host_pids = spec->host_pids,
						 .host_ipc = spec->host_ipc,
						 .host_uts = spec->host_uts,
						 .joins = joins,
						 .ids = w->ids,
						 .volumes = w->lasts || !list_empty(&w->shares),
						 .size = spec->size,
						 .limits = spec->limits,
						 .choice = w->choice,
						 .nic = spec->nic,
						 .link = &link },
			workload_on_instance_ready, w, &w->instance, err);
	w->awaits_keeper = r == 0;
	for (size_t i = 0; i < ARRAY_SIZE(joins); i++)
		(void)fd_close(joins[i]);
	return r;
}
