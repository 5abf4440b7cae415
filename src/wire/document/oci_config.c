/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/oci_config.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/* The documents as tables, from the leaves up. */

#define FIELD(type, json, member, how, ...)                                                        \
	{                                                                                          \
		.name = (json), .want = (how), .offset = offsetof(struct type, member),            \
		##__VA_ARGS__                                                                      \
	}
#define COUNT(type, member) .count_offset = offsetof(struct type, member)
#define OF(type, table)                                                                            \
	.size = sizeof(struct type), .fields = table##_fields,                                     \
	.n_fields = ARRAY_SIZE(table##_fields)

static const struct json_field id_map_fields[] = {
	FIELD(oci_id_map, "containerID", inside, JSON_TO_UINT, .required = true, .max = UINT32_MAX),
	FIELD(oci_id_map, "hostID", outside, JSON_TO_UINT, .required = true, .max = UINT32_MAX),
	FIELD(oci_id_map, "size", size, JSON_TO_UINT, .required = true, .max = UINT32_MAX),
};

static const struct json_field user_fields[] = {
	FIELD(oci_user, "uid", uid, JSON_TO_UINT, .max = UINT32_MAX),
	FIELD(oci_user, "gid", gid, JSON_TO_UINT, .max = UINT32_MAX),
	FIELD(oci_user, "umask", umask, JSON_TO_UINT, .max = 07777),
	FIELD(oci_user, "additionalGids", groups, JSON_TO_NUMBERS, COUNT(oci_user, n_groups),
	      .max = OCI_GROUPS_MAX),
};

static const struct json_field caps_fields[] = {
	FIELD(oci_caps, "bounding", bounding, JSON_TO_TEXTS, COUNT(oci_caps, n_bounding)),
	FIELD(oci_caps, "effective", effective, JSON_TO_TEXTS, COUNT(oci_caps, n_effective)),
	FIELD(oci_caps, "inheritable", inheritable, JSON_TO_TEXTS, COUNT(oci_caps, n_inheritable)),
	FIELD(oci_caps, "permitted", permitted, JSON_TO_TEXTS, COUNT(oci_caps, n_permitted)),
	FIELD(oci_caps, "ambient", ambient, JSON_TO_TEXTS, COUNT(oci_caps, n_ambient)),
};

static const struct json_field rlimit_fields[] = {
	FIELD(oci_rlimit, "type", type, JSON_TO_TEXT, .required = true),
	FIELD(oci_rlimit, "soft", soft, JSON_TO_UINT, .required = true),
	FIELD(oci_rlimit, "hard", hard, JSON_TO_UINT, .required = true),
};

static const struct json_field scheduler_fields[] = {
	FIELD(oci_scheduler, "policy", policy, JSON_TO_TEXT, .required = true),
	FIELD(oci_scheduler, "flags", flags, JSON_TO_TEXTS, COUNT(oci_scheduler, n_flags)),
	FIELD(oci_scheduler, "nice", nice, JSON_TO_INT, .min = -20, .max = 19),
	FIELD(oci_scheduler, "priority", priority, JSON_TO_INT, .min = 0, .max = 99),
	FIELD(oci_scheduler, "runtime", runtime, JSON_TO_UINT),
	FIELD(oci_scheduler, "deadline", deadline, JSON_TO_UINT),
	FIELD(oci_scheduler, "period", period, JSON_TO_UINT),
};

static const struct json_field io_priority_fields[] = {
	FIELD(oci_io_priority, "class", class, JSON_TO_TEXT, .required = true),
	FIELD(oci_io_priority, "priority", priority, JSON_TO_INT, .min = 0, .max = 7),
};

static const struct json_field affinity_fields[] = {
	FIELD(oci_affinity, "initial", initial, JSON_TO_TEXT),
	FIELD(oci_affinity, "final", final, JSON_TO_TEXT),
};

static const struct json_field console_size_fields[] = {
	FIELD(oci_console_size, "width", width, JSON_TO_UINT, .required = true, .max = UINT16_MAX),
	FIELD(oci_console_size, "height", height, JSON_TO_UINT, .required = true,
	      .max = UINT16_MAX),
};

static const struct json_field process_fields[] = {
	FIELD(oci_process, "terminal", terminal, JSON_TO_BOOL),
	FIELD(oci_process, "noNewPrivileges", no_new_privs, JSON_TO_BOOL),
	FIELD(oci_process, "oomScoreAdj", oom_score_adj, JSON_TO_INT, .min = -1000, .max = 1000),
	FIELD(oci_process, "consoleSize", console_size, JSON_TO_ONE,
	      OF(oci_console_size, console_size)),
	FIELD(oci_process, "user", user, JSON_TO_ONE, OF(oci_user, user)),
	FIELD(oci_process, "args", args, JSON_TO_TEXTS, COUNT(oci_process, n_args),
	      .max = OCI_ARGS_MAX),
	FIELD(oci_process, "env", env, JSON_TO_TEXTS, COUNT(oci_process, n_env),
	      .max = OCI_ARGS_MAX),
	FIELD(oci_process, "cwd", cwd, JSON_TO_TEXT, .required = true),
	FIELD(oci_process, "capabilities", caps, JSON_TO_ONE, OF(oci_caps, caps)),
	FIELD(oci_process, "rlimits", rlimits, JSON_TO_LIST, OF(oci_rlimit, rlimit),
	      COUNT(oci_process, n_rlimits)),
	FIELD(oci_process, "apparmorProfile", apparmor, JSON_TO_TEXT),
	FIELD(oci_process, "selinuxLabel", selinux, JSON_TO_TEXT),
	FIELD(oci_process, "scheduler", scheduler, JSON_TO_ONE, OF(oci_scheduler, scheduler)),
	FIELD(oci_process, "ioPriority", io_priority, JSON_TO_ONE,
	      OF(oci_io_priority, io_priority)),
	FIELD(oci_process, "execCPUAffinity", affinity, JSON_TO_ONE, OF(oci_affinity, affinity)),
};

static const struct json_field root_fields[] = {
	FIELD(oci_root, "path", path, JSON_TO_TEXT, .required = true),
	FIELD(oci_root, "readonly", readonly, JSON_TO_BOOL),
};

static const struct json_field mount_fields[] = {
	FIELD(oci_mount, "destination", destination, JSON_TO_TEXT, .required = true),
	FIELD(oci_mount, "type", type, JSON_TO_TEXT),
	FIELD(oci_mount, "source", source, JSON_TO_TEXT),
	FIELD(oci_mount, "options", options, JSON_TO_TEXTS, COUNT(oci_mount, n_options)),
	FIELD(oci_mount, "uidMappings", uid_maps, JSON_TO_LIST, OF(oci_id_map, id_map),
	      COUNT(oci_mount, n_uid_maps), .max = OCI_ID_MAPS_MAX),
	FIELD(oci_mount, "gidMappings", gid_maps, JSON_TO_LIST, OF(oci_id_map, id_map),
	      COUNT(oci_mount, n_gid_maps), .max = OCI_ID_MAPS_MAX),
};

static const struct json_field hook_fields[] = {
	FIELD(oci_hook, "path", path, JSON_TO_TEXT, .required = true),
	FIELD(oci_hook, "args", args, JSON_TO_TEXTS, COUNT(oci_hook, n_args),
	      .max = OCI_HOOK_ARGS_MAX),
	FIELD(oci_hook, "env", env, JSON_TO_TEXTS, COUNT(oci_hook, n_env),
	      .max = OCI_HOOK_ARGS_MAX),
	FIELD(oci_hook, "timeout", timeout, JSON_TO_INT, .min = 1, .max = INT32_MAX),
};

static const struct json_field hooks_fields[] = {
	FIELD(oci_hooks, "prestart", lists[OCI_HOOK_PRESTART].hooks, JSON_TO_LIST,
	      OF(oci_hook, hook), COUNT(oci_hooks, lists[OCI_HOOK_PRESTART].n),
	      .max = OCI_HOOKS_MAX),
	FIELD(oci_hooks, "createRuntime", lists[OCI_HOOK_CREATE_RUNTIME].hooks, JSON_TO_LIST,
	      OF(oci_hook, hook), COUNT(oci_hooks, lists[OCI_HOOK_CREATE_RUNTIME].n),
	      .max = OCI_HOOKS_MAX),
	FIELD(oci_hooks, "createContainer", lists[OCI_HOOK_CREATE_CONTAINER].hooks, JSON_TO_LIST,
	      OF(oci_hook, hook), COUNT(oci_hooks, lists[OCI_HOOK_CREATE_CONTAINER].n),
	      .max = OCI_HOOKS_MAX),
	FIELD(oci_hooks, "startContainer", lists[OCI_HOOK_START_CONTAINER].hooks, JSON_TO_LIST,
	      OF(oci_hook, hook), COUNT(oci_hooks, lists[OCI_HOOK_START_CONTAINER].n),
	      .max = OCI_HOOKS_MAX),
	FIELD(oci_hooks, "poststart", lists[OCI_HOOK_POSTSTART].hooks, JSON_TO_LIST,
	      OF(oci_hook, hook), COUNT(oci_hooks, lists[OCI_HOOK_POSTSTART].n),
	      .max = OCI_HOOKS_MAX),
	FIELD(oci_hooks, "poststop", lists[OCI_HOOK_POSTSTOP].hooks, JSON_TO_LIST,
	      OF(oci_hook, hook), COUNT(oci_hooks, lists[OCI_HOOK_POSTSTOP].n),
	      .max = OCI_HOOKS_MAX),
};

static const struct json_field namespace_fields[] = {
	FIELD(oci_namespace, "type", type, JSON_TO_TEXT, .required = true),
	FIELD(oci_namespace, "path", path, JSON_TO_TEXT),
};

static const struct json_field device_fields[] = {
	FIELD(oci_device, "path", path, JSON_TO_TEXT, .required = true),
	FIELD(oci_device, "type", type, JSON_TO_TEXT, .required = true),
	FIELD(oci_device, "major", major, JSON_TO_INT),
	FIELD(oci_device, "minor", minor, JSON_TO_INT),
	FIELD(oci_device, "fileMode", mode, JSON_TO_UINT, .max = UINT32_MAX),
	FIELD(oci_device, "uid", uid, JSON_TO_UINT, .max = UINT32_MAX),
	FIELD(oci_device, "gid", gid, JSON_TO_UINT, .max = UINT32_MAX),
};

static const struct json_field net_device_fields[] = {
	FIELD(oci_net_device, "name", name, JSON_TO_TEXT),
};

static const struct json_field device_rule_fields[] = {
	FIELD(oci_device_rule, "allow", allow, JSON_TO_BOOL, .required = true),
	FIELD(oci_device_rule, "type", type, JSON_TO_TEXT),
	FIELD(oci_device_rule, "major", major, JSON_TO_INT),
	FIELD(oci_device_rule, "minor", minor, JSON_TO_INT),
	FIELD(oci_device_rule, "access", access, JSON_TO_TEXT),
};

static const struct json_field memory_fields[] = {
	FIELD(oci_memory, "limit", limit, JSON_TO_INT),
	FIELD(oci_memory, "reservation", reservation, JSON_TO_INT),
	FIELD(oci_memory, "swap", swap, JSON_TO_INT),
	FIELD(oci_memory, "kernel", kernel, JSON_TO_INT),
	FIELD(oci_memory, "kernelTCP", kernel_tcp, JSON_TO_INT),
	FIELD(oci_memory, "swappiness", swappiness, JSON_TO_UINT, .max = 200),
	FIELD(oci_memory, "disableOOMKiller", disable_oom_killer, JSON_TO_BOOL),
	FIELD(oci_memory, "useHierarchy", use_hierarchy, JSON_TO_BOOL),
	FIELD(oci_memory, "checkBeforeUpdate", check_before_update, JSON_TO_BOOL),
};

static const struct json_field cpu_fields[] = {
	FIELD(oci_cpu, "shares", shares, JSON_TO_UINT),
	FIELD(oci_cpu, "quota", quota, JSON_TO_INT),
	FIELD(oci_cpu, "burst", burst, JSON_TO_UINT),
	FIELD(oci_cpu, "period", period, JSON_TO_UINT),
	FIELD(oci_cpu, "realtimeRuntime", realtime_runtime, JSON_TO_INT),
	FIELD(oci_cpu, "realtimePeriod", realtime_period, JSON_TO_UINT),
	FIELD(oci_cpu, "cpus", cpus, JSON_TO_TEXT),
	FIELD(oci_cpu, "mems", mems, JSON_TO_TEXT),
	FIELD(oci_cpu, "idle", idle, JSON_TO_INT),
};

static const struct json_field pids_fields[] = {
	FIELD(oci_pids, "limit", limit, JSON_TO_INT),
};

static const struct json_field weight_device_fields[] = {
	FIELD(oci_weight_device, "major", major, JSON_TO_INT, .required = true),
	FIELD(oci_weight_device, "minor", minor, JSON_TO_INT, .required = true),
	FIELD(oci_weight_device, "weight", weight, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(oci_weight_device, "leafWeight", leaf_weight, JSON_TO_UINT, .max = UINT16_MAX),
};

static const struct json_field throttle_device_fields[] = {
	FIELD(oci_throttle_device, "major", major, JSON_TO_INT, .required = true),
	FIELD(oci_throttle_device, "minor", minor, JSON_TO_INT, .required = true),
	FIELD(oci_throttle_device, "rate", rate, JSON_TO_UINT, .required = true),
};

static const struct json_field block_io_fields[] = {
	FIELD(oci_block_io, "weight", weight, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(oci_block_io, "leafWeight", leaf_weight, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(oci_block_io, "weightDevice", weight_devices, JSON_TO_LIST,
	      OF(oci_weight_device, weight_device), COUNT(oci_block_io, n_weight_devices)),
	FIELD(oci_block_io, "throttleReadBpsDevice", throttles[OCI_READ_BPS].devices, JSON_TO_LIST,
	      OF(oci_throttle_device, throttle_device),
	      COUNT(oci_block_io, throttles[OCI_READ_BPS].n)),
	FIELD(oci_block_io, "throttleWriteBpsDevice", throttles[OCI_WRITE_BPS].devices,
	      JSON_TO_LIST, OF(oci_throttle_device, throttle_device),
	      COUNT(oci_block_io, throttles[OCI_WRITE_BPS].n)),
	FIELD(oci_block_io, "throttleReadIOPSDevice", throttles[OCI_READ_IOPS].devices,
	      JSON_TO_LIST, OF(oci_throttle_device, throttle_device),
	      COUNT(oci_block_io, throttles[OCI_READ_IOPS].n)),
	FIELD(oci_block_io, "throttleWriteIOPSDevice", throttles[OCI_WRITE_IOPS].devices,
	      JSON_TO_LIST, OF(oci_throttle_device, throttle_device),
	      COUNT(oci_block_io, throttles[OCI_WRITE_IOPS].n)),
};

static const struct json_field huge_page_fields[] = {
	FIELD(oci_huge_page, "pageSize", page_size, JSON_TO_TEXT, .required = true),
	FIELD(oci_huge_page, "limit", limit, JSON_TO_UINT, .required = true),
};

static const struct json_field priority_fields[] = {
	FIELD(oci_interface_priority, "name", name, JSON_TO_TEXT, .required = true),
	FIELD(oci_interface_priority, "priority", priority, JSON_TO_UINT, .required = true,
	      .max = UINT32_MAX),
};

static const struct json_field network_fields[] = {
	FIELD(oci_network, "classID", class_id, JSON_TO_UINT, .max = UINT32_MAX),
	FIELD(oci_network, "priorities", priorities, JSON_TO_LIST,
	      OF(oci_interface_priority, priority), COUNT(oci_network, n_priorities)),
};

static const struct json_field rdma_fields[] = {
	FIELD(oci_rdma, "hcaHandles", handles, JSON_TO_UINT, .max = UINT32_MAX),
	FIELD(oci_rdma, "hcaObjects", objects, JSON_TO_UINT, .max = UINT32_MAX),
};

static const struct json_field resources_fields[] = {
	FIELD(oci_resources, "devices", devices, JSON_TO_LIST, OF(oci_device_rule, device_rule),
	      COUNT(oci_resources, n_devices), .max = OCI_DEVICES_MAX),
	FIELD(oci_resources, "memory", memory, JSON_TO_ONE, OF(oci_memory, memory)),
	FIELD(oci_resources, "cpu", cpu, JSON_TO_ONE, OF(oci_cpu, cpu)),
	FIELD(oci_resources, "pids", pids, JSON_TO_ONE, OF(oci_pids, pids)),
	FIELD(oci_resources, "blockIO", block_io, JSON_TO_ONE, OF(oci_block_io, block_io)),
	FIELD(oci_resources, "hugepageLimits", huge_pages, JSON_TO_LIST,
	      OF(oci_huge_page, huge_page), COUNT(oci_resources, n_huge_pages)),
	FIELD(oci_resources, "network", network, JSON_TO_ONE, OF(oci_network, network)),
	FIELD(oci_resources, "rdma", rdma, JSON_TO_MAP, OF(oci_rdma, rdma),
	      COUNT(oci_resources, n_rdma)),
	FIELD(oci_resources, "unified", unified, JSON_TO_PAIRS, COUNT(oci_resources, n_unified)),
};

static const struct json_field syscall_arg_fields[] = {
	FIELD(oci_syscall_arg, "index", index, JSON_TO_UINT, .required = true, .max = 5),
	FIELD(oci_syscall_arg, "value", value, JSON_TO_UINT, .required = true),
	FIELD(oci_syscall_arg, "valueTwo", value_two, JSON_TO_UINT),
	FIELD(oci_syscall_arg, "op", op, JSON_TO_TEXT, .required = true),
};

static const struct json_field syscall_fields[] = {
	FIELD(oci_syscall, "names", names, JSON_TO_TEXTS, COUNT(oci_syscall, n_names),
	      .required = true, .max = OCI_SYSCALLS_MAX),
	FIELD(oci_syscall, "action", action, JSON_TO_TEXT, .required = true),
	FIELD(oci_syscall, "errnoRet", errno_ret, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(oci_syscall, "args", args, JSON_TO_LIST, OF(oci_syscall_arg, syscall_arg),
	      COUNT(oci_syscall, n_args)),
};

static const struct json_field seccomp_fields[] = {
	FIELD(oci_seccomp, "defaultAction", default_action, JSON_TO_TEXT, .required = true),
	FIELD(oci_seccomp, "defaultErrnoRet", default_errno_ret, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(oci_seccomp, "architectures", architectures, JSON_TO_TEXTS,
	      COUNT(oci_seccomp, n_architectures)),
	FIELD(oci_seccomp, "flags", flags, JSON_TO_TEXTS, COUNT(oci_seccomp, n_flags)),
	FIELD(oci_seccomp, "listenerPath", listener_path, JSON_TO_TEXT),
	FIELD(oci_seccomp, "listenerMetadata", listener_metadata, JSON_TO_TEXT),
	FIELD(oci_seccomp, "syscalls", syscalls, JSON_TO_LIST, OF(oci_syscall, syscall),
	      COUNT(oci_seccomp, n_syscalls), .max = OCI_SYSCALLS_MAX),
};

static const struct json_field intel_rdt_fields[] = {
	FIELD(oci_intel_rdt, "closID", clos_id, JSON_TO_TEXT),
	FIELD(oci_intel_rdt, "l3CacheSchema", l3_cache, JSON_TO_TEXT),
	FIELD(oci_intel_rdt, "memBwSchema", mem_bw, JSON_TO_TEXT),
	FIELD(oci_intel_rdt, "schemata", schemata, JSON_TO_TEXTS, COUNT(oci_intel_rdt, n_schemata)),
	FIELD(oci_intel_rdt, "enableMonitoring", monitoring, JSON_TO_BOOL),
};

static const struct json_field mem_policy_fields[] = {
	FIELD(oci_mem_policy, "mode", mode, JSON_TO_TEXT, .required = true),
	FIELD(oci_mem_policy, "nodes", nodes, JSON_TO_TEXT),
	FIELD(oci_mem_policy, "flags", flags, JSON_TO_TEXTS, COUNT(oci_mem_policy, n_flags)),
};

static const struct json_field personality_fields[] = {
	FIELD(oci_personality, "domain", domain, JSON_TO_TEXT, .required = true),
	FIELD(oci_personality, "flags", flags, JSON_TO_TEXTS, COUNT(oci_personality, n_flags)),
};

static const struct json_field time_offset_fields[] = {
	FIELD(oci_time_offset, "secs", sec, JSON_TO_INT),
	FIELD(oci_time_offset, "nanosecs", nsec, JSON_TO_UINT, .max = 999999999),
};

static const struct json_field os_fields[] = {
	FIELD(oci_linux, "uidMappings", uid_maps, JSON_TO_LIST, OF(oci_id_map, id_map),
	      COUNT(oci_linux, n_uid_maps), .max = OCI_ID_MAPS_MAX),
	FIELD(oci_linux, "gidMappings", gid_maps, JSON_TO_LIST, OF(oci_id_map, id_map),
	      COUNT(oci_linux, n_gid_maps), .max = OCI_ID_MAPS_MAX),
	FIELD(oci_linux, "sysctl", sysctls, JSON_TO_PAIRS, COUNT(oci_linux, n_sysctls)),
	FIELD(oci_linux, "resources", resources, JSON_TO_ONE, OF(oci_resources, resources)),
	FIELD(oci_linux, "cgroupsPath", cgroups_path, JSON_TO_TEXT),
	FIELD(oci_linux, "namespaces", namespaces, JSON_TO_LIST, OF(oci_namespace, namespace),
	      COUNT(oci_linux, n_namespaces), .max = 64),
	FIELD(oci_linux, "devices", devices, JSON_TO_LIST, OF(oci_device, device),
	      COUNT(oci_linux, n_devices), .max = OCI_DEVICES_MAX),
	FIELD(oci_linux, "netDevices", net_devices, JSON_TO_MAP, OF(oci_net_device, net_device),
	      COUNT(oci_linux, n_net_devices)),
	FIELD(oci_linux, "seccomp", seccomp, JSON_TO_ONE, OF(oci_seccomp, seccomp)),
	FIELD(oci_linux, "rootfsPropagation", root_propagation, JSON_TO_TEXT),
	FIELD(oci_linux, "maskedPaths", masked_paths, JSON_TO_TEXTS,
	      COUNT(oci_linux, n_masked_paths), .max = OCI_MOUNTS_MAX),
	FIELD(oci_linux, "readonlyPaths", readonly_paths, JSON_TO_TEXTS,
	      COUNT(oci_linux, n_readonly_paths), .max = OCI_MOUNTS_MAX),
	FIELD(oci_linux, "mountLabel", mount_label, JSON_TO_TEXT),
	FIELD(oci_linux, "intelRdt", intel_rdt, JSON_TO_ONE, OF(oci_intel_rdt, intel_rdt)),
	FIELD(oci_linux, "memoryPolicy", mem_policy, JSON_TO_ONE, OF(oci_mem_policy, mem_policy)),
	FIELD(oci_linux, "personality", personality, JSON_TO_ONE, OF(oci_personality, personality)),
	FIELD(oci_linux, "timeOffsets", time_offsets, JSON_TO_MAP, OF(oci_time_offset, time_offset),
	      COUNT(oci_linux, n_time_offsets)),
};

static const struct json_field config_fields[] = {
	FIELD(oci_config, "ociVersion", version, JSON_TO_TEXT, .required = true),
	FIELD(oci_config, "process", process, JSON_TO_ONE, OF(oci_process, process)),
	FIELD(oci_config, "root", root, JSON_TO_ONE, OF(oci_root, root)),
	FIELD(oci_config, "hostname", hostname, JSON_TO_TEXT),
	FIELD(oci_config, "domainname", domainname, JSON_TO_TEXT),
	FIELD(oci_config, "mounts", mounts, JSON_TO_LIST, OF(oci_mount, mount),
	      COUNT(oci_config, n_mounts), .max = OCI_MOUNTS_MAX),
	FIELD(oci_config, "hooks", hooks, JSON_TO_ONE, OF(oci_hooks, hooks)),
	FIELD(oci_config, "annotations", annotations, JSON_TO_PAIRS,
	      COUNT(oci_config, n_annotations), .max = JSONREAD_MEMBERS_MAX),
	FIELD(oci_config, "linux", os, JSON_TO_ONE, OF(oci_linux, os)),
};

const char *const oci_hook_names[OCI_HOOK_KIND_COUNT] = {
	[OCI_HOOK_PRESTART] = "prestart",
	[OCI_HOOK_CREATE_RUNTIME] = "createRuntime",
	[OCI_HOOK_CREATE_CONTAINER] = "createContainer",
	[OCI_HOOK_START_CONTAINER] = "startContainer",
	[OCI_HOOK_POSTSTART] = "poststart",
	[OCI_HOOK_POSTSTOP] = "poststop",
};

/* ---- semantic versions, by the grammar of semver.org ---- */

#define DIGITS "0123456789"
#define IDENTIFIER DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"

/* Takes MAJOR, MINOR or PATCH off *at: a number without a zero in front. */
static bool version_number(const char **at)
{
	size_t n = strspn(*at, DIGITS);
	bool good = n == 1 || (n > 1 && **at != '0');

	*at += n;
	return good;
}

static bool version_dot(const char **at)
{
	if (**at != '.')
		return false;
	(*at)++;
	return true;
}

/* Takes identifiers with dots between them off *at. A number among those of a pre-release has no
 * zero in front; one of a build may. */
static bool version_identifiers(const char **at, bool prerelease)
{
	for (;; (*at)++) {
		size_t n = strspn(*at, IDENTIFIER);

		if (n == 0 || (prerelease && n > 1 && **at == '0' && strspn(*at, DIGITS) == n))
			return false;
		*at += n;
		if (**at != '.')
			return true;
	}
}

static bool version_is_semantic(const char *at)
{
	if (!version_number(&at) || !version_dot(&at) || !version_number(&at) ||
	    !version_dot(&at) || !version_number(&at))
		return false;
	if (*at == '-') {
		at++;
		if (!version_identifiers(&at, true))
			return false;
	}
	if (*at == '+') {
		at++;
		if (!version_identifiers(&at, false))
			return false;
	}
	return *at == '\0';
}

static int check_version(const char *version, struct error *err)
{
	if (!version_is_semantic(version))
		return error_field(err, ERROR_INVALID, "ociVersion",
				   "\"%.40s\" is no semantic version (write it as 1.0.2 or "
				   "1.0.2-dev)",
				   version);
	if (!str_has_prefix(version, "1."))
		return error_field(err, ERROR_INVALID, "ociVersion",
				   "\"%.40s\" is not 1.x, which this runtime knows", version);
	return 0;
}

static int check_list_of_variables(const char *const *env, size_t n, const char *path,
				   struct error *err)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr(env[i], '=') || env[i][0] == '=')
			return error_field(err, ERROR_INVALID, path, "[%zu] is not NAME=VALUE", i);
	return 0;
}

static int check_hooks(const struct oci_hooks *hooks, struct error *err)
{
	char path[64];

	for (int k = 0; k < OCI_HOOK_KIND_COUNT; k++) {
		for (size_t i = 0; i < hooks->lists[k].n; i++) {
			const struct oci_hook *h = &hooks->lists[k].hooks[i];
			int r;

			(void)str_printf(path, sizeof(path), "hooks.%s[%zu]", oci_hook_names[k], i);
			if (h->path[0] != '/')
				return error_field(err, ERROR_INVALID, path,
						   "path \"%.100s\" is not absolute", h->path);
			(void)str_printf(path, sizeof(path), "hooks.%s[%zu].env", oci_hook_names[k],
					 i);
			r = check_list_of_variables(h->env, h->n_env, path, err);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int check_process(const struct oci_process *p, const char *prefix, struct error *err)
{
	char path[40];

	(void)str_printf(path, sizeof(path), "%scwd", prefix);
	if (p->cwd[0] != '/')
		return error_field(err, ERROR_INVALID, path, "\"%.100s\" is not absolute", p->cwd);
	(void)str_printf(path, sizeof(path), "%sargs", prefix);
	if (p->n_args == 0 || !p->args[0][0])
		return error_field(err, ERROR_INVALID, path, "names no program");
	for (size_t i = 0; i < p->n_rlimits; i++)
		for (size_t j = 0; j < i; j++)
			if (str_eq(p->rlimits[i].type, p->rlimits[j].type)) {
				(void)str_printf(path, sizeof(path), "%srlimits[%zu]", prefix, i);
				return error_field(err, ERROR_INVALID, path, "is there twice");
			}
	return 0;
}

static int check_linux(const struct oci_linux *l, struct error *err)
{
	char path[40];

	for (size_t i = 0; i < l->n_namespaces; i++) {
		(void)str_printf(path, sizeof(path), "linux.namespaces[%zu]", i);
		for (size_t j = 0; j < i; j++)
			if (str_eq(l->namespaces[i].type, l->namespaces[j].type))
				return error_field(err, ERROR_INVALID, path, "is there twice");
		if (!str_empty(l->namespaces[i].path) && l->namespaces[i].path[0] != '/')
			return error_field(err, ERROR_INVALID, path,
					   "path \"%.100s\" is not absolute",
					   l->namespaces[i].path);
	}
	return 0;
}

static int check_mounts(const struct oci_config *c, struct error *err)
{
	char path[40];

	for (size_t i = 0; i < c->n_mounts; i++) {
		const struct oci_mount *m = &c->mounts[i];

		(void)str_printf(path, sizeof(path), "mounts[%zu]", i);
		if (str_empty(m->destination))
			return error_field(err, ERROR_INVALID, path, "has an empty destination");
		if ((m->n_uid_maps > 0) != (m->n_gid_maps > 0))
			return error_field(err, ERROR_INVALID, path,
					   "uidMappings and gidMappings only go together");
	}
	return 0;
}

static int oci_config_check(const struct oci_config *c, struct error *err)
{
	int r;

	r = check_version(c->version, err);
	if (r == 0 && c->process)
		r = check_process(c->process, "process.", err);
	if (r == 0 && c->hooks)
		r = check_hooks(c->hooks, err);
	if (r == 0)
		r = check_linux(c->os, err);
	if (r == 0)
		r = check_mounts(c, err);
	return r;
}

/* The object that a document must be. */
static int read_object(struct json_value **ret, struct arena *arena, const void *data, size_t len,
		       struct error *err)
{
	int r;

	if (len > OCI_CONFIG_SIZE_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "it is larger than %zu MiB",
				    OCI_CONFIG_SIZE_MAX >> 20);
	r = json_parse(ret, arena, data, len, err);
	if (r < 0)
		return r;
	return (*ret)->kind == JSON_OBJECT ? 0 : error_refuse(err, ERROR_INVALID, "no JSON object");
}

int oci_config_read(struct oci_config **ret, struct arena *arena, const void *data, size_t len,
		    struct error *err)
{
	struct oci_config *c;
	struct json_value *v;
	int r;

	r = read_object(&v, arena, data, len, err);
	if (r < 0)
		return r;
	c = arena_zalloc(arena, 1, sizeof(*c));
	if (!c)
		return error_set(err, -ENOMEM, "read the configuration");
	r = json_fill(c, v, config_fields, ARRAY_SIZE(config_fields), "", arena, err);
	if (r < 0)
		return r;
	if (!c->os)
		c->os = arena_zalloc(arena, 1, sizeof(*c->os));
	if (!c->os)
		return error_set(err, -ENOMEM, "read the configuration");
	r = oci_config_check(c, err);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}

int oci_process_read(struct oci_process **ret, struct arena *arena, const void *data, size_t len,
		     struct error *err)
{
	struct oci_process *p;
	struct json_value *v;
	int r;

	r = read_object(&v, arena, data, len, err);
	if (r < 0)
		return r;
	p = arena_zalloc(arena, 1, sizeof(*p));
	if (!p)
		return error_set(err, -ENOMEM, "read the process");
	r = json_fill(p, v, process_fields, ARRAY_SIZE(process_fields), "", arena, err);
	if (r == 0)
		r = check_process(p, "", err);
	if (r < 0)
		return r;
	*ret = p;
	return 0;
}

int oci_resources_read(struct oci_resources **ret, struct arena *arena, const void *data,
		       size_t len, struct error *err)
{
	struct oci_resources *res;
	struct json_value *v;
	int r;

	r = read_object(&v, arena, data, len, err);
	if (r < 0)
		return r;
	res = arena_zalloc(arena, 1, sizeof(*res));
	if (!res)
		return error_set(err, -ENOMEM, "read the resources");
	r = json_fill(res, v, resources_fields, ARRAY_SIZE(resources_fields), "", arena, err);
	if (r < 0)
		return r;
	*ret = res;
	return 0;
}

const char *oci_annotation(const struct oci_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_annotations; i++)
		if (str_eq(c->annotations[i].name, name))
			return c->annotations[i].value;
	return NULL;
}
