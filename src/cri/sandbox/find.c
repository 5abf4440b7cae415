/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/find.h"

#include "base/text/str.h"
#include "cri/services.h"
#include "pod/workload/workload.h"

static int find_many(const char *field, const char *id, struct error *err)
{
	return error_field(err, ERROR_INVALID, field, "\"%.64s\" is the beginning of several ids",
			   id);
}

int cri_find_sandbox(const struct cri_runtime_service *s, const char *field, const char *id,
		     struct workload **ret, struct error *err)
{
	struct workload *w = workloads_find_id(s->workloads, id), *found = NULL;

	if (str_empty(id))
		return error_field(err, ERROR_INVALID, field, "required");
	if (w && w->lasts) {
		*ret = w;
		return 0;
	}
	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		if (!w->lasts || !str_has_prefix(w->id, id))
			continue;
		if (found)
			return find_many(field, id, err);
		found = w;
	}
	if (!found)
		return error_field(err, ERROR_NOT_FOUND, field, "there is no sandbox %.64s", id);
	*ret = found;
	return 0;
}

int cri_find_container(const struct cri_runtime_service *s, const char *field, const char *id,
		       struct pod_container **ret, struct error *err)
{
	struct pod_container *found = workloads_find_container(s->workloads, id);
	const struct workload *w;

	if (str_empty(id))
		return error_field(err, ERROR_INVALID, field, "required");
	if (found && found->workload->lasts) {
		*ret = found;
		return 0;
	}
	found = NULL;
	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		for (size_t i = 0; w->lasts && i < w->n_containers; i++) {
			if (!str_has_prefix(w->containers[i]->id, id))
				continue;
			if (found)
				return find_many(field, id, err);
			found = w->containers[i];
		}
	}
	if (!found)
		return error_field(err, ERROR_NOT_FOUND, field, "there is no container %.64s", id);
	*ret = found;
	return 0;
}

int cri_find_running(const struct cri_runtime_service *s, const char *id,
		     struct pod_container **ret, struct peer **ret_peer, struct error *err)
{
	int r = cri_find_container(s, "container_id", id, ret, err);

	if (r < 0)
		return r;
	if ((*ret)->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "the container %s is %s, not running",
				    (*ret)->id, pod_container_state_word(*ret));
	if ((*ret)->paused)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the container %s is paused: let it go on first (nacre unpause "
				    "%s)",
				    (*ret)->id, (*ret)->workload->path);
	*ret_peer = workload_peer((*ret)->workload);
	return *ret_peer ? 0
			 : error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone",
					(*ret)->workload->path);
}
