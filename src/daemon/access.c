/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/access.h"

#include "base/text/str.h"

/* A method that is not here changes something. A '*' at the end stands for any rest. */
static const char *const access_reads[] = {
	"/nacre.v1.WorkloadService/List",
	"/nacre.v1.WorkloadService/Inspect",
	"/nacre.v1.WorkloadService/Wait",
	"/nacre.v1.WorkloadService/Logs",
	"/nacre.v1.WorkloadService/Stats",
	"/nacre.v1.WorkloadService/Processes",
	"/nacre.v1.EventService/*",
	"/nacre.v1.DiskService/List",
	"/nacre.v1.CloudService/ListCloudVms",
	"/nacre.v1.CloudService/CloudVmConsole",
	"/nacre.v1.NetworkService/ListNetworks",
	"/nacre.v1.NetworkService/InspectNetwork",
	"/nacre.v1.VolumeService/ListVolumes",
	"/nacre.v1.VolumeService/InspectVolume",
	"/nacre.v1.SecretService/ListSecrets",
	"/nacre.v1.SecretService/InspectSecret",
	"/nacre.v1.ImageService/List",
	"/nacre.v1.ImageService/Inspect",
	"/nacre.v1.ImageService/DiskUsage",
	"/nacre.v1.NodeService/*",
	"/nacre.v1.IdentityService/Authority",
	"/nacre.v1.IdentityService/ListIdentities",
	"/aurae.cells.v0.CellService/List",
	"/aurae.discovery.v0.DiscoveryService/*",
	"/aurae.observe.v0.ObserveService/*",
	"/aurae.vms.v0.VmService/List",
	"/runtime.v1.RuntimeService/Version",
	"/runtime.v1.RuntimeService/Status",
	"/runtime.v1.RuntimeService/List*",
	"/runtime.v1.RuntimeService/PodSandboxStatus",
	"/runtime.v1.RuntimeService/PodSandboxStats",
	"/runtime.v1.RuntimeService/ContainerStatus",
	"/runtime.v1.RuntimeService/ContainerStats",
	"/runtime.v1.RuntimeService/GetContainerEvents",
	"/runtime.v1.RuntimeService/RuntimeConfig",
	"/runtime.v1.ImageService/ListImages",
	"/runtime.v1.ImageService/ImageStatus",
	"/runtime.v1.ImageService/ImageFsInfo",
	"/grpc.health.v1.Health/*",
	"/grpc.reflection.v1.ServerReflection/*",
	"/grpc.reflection.v1alpha.ServerReflection/*",
};

bool access_matches(const char *pattern, const char *text)
{
	size_t len = strlen(pattern);

	if (len > 0 && pattern[len - 1] == '*')
		return strncmp(pattern, text, len - 1) == 0;
	return str_eq(pattern, text);
}

bool access_is_read(const char *method)
{
	for (size_t i = 0; i < ARRAY_SIZE(access_reads); i++)
		if (access_matches(access_reads[i], method))
			return true;
	return false;
}

int access_check(const struct rpc_remote *who, const char *method, struct error *err)
{
	if (str_eq(who->role, "admin") || (str_eq(who->role, "reader") && access_is_read(method)))
		return 0;
	if (!*who->role)
		return error_refuse(err, ERROR_UNAUTHENTICATED,
				    "%.100s: this node has no record of certificate %s (nacre "
				    "identity issue makes a new one)",
				    who->id, who->serial);
	return error_refuse(err, ERROR_DENIED,
			    "%.100s has the role \"%s\", which may not call %.120s (nacre identity "
			    "issue --role admin)",
			    who->id, who->role, method);
}
