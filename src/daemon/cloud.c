/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cloud.h"

#include <errno.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "clouds/clouds.h"
#include "daemon/config.h"
#include "daemon/place.h"
#include "pod/workload/events.h"

static void cloud_on_state(void *userdata, const struct cloud_vm *vm, const char *state)
{
	struct event e = { .object = "cloud", .state = state };
	struct cloud_view v;

	cloud_vm_view(vm, &v);
	e.kind = v.provider;
	e.id = v.id;
	e.name = v.name;
	e.reason = v.reason;
	events_publish(userdata, &e);
}

int cloud_open(struct clouds **ret, struct loop *loop, const struct config *config,
	       const struct place *place, struct root_store *store, struct events *events,
	       struct error *err)
{
	_cleanup_str_ char *program = place_helper(config->libexec, "nacre-cloud");

	if (!program)
		return error_set(err, -ENOMEM, "clouds");
	return clouds_new(ret,
			  &(struct clouds_config){ .loop = loop,
						   .store = store,
						   .root_fd = place->root_fd,
						   .program = program,
						   .settings = &config->cloud,
						   .on_state = cloud_on_state,
						   .userdata = events },
			  err);
}

void cloud_begin(struct clouds *clouds)
{
	struct error err = ERROR_INIT;

	if (clouds_begin(clouds, &err) < 0)
		log_error("machines in the cloud cannot be managed", LOG_ERR(&err));
}
