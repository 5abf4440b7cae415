/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/failure.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"

static struct error *failure_take(struct error *to, const struct error *err)
{
	to = to ?: malloc(sizeof(*to));
	if (to)
		*to = *err;
	return to;
}

void failure_keep(struct workload *w, const struct error *err)
{
	if (!w->failed)
		w->failed = failure_take(NULL, err);
}

void failure_keep_member(struct pod_container *c, const struct error *err)
{
	if (!c->failed)
		c->failed = failure_take(NULL, err);
}

int failure_tell(const struct workload *w, struct error *err)
{
	(void)error_refuse(err, ERROR_UNAVAILABLE, "%s", w->reason);
	if (w->refused) {
		(void)error_copy(err, w->refused);
	} else if (w->failed) {
		err->kind = w->failed->kind;
		err->code = w->failed->code;
		(void)str_copy(err->field, sizeof(err->field), w->failed->field);
	} else if (w->kind == WORKLOAD_POD && w->instance &&
		   w->instance->state == INSTANCE_FAILED) {
		(void)instance_blame(w->instance, err);
	}
	return err->code;
}

bool failure_refuse(struct workload *w, const struct error *err)
{
	w->refused = failure_take(w->refused, err);
	if (!w->refused)
		return false;
	w->auto_remove = w->auto_remove || !w->stays;
	return true;
}

void failure_refuse_limit(struct workload *w, const struct pod_container *c,
			  const struct error *err)
{
	bool of_whole = !c || str_has_prefix(err->field, CELL_LIMITS_FIELD);
	const char *file = err->field;

	if (err->kind != ERROR_PRECONDITION && err->kind != ERROR_INVALID)
		return;
	if (str_has_prefix(file, CELL_LIMITS_FIELD))
		file += strlen(CELL_LIMITS_FIELD);
	if (cgroup_controller_of(file) < 0 || !failure_refuse(w, err))
		return;
	if (of_whole)
		(void)str_copy(w->refused->field, ERROR_FIELD_MAX, file);
	else
		(void)str_printf(w->refused->field, ERROR_FIELD_MAX, "containers[%zu].%s",
				 (size_t)c->position, file);
}
