/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/utsname.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "instance/choose.h"
#include "instance/provider.h"
#include "runtime/node/check_call.h"
#include "runtime/services.h"

static void info(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const struct node_service *s = userdata;
	Nacre__V1__InfoResponse m = NACRE__V1__INFO_RESPONSE__INIT;
	Nacre__V1__MachinePool pool = NACRE__V1__MACHINE_POOL__INIT;
	struct provider_warm ahead;
	struct utsname name;

	(void)request;
	if (uname(&name) == 0)
		m.kernel = name.release;
	m.version = (char *)(uintptr_t)NACRE_VERSION;
	m.root = (char *)(uintptr_t)s->root;
	m.run = (char *)(uintptr_t)s->run;
	m.cgroup = (char *)(uintptr_t)s->cgroup;
	m.pid = getpid();
	m.started_at = s->started_at;
	m.lacks = (char **)(uintptr_t)s->lacks;
	m.n_lacks = s->n_lacks;
	instances_look_warm(s->instances, &ahead);
	pool.size = ahead.wanted;
	pool.waiting = ahead.waiting;
	pool.memory = ahead.memory;
	pool.reason = ahead.reason;
	m.pool = ahead.wanted ? &pool : NULL;
	rpc_call_reply(call, &m.base);
}

static void check(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	(void)request;
	check_call_start(call, userdata);
}

static const struct rpc_method node_methods[] = {
	{ "Info", &nacre__v1__info_request__descriptor, &nacre__v1__info_response__descriptor,
	  false, info },
	{ "Check", &nacre__v1__check_request__descriptor, &nacre__v1__check_response__descriptor,
	  false, check },
};

const struct rpc_service node_service = {
	.name = "nacre.v1.NodeService",
	.methods = node_methods,
	.n_methods = ARRAY_SIZE(node_methods),
};
