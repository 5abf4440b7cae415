/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/typed.h"

#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/* A field, without the index of a list and without what stands in front of its container; the
 * options that set it, parted by blanks. A longer name stands before one that it begins with. */
static const struct {
	const char *field;
	const char *options;
} typed_fields[] = {
	{ "resources.cpu_quota", "cpus cpu-quota" },
	{ "resources.cpu_period", "cpus cpu-period" },
	{ "resources.cpu_weight", "cpu-weight cpu-shares" },
	{ "resources.cpuset_cpus", "cpuset-cpus" },
	{ "resources.cpuset_mems", "cpuset-mems" },
	{ "resources.memory_swap", "swap memory-swap" },
	{ "resources.no_swap", "swap memory-swap" },
	{ "resources.memory_low", "memory-low" },
	{ "resources.memory_high", "memory-high" },
	{ "resources.memory", "memory" },
	{ "resources.pids", "pids-limit" },
	{ "mounts", "volume mount tmpfs shm-size tz read-only-tmpfs" },
	{ "volumes", "volume mount" },
	{ "env", "env env-file env-host http-proxy" },
	{ "working_dir", "cwd" },
	{ "user", "user" },
	{ "command", "entrypoint" },
	{ "disk", "disk" },
	{ "devices", "device" },
	{ "cdi_devices", "device" },
	{ "security.profile", "security-profile" },
	{ "security.cap_add", "cap-add" },
	{ "security.cap_drop", "cap-drop" },
	{ "security.groups", "group-add" },
	{ "security.oom_score_adj", "oom-score-adj" },
	{ "security.privileged", "privileged" },
	{ "security.seccomp_profile", "security-opt" },
	{ "security.seccomp", "security-opt" },
	{ "security.mask", "security-opt" },
	{ "security.unmask", "security-opt" },
	{ "security.ulimits", "ulimit" },
	{ "security.pid", "pid" },
	{ "security.ipc", "ipc" },
	{ "security.uts", "uts" },
	{ "security.sysctls", "sysctl" },
	{ "security.cgroup_parent", "cgroup-parent" },
	{ "pod_network.publish", "publish" },
	{ "pod_network.ip6", "ip6" },
	{ "pod_network.ip", "ip" },
	{ "pod_network.mac", "mac-address" },
	{ "pod_network.dns_search", "dns-search" },
	{ "pod_network.dns_option", "dns-option" },
	{ "pod_network.dns", "dns" },
	{ "pod_network.hosts", "add-host" },
	{ "pod_network.hostname", "hostname" },
	{ "pod_network.rate_to_pod", "bandwidth" },
	{ "pod_network.metadata.user_data", "user-data" },
	{ "pod_network.metadata", "metadata" },
	{ "pod_network.rate_from_pod", "bandwidth" },
	{ "further_networks", "network" },
	{ "network", "network" },
	{ "nics", "nic" },
	{ "parent", "in" },
	{ "kind", "kind" },
	{ "cold", "cold" },
	{ "restart", "restart" },
	{ "meta.name", "name" },
	{ "meta.labels", "label" },
};

static const struct args *typed_args;

void typed_note(const struct args *args)
{
	typed_args = args;
}

/* "containers[0].mounts[1].source" as "mounts.source"; of another container nothing. */
static void typed_plain(char *to, const char *field)
{
	static const char first[] = "containers[0].";

	if (str_has_prefix(field, first))
		field += sizeof(first) - 1;
	while (*field) {
		if (*field != '[')
			*to++ = *field++;
		else if (field[strcspn(field, "]")])
			field += strcspn(field, "]") + 1;
		else
			break;
	}
	*to = '\0';
}

static bool typed_is_given(const char *name, size_t len)
{
	for (size_t i = 0; i < typed_args->n_given; i++) {
		const char *given = typed_args->given[i].option->name;

		if (strlen(given) == len && memcmp(given, name, len) == 0)
			return true;
	}
	return false;
}

/* The first of the options that was given. */
static bool typed_option(char *to, size_t size, const char *names)
{
	for (size_t len; *names; names += len + (names[len] == ' ')) {
		len = strcspn(names, " ");
		if (!typed_is_given(names, len))
			continue;
		(void)str_printf(to, size, "--%.*s", (int)len, names);
		return true;
	}
	return false;
}

/* With the part of it that is wrong, unless that is the source, which the option is mostly about.
 */
static void typed_put(struct error *err, const char *option, const char *part)
{
	char name[ERROR_FIELD_MAX];

	if (part && !str_eq(part, ".source") &&
	    str_printf(name, sizeof(name), "%s: %s", option, part + 1) >= 0)
		option = name;
	error_rename_field(err, option);
}

void typed_rename(struct error *err)
{
	char plain[ERROR_FIELD_MAX], option[ERROR_FIELD_MAX];

	if (!typed_args || !*err->field || !str_has_prefix(err->text, err->field))
		return;
	typed_plain(plain, err->field);
	for (size_t i = 0; i < ARRAY_SIZE(typed_fields); i++) {
		const char *field = typed_fields[i].field;
		size_t len = strlen(field);

		if (!str_has_prefix(plain, field) || (plain[len] && plain[len] != '.'))
			continue;
		if (typed_option(option, sizeof(option), typed_fields[i].options))
			typed_put(err, option, strrchr(plain + len, '.'));
		return;
	}
}
