/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/instance_record.h"

#include <errno.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "store/store.h"

int instance_record_save(struct run_store *s, const struct instance *i, struct error *err)
{
	const struct run_instance r = {
		.id = i->id,
		.path = i->path,
		.kind = instance_kind_word(i->choice.kind),
		.kind_reason = i->choice.reason,
		.kernel = i->kernel,
		.machine_memory = i->machine.memory,
		.machine_room = i->machine.room,
		.machine_cpus = i->machine.cpus,
		.state = (int)i->state,
		.state_word = instance_state_word(i->state),
		.pid = i->pid,
		.start_time = i->start_time,
		.cgroup = i->cgroup,
		.host_network = i->host_network,
		.owner = i->owner,
		.reason = i->reason,
		.created_at = i->created_at,
		.request = i->request,
		.handle = i->handle,
		.settings = i->settings ? i->settings : "",
	};

	return run_store_put_instance(s, &r, err);
}

void instance_record_drop(struct run_store *s, const struct instance *i)
{
	struct error err = ERROR_INIT;

	if (run_store_drop_instance(s, i->id, &err) < 0)
		log_error("cannot drop the record of an instance", LOG_STR("instance", i->path),
			  LOG_ERR(&err));
}

struct adoption {
	struct instances *instances;
	struct error *err;
};

static int instance_record_adopt(void *data, const struct run_instance *r)
{
	struct adoption *a = data;
	struct instance_record record = {
		.id = r->id,
		.path = r->path,
		.owner = r->owner,
		.reason = r->reason,
		.cgroup = r->cgroup,
		.state = r->state,
		.host_network = r->host_network,
		.created_at = r->created_at,
		.request = r->request,
		.handle = r->handle,
		.settings = r->settings,
		.kernel = r->kernel,
		.choice.kind = instance_kind_of(r->kind),
		.machine = { r->machine_memory, r->machine_room, r->machine_cpus },
		.pid = (pid_t)r->pid,
		.start_time = r->start_time,
	};

	if (r->state < 0 || r->state >= INSTANCE_STATE_COUNT ||
	    record.choice.kind == INSTANCE_KIND_COUNT ||
	    str_copy(record.choice.reason, sizeof(record.choice.reason), r->kind_reason) < 0)
		return error_set(a->err, -EBADMSG, "the record of instance \"%s\"", r->path);
	return instance_adopt(a->instances, &record, a->err);
}

int instance_records_adopt(struct run_store *s, struct instances *instances, struct error *err)
{
	struct adoption adoption = { .instances = instances, .err = err };

	return run_store_each_instance(s, instance_record_adopt, &adoption, err);
}
