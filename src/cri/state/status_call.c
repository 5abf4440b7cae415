/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/status_call.h"

#include <errno.h>

#include "api/cri.pb-c.h"
#include "cri/sandbox/handler.h"
#include "cri/services.h"
#include "cri/state/info.h"
#include "image/image.h"
#include "instance/instance.h"

/* What a kubelet asks for; it has been the same since there are kubelets. */
#define CRI_KUBELET_API_VERSION "0.1.0"
#define CRI_HANDLERS_MAX 8

static char *status_text(const char *s)
{
	return (char *)(uintptr_t)s;
}

void cri_version(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Runtime__V1__VersionResponse m = RUNTIME__V1__VERSION_RESPONSE__INIT;

	(void)request;
	(void)userdata;
	m.version = status_text(CRI_KUBELET_API_VERSION);
	m.runtime_name = status_text("nacre");
	m.runtime_version = status_text(NACRE_VERSION);
	m.runtime_api_version = status_text("v1");
	rpc_call_reply(call, &m.base);
}

/* ---- Status ---- */

/* The keeper of the node is what runs everything. */
static int status_runtime_ready(const struct cri_runtime_service *s, struct error *err)
{
	const struct instance *node = instances_find(s->instances, "");

	if (node && node->state == INSTANCE_READY)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "the keeper of the node is being made%s%s; `nacre check` tells more",
			    node && node->reason[0] ? ": " : "",
			    node && node->reason[0] ? node->reason : "");
}

static void status_condition(Runtime__V1__RuntimeCondition *m, const char *type, const char *reason,
			     const struct error *err)
{
	runtime__v1__runtime_condition__init(m);
	m->type = status_text(type);
	m->status = err->code == 0;
	if (m->status)
		return;
	m->reason = status_text(reason);
	m->message = status_text(error_text(err));
}

/* Those that this host can make pods of now. */
static size_t status_handlers(const struct cri_runtime_service *s,
			      Runtime__V1__RuntimeHandler list[CRI_HANDLERS_MAX],
			      Runtime__V1__RuntimeHandlerFeatures features[CRI_HANDLERS_MAX],
			      Runtime__V1__RuntimeHandler *pointers[CRI_HANDLERS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < cri_n_handlers && n < CRI_HANDLERS_MAX; i++) {
		if (cri_handler_check(&cri_handlers[i], s->instances, NULL) < 0)
			continue;
		runtime__v1__runtime_handler__init(&list[n]);
		runtime__v1__runtime_handler_features__init(&features[n]);
		features[n].recursive_read_only_mounts =
			instance_kind_can(cri_handlers[i].kind, INSTANCE_NODE_MOUNTS);
		features[n].user_namespaces =
			instance_kind_can(cri_handlers[i].kind, INSTANCE_LOCAL_PROCESS) &&
			image_store_maps_ids(s->images);
		list[n].name = status_text(cri_handlers[i].name);
		list[n].features = &features[n];
		pointers[n] = &list[n];
		n++;
	}
	return n;
}

/* Why not, of each handler that this host cannot have; else null. */
static void status_info_handlers(struct json *j, const struct cri_runtime_service *s)
{
	json_put_object(j, "handlers");
	for (size_t i = 0; i < cri_n_handlers; i++) {
		const struct cri_handler *h = &cri_handlers[i];
		struct error err = ERROR_INIT;

		if (!*h->name)
			continue;
		(void)cri_handler_check(h, s->instances, &err);
		json_put_string(j, h->name, err.code ? err.text : NULL);
	}
	json_put_end(j);
}

/* NULL without memory. */
static char *status_info(struct arena *a, const struct cri_runtime_service *s)
{
	struct cri_info info;

	if (cri_info_open(&info) < 0)
		return NULL;
	json_put_object(&info.json, "config");
	json_put_string(&info.json, "rootDir", s->root);
	json_put_string(&info.json, "stateDir", s->run);
	json_put_string(&info.json, "cgroup", s->cgroup);
	json_put_string(&info.json, "socket", s->socket);
	json_put_end(&info.json);
	status_info_handlers(&info.json, s);
	return cri_info_close(&info, a);
}

void cri_status(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Runtime__V1__StatusRequest *q =
		(const Runtime__V1__StatusRequest *)(const void *)request;
	const struct cri_runtime_service *s = userdata;
	Runtime__V1__StatusResponse m = RUNTIME__V1__STATUS_RESPONSE__INIT;
	Runtime__V1__StatusResponse__InfoEntry info =
		RUNTIME__V1__STATUS_RESPONSE__INFO_ENTRY__INIT;
	Runtime__V1__StatusResponse__InfoEntry *infos[] = { &info };
	Runtime__V1__RuntimeStatus status = RUNTIME__V1__RUNTIME_STATUS__INIT;
	Runtime__V1__RuntimeFeatures features = RUNTIME__V1__RUNTIME_FEATURES__INIT;
	Runtime__V1__RuntimeCondition runtime, network;
	Runtime__V1__RuntimeCondition *conditions[] = { &runtime, &network };
	Runtime__V1__RuntimeHandler handlers[CRI_HANDLERS_MAX], *pointers[CRI_HANDLERS_MAX];
	Runtime__V1__RuntimeHandlerFeatures handler_features[CRI_HANDLERS_MAX];
	struct error no_runtime = ERROR_INIT, no_network = ERROR_INIT, err = ERROR_INIT;
	const char *reason = "NetworkPluginNotReady";

	(void)status_runtime_ready(s, &no_runtime);
	(void)s->network_ready(s->network, &reason, &no_network);
	status_condition(&runtime, "RuntimeReady", "KeeperNotReady", &no_runtime);
	status_condition(&network, "NetworkReady", reason, &no_network);
	status.conditions = conditions;
	status.n_conditions = ARRAY_SIZE(conditions);
	m.status = &status;
	m.runtime_handlers = pointers;
	m.n_runtime_handlers = status_handlers(s, handlers, handler_features, pointers);
	features.mount_options = true;
	features.supplemental_groups_policy = true;
	features.user_namespaces_host_network = image_store_maps_ids(s->images);
	m.features = &features;
	if (q->verbose) {
		info.key = status_text(CRI_INFO_KEY);
		info.value = status_info(rpc_call_arena(call), s);
		if (!info.value) {
			(void)error_set(&err, -ENOMEM, "answer");
			rpc_call_fail(call, &err);
			return;
		}
		m.info = infos;
		m.n_info = 1;
	}
	rpc_call_reply(call, &m.base);
}

/* ---- configuration ---- */

void cri_runtime_config(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Runtime__V1__RuntimeConfigResponse m = RUNTIME__V1__RUNTIME_CONFIG_RESPONSE__INIT;
	Runtime__V1__LinuxRuntimeConfiguration linux_config =
		RUNTIME__V1__LINUX_RUNTIME_CONFIGURATION__INIT;

	(void)request;
	(void)userdata;
	linux_config.cgroup_driver = RUNTIME__V1__CGROUP_DRIVER__CGROUPFS;
	m.linux = &linux_config;
	rpc_call_reply(call, &m.base);
}

/* Addresses come from the networks of the node or from CNI, whose plugins have a configuration of
 * their own: what the cluster tells changes neither. */
void cri_update_runtime_config(struct rpc_call *call, const ProtobufCMessage *request,
			       void *userdata)
{
	Runtime__V1__UpdateRuntimeConfigResponse m =
		RUNTIME__V1__UPDATE_RUNTIME_CONFIG_RESPONSE__INIT;

	(void)request;
	(void)userdata;
	rpc_call_reply(call, &m.base);
}
