/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/target.h"

#include "base/text/str.h"
#include "pod/workload/workload.h"
#include "runtime/services.h"

int target_find_field(const struct workload_service *s, const char *field, const char *name,
		      struct target *ret, struct error *err)
{
	if (str_empty(name))
		return error_field(err, ERROR_INVALID, field, "required");
	*ret = (struct target){ .workload = workloads_find(s->workloads, name) };
	if (ret->workload)
		return 0;
	ret->instance = instances_find(s->instances, name);
	if (!ret->instance)
		ret->instance = instances_find_id(s->instances, name);
	if (ret->instance && ret->instance->path[0])
		return 0;
	return error_field(err, ERROR_NOT_FOUND, field,
			   "there is no workload or instance \"%.80s\"", name);
}

int target_find(const struct workload_service *s, const char *name, struct target *ret,
		struct error *err)
{
	return target_find_field(s, "target", name, ret, err);
}

int target_container(const struct workload_service *s, const char *name, const char *container,
		     struct pod_container **ret, struct error *err)
{
	struct target t;
	int r;

	r = target_find(s, name, &t, err);
	if (r < 0)
		return r;
	if (!t.workload)
		return error_field(err, ERROR_INVALID, "target",
				   "%s is an instance, it has no containers of "
				   "its own",
				   t.instance->path);
	*ret = workload_container(t.workload, container, err);
	return *ret ? 0 : err->code;
}

int target_refuse_machine(const struct workload *w, const char *what, struct error *err)
{
	if (!w || w->kind != WORKLOAD_VM)
		return 0;
	return error_field(err, ERROR_UNSUPPORTED, "target",
			   "%s is a machine with a system of its own, %s", w->path, what);
}
