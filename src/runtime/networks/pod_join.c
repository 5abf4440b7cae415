/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/networks/pod_join.h"

#include <errno.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "network/attachment.h"
#include "pod/networks/etc_wish.h"
#include "pod/workload/workload.h"
#include "runtime/start/remote.h"
#include "runtime/start/settings.h"

bool pod_join_is(const char *word)
{
	return str_has_prefix(word, POD_JOIN_PREFIX);
}

/* Why no other pod can have its namespaces; NULL: it can. */
static const char *join_lack(const struct workload *w)
{
	if (w->kind != WORKLOAD_POD)
		return "is no pod";
	if (!w->instance ? !instance_kind_can(w->choice.kind, INSTANCE_LOCAL_PROCESS)
			 : workload_is_remote(w))
		return "has a kernel of its own";
	if (w->instance && !instance_is_own(w->instance))
		return "is in an instance, whose namespaces the node cannot reach";
	if (isolate_ids_are_set(&w->ids))
		return "has a user namespace, which its other namespaces belong to";
	return NULL;
}

/* 0 and *ret NULL: one that is only created need not have it yet, and one that runs not any more.
 */
static int join_find(struct workloads *all, const char *word, const char *field,
		     const struct workload_spec *spec, const struct workload **ret,
		     struct error *err)
{
	const char *name = word + strlen(POD_JOIN_PREFIX), *lack;
	const struct workload *w = NULL;

	if (!str_empty(name))
		w = workloads_find(all, name) ?: workloads_find_id(all, name);
	*ret = w;
	if (!w && (spec->create_only || spec->runs) && !str_empty(name))
		return 0;
	if (!w)
		return error_field(err, ERROR_NOT_FOUND, field, "there is no pod \"%.80s\"", name);
	lack = join_lack(w);
	if (lack)
		return error_field(err, ERROR_UNSUPPORTED, field, "%s %s", w->path, lack);
	if (w->state != WORKLOAD_RUNNING && !spec->create_only && !spec->runs)
		return error_field(err, ERROR_PRECONDITION, field,
				   "%s is %s: only one that runs has namespaces to share", w->path,
				   workload_state_word(w->state));
	return 0;
}

static int join_check_own(const struct workload_spec *spec, const char *field,
			  const Aurae__Runtime__V0__PodSecurity *security, struct error *err)
{
	if (spec->kind != WORKLOAD_POD || remote_will_be(spec->parent, &spec->choice))
		return error_field(err, ERROR_UNSUPPORTED, field,
				   "only a pod of kind \"cell\" can have the namespaces of another "
				   "one");
	if (spec->parent)
		return error_field(err, ERROR_UNSUPPORTED, field,
				   "only for a pod of the node itself, not in an instance");
	if (security && str_eq(security->userns, "auto"))
		return error_field(
			err, ERROR_INVALID, field,
			"not with security.userns \"auto\": the namespaces of such a pod "
			"belong to its user namespace");
	return 0;
}

/* A specification that is being made. */
struct join {
	struct workloads *all;
	struct arena *arena;
	const Aurae__Runtime__V0__PodSecurity *security;
	struct workload_spec *spec;
};

static int join_take(const struct join *j, const char *word, const char *field,
		     const struct workload **ret, const char **ret_id, struct error *err)
{
	int r = join_check_own(j->spec, field, j->security, err);

	if (r == 0)
		r = join_find(j->all, word, field, j->spec, ret, err);
	if (r < 0 || !*ret)
		return r;
	*ret_id = arena_strdup(j->arena, (*ret)->id);
	return *ret_id ? 0 : error_set(err, -ENOMEM, "%s", field);
}

static int join_check_devices(const struct workload *of, struct error *err)
{
	for (const struct attachment *at = of->attachment; at; at = at->next)
		if (attachment_ends_with_netns(at))
			return error_field(err, ERROR_UNSUPPORTED, "network",
					   "%s is on a network of plugins, or of the driver "
					   "macvlan, ipvlan or device, whose devices end with its "
					   "namespace",
					   of->path);
	return 0;
}

int pod_join_take(struct workloads *all, struct arena *a, const char *network,
		  const Aurae__Runtime__V0__PodSecurity *security, struct workload_spec *spec,
		  struct error *err)
{
	const struct join j = { all, a, security, spec };
	const struct workload *of = NULL;
	int r = 0;

	if (pod_join_is(network))
		r = join_take(&j, network, "network", &of, &spec->net_of, err);
	if (r == 0 && of)
		r = join_check_devices(of, err);
	if (r < 0)
		return r;
	/* That of the node is nobody's to end. */
	if (of && str_eq(of->network, "host")) {
		spec->network = "host";
		spec->net_of = NULL;
	}
	if (security && pod_join_is(security->uts))
		r = join_take(&j, security->uts, "security.uts", &of, &spec->uts_of, err);
	return r;
}

int pod_join_name(struct workloads *all, struct arena *a, struct workload_spec *spec,
		  struct error *err)
{
	const struct workload *of = spec->uts_of ? workloads_find_id(all, spec->uts_of) : NULL;
	const Nacre__V1__WorkloadNetwork *kept;
	struct etc_wish *etc;

	if (!of)
		return 0;
	if (spec->etc && spec->etc->hostname)
		return error_field(err, ERROR_INVALID, "pod_network.hostname",
				   "not with security.uts \"container:…\", where it is that pod's");
	etc = arena_zalloc(a, 1, sizeof(*etc));
	if (!etc)
		return error_set(err, -ENOMEM, "security.uts");
	if (spec->etc)
		*etc = *spec->etc;
	kept = settings_network(a, of->settings);
	etc->hostname = arena_strdup(a, kept && kept->asked && !str_empty(kept->asked->hostname)
						? kept->asked->hostname
						: of->handle);
	etc->is_host = true;
	spec->etc = etc;
	return etc->hostname ? 0 : error_set(err, -ENOMEM, "security.uts");
}
