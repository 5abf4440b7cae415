/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cri.pb-c.h"
#include "cri/sandbox/container_call.h"
#include "cri/sandbox/list_call.h"
#include "cri/sandbox/sandbox_call.h"
#include "cri/sandbox/update_call.h"
#include "cri/services.h"
#include "cri/state/events_call.h"
#include "cri/state/metrics_call.h"
#include "cri/state/stats_call.h"
#include "cri/state/status_call.h"
#include "cri/streams/channel_call.h"
#include "cri/streams/exec_sync_call.h"
#include "cri/streams/forward_call.h"
#include "cri/streams/log_call.h"

static const struct rpc_method cri_runtime_methods[] = {
	{ "Version", &runtime__v1__version_request__descriptor,
	  &runtime__v1__version_response__descriptor, false, cri_version },
	{ "ContainerStats", &runtime__v1__container_stats_request__descriptor,
	  &runtime__v1__container_stats_response__descriptor, false, cri_container_stats },
	{ "ListContainerStats", &runtime__v1__list_container_stats_request__descriptor,
	  &runtime__v1__list_container_stats_response__descriptor, false,
	  cri_list_container_stats },
	{ "StreamContainerStats", &runtime__v1__stream_container_stats_request__descriptor,
	  &runtime__v1__stream_container_stats_response__descriptor, true,
	  cri_stream_container_stats },
	{ "PodSandboxStats", &runtime__v1__pod_sandbox_stats_request__descriptor,
	  &runtime__v1__pod_sandbox_stats_response__descriptor, false, cri_pod_sandbox_stats },
	{ "ListPodSandboxStats", &runtime__v1__list_pod_sandbox_stats_request__descriptor,
	  &runtime__v1__list_pod_sandbox_stats_response__descriptor, false,
	  cri_list_pod_sandbox_stats },
	{ "StreamPodSandboxStats", &runtime__v1__stream_pod_sandbox_stats_request__descriptor,
	  &runtime__v1__stream_pod_sandbox_stats_response__descriptor, true,
	  cri_stream_pod_sandbox_stats },
	{ "ListMetricDescriptors", &runtime__v1__list_metric_descriptors_request__descriptor,
	  &runtime__v1__list_metric_descriptors_response__descriptor, false,
	  cri_list_metric_descriptors },
	{ "ListPodSandboxMetrics", &runtime__v1__list_pod_sandbox_metrics_request__descriptor,
	  &runtime__v1__list_pod_sandbox_metrics_response__descriptor, false,
	  cri_list_pod_sandbox_metrics },
	{ "StreamPodSandboxMetrics", &runtime__v1__stream_pod_sandbox_metrics_request__descriptor,
	  &runtime__v1__stream_pod_sandbox_metrics_response__descriptor, true,
	  cri_stream_pod_sandbox_metrics },
	{ "UpdateRuntimeConfig", &runtime__v1__update_runtime_config_request__descriptor,
	  &runtime__v1__update_runtime_config_response__descriptor, false,
	  cri_update_runtime_config },
	{ "Status", &runtime__v1__status_request__descriptor,
	  &runtime__v1__status_response__descriptor, false, cri_status },
	{ "RuntimeConfig", &runtime__v1__runtime_config_request__descriptor,
	  &runtime__v1__runtime_config_response__descriptor, false, cri_runtime_config },
	{ "RunPodSandbox", &runtime__v1__run_pod_sandbox_request__descriptor,
	  &runtime__v1__run_pod_sandbox_response__descriptor, false, cri_run_pod_sandbox },
	{ "StopPodSandbox", &runtime__v1__stop_pod_sandbox_request__descriptor,
	  &runtime__v1__stop_pod_sandbox_response__descriptor, false, cri_stop_pod_sandbox },
	{ "RemovePodSandbox", &runtime__v1__remove_pod_sandbox_request__descriptor,
	  &runtime__v1__remove_pod_sandbox_response__descriptor, false, cri_remove_pod_sandbox },
	{ "PodSandboxStatus", &runtime__v1__pod_sandbox_status_request__descriptor,
	  &runtime__v1__pod_sandbox_status_response__descriptor, false, cri_pod_sandbox_status },
	{ "ListPodSandbox", &runtime__v1__list_pod_sandbox_request__descriptor,
	  &runtime__v1__list_pod_sandbox_response__descriptor, false, cri_list_pod_sandbox },
	{ "StreamPodSandboxes", &runtime__v1__stream_pod_sandboxes_request__descriptor,
	  &runtime__v1__stream_pod_sandboxes_response__descriptor, true, cri_stream_pod_sandboxes },
	{ "CreateContainer", &runtime__v1__create_container_request__descriptor,
	  &runtime__v1__create_container_response__descriptor, false, cri_create_container },
	{ "StartContainer", &runtime__v1__start_container_request__descriptor,
	  &runtime__v1__start_container_response__descriptor, false, cri_start_container },
	{ "StopContainer", &runtime__v1__stop_container_request__descriptor,
	  &runtime__v1__stop_container_response__descriptor, false, cri_stop_container },
	{ "RemoveContainer", &runtime__v1__remove_container_request__descriptor,
	  &runtime__v1__remove_container_response__descriptor, false, cri_remove_container },
	{ "ListContainers", &runtime__v1__list_containers_request__descriptor,
	  &runtime__v1__list_containers_response__descriptor, false, cri_list_containers },
	{ "StreamContainers", &runtime__v1__stream_containers_request__descriptor,
	  &runtime__v1__stream_containers_response__descriptor, true, cri_stream_containers },
	{ "ContainerStatus", &runtime__v1__container_status_request__descriptor,
	  &runtime__v1__container_status_response__descriptor, false, cri_container_status_call },
	{ "UpdateContainerResources", &runtime__v1__update_container_resources_request__descriptor,
	  &runtime__v1__update_container_resources_response__descriptor, false,
	  cri_update_container_resources },
	{ "UpdatePodSandboxResources",
	  &runtime__v1__update_pod_sandbox_resources_request__descriptor,
	  &runtime__v1__update_pod_sandbox_resources_response__descriptor, false,
	  cri_update_pod_sandbox_resources },
	{ "ReopenContainerLog", &runtime__v1__reopen_container_log_request__descriptor,
	  &runtime__v1__reopen_container_log_response__descriptor, false,
	  cri_reopen_container_log },
	{ "ExecSync", &runtime__v1__exec_sync_request__descriptor,
	  &runtime__v1__exec_sync_response__descriptor, false, cri_exec_sync },
	{ "Exec", &runtime__v1__exec_request__descriptor, &runtime__v1__exec_response__descriptor,
	  false, cri_exec },
	{ "Attach", &runtime__v1__attach_request__descriptor,
	  &runtime__v1__attach_response__descriptor, false, cri_attach },
	{ "PortForward", &runtime__v1__port_forward_request__descriptor,
	  &runtime__v1__port_forward_response__descriptor, false, cri_port_forward },
	{ "GetContainerEvents", &runtime__v1__get_events_request__descriptor,
	  &runtime__v1__container_event_response__descriptor, true, cri_get_container_events },
};

const struct rpc_service cri_runtime_service = {
	.name = "runtime.v1.RuntimeService",
	.methods = cri_runtime_methods,
	.n_methods = ARRAY_SIZE(cri_runtime_methods),
};
