/* SPDX-License-Identifier: Apache-2.0 */
#include "api/discovery.pb-c.h"
#include "aurae/services.h"
#include "base/macros.h"
#include "rpc/server/server.h"

static void discover(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Aurae__Discovery__V0__DiscoverResponse m = AURAE__DISCOVERY__V0__DISCOVER_RESPONSE__INIT;

	(void)request;
	(void)userdata;
	m.healthy = true;
	m.version = (char *)(uintptr_t)NACRE_VERSION;
	rpc_call_reply(call, &m.base);
}

static const struct rpc_method discovery_methods[] = {
	{ "Discover", &aurae__discovery__v0__discover_request__descriptor,
	  &aurae__discovery__v0__discover_response__descriptor, false, discover },
};

const struct rpc_service aurae_discovery_service = {
	.name = "aurae.discovery.v0.DiscoveryService",
	.methods = discovery_methods,
	.n_methods = ARRAY_SIZE(discovery_methods),
};
