/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "daemon/config_cloud.h"
#include "daemon/config_read.h"
#include "daemon/config_system.h"
#include "gates/front.h"
#include "gates/metrics_port.h"
#include "image/image.h"
#include "image/registry.h"
#include "isolate/disk/ext4_file.h"
#include "stream/address.h"

#define CONFIG_FILE_MAX ((size_t)1024 * 1024)
#define CONFIG_DIRECTORIES_SIZE 4096

/* ---- the keys ---- */

static int set_log_level(struct config *c, const char *value)
{
	int level = log_level_parse(value);

	if (level < 0)
		return -EINVAL;
	c->log_level = (enum log_level)level;
	return 0;
}

static int set_log_form(struct config *c, const char *value)
{
	if (!str_eq(value, "text") && !str_eq(value, "json"))
		return -EINVAL;
	c->log_form = str_eq(value, "json") ? LOG_FORM_JSON : LOG_FORM_TEXT;
	return 0;
}

static int set_log_max_size(struct config *c, const char *value)
{
	uint64_t size;

	if (parse_size(value, &size) < 0 || size < LOG_BYTES_MIN || size > LOG_BYTES_MAX)
		return -EINVAL;
	c->container_log.max_bytes = size;
	return 0;
}

static int set_log_max_files(struct config *c, const char *value)
{
	uint64_t n;

	if (parse_u64(value, 1, LOG_FILES_MAX, &n) < 0)
		return -EINVAL;
	c->container_log.max_files = (uint32_t)n;
	return 0;
}

static int set_log_when_full(struct config *c, const char *value)
{
	c->container_log.drop = str_eq(value, "drop");
	return c->container_log.drop || str_eq(value, "block") ? 0 : -EINVAL;
}

static int set_log_block_for(struct config *c, const char *value)
{
	nsec_t limit = NSEC_NEVER;

	if (!str_eq(value, "forever") &&
	    (parse_duration(value, &limit) < 0 || limit == 0 || limit > LOG_BLOCK_MAX))
		return -EINVAL;
	c->container_log.block_for = limit;
	return 0;
}

static int set_drain(struct config *c, const char *value)
{
	return parse_duration(value, &c->drain);
}

static int set_absolute(char *to, size_t size, const char *value)
{
	if (value[0] != '/' || strstr(value, "/../") || str_has_suffix(value, "/.."))
		return -EINVAL;
	return str_copy(to, size, value);
}

static int set_cgroup(struct config *c, const char *value)
{
	return value[0] && value[1] ? set_absolute(c->cgroup, sizeof(c->cgroup), value) : -EINVAL;
}

static int set_libexec(struct config *c, const char *value)
{
	return set_absolute(c->libexec, sizeof(c->libexec), value);
}

static int set_yes(bool *ret, const char *value)
{
	bool yes = str_eq(value, "yes") || str_eq(value, "true");

	if (!yes && !str_eq(value, "no") && !str_eq(value, "false"))
		return -EINVAL;
	*ret = yes;
	return 0;
}

static int set_spare(struct config *c, const char *value)
{
	return set_yes(&c->spare, value);
}

static int set_images_reserve(struct config *c, const char *value)
{
	uint64_t size;

	if (parse_size(value, &size) < 0 || size > CONFIG_RESERVE_MAX)
		return -EINVAL;
	c->images.reserve = size;
	return 0;
}

static int set_images_root(struct config *c, const char *value)
{
	static const char *const words[] = {
		[IMAGE_ROOT_OVERLAY] = "overlay",
		[IMAGE_ROOT_EROFS] = "erofs",
		[IMAGE_ROOT_AUTO] = "auto",
	};

	for (size_t k = 0; k < ARRAY_SIZE(words); k++) {
		if (!str_eq(words[k], value))
			continue;
		c->images.root = (enum image_root)k;
		return 0;
	}
	return -EINVAL;
}

static int set_vm_nested(struct config *c, const char *value)
{
	return set_yes(&c->vm.nested, value);
}

static int set_storage_container_limit(struct config *c, const char *value)
{
	uint64_t size = 0;

	if (!str_eq(value, "none") &&
	    (parse_size(value, &size) < 0 || size < EXT4_FILE_MIN || size > EXT4_FILE_MAX))
		return -EINVAL;
	c->storage.container_limit = size;
	return 0;
}

static int set_users_first(struct config *c, const char *value)
{
	uint64_t n = 0;

	if (parse_u64(value, 1, INT32_MAX, &n) < 0)
		return -EINVAL;
	c->users.first = (uint32_t)n;
	return 0;
}

static int set_users_count(struct config *c, const char *value)
{
	uint64_t n = 0;

	if (parse_u64(value, 0, INT32_MAX, &n) < 0)
		return -EINVAL;
	c->users.count = (uint32_t)n;
	return 0;
}

static int set_network_default(struct config *c, const char *value)
{
	c->network.by_default = str_eq(value, "default");
	return c->network.by_default || str_eq(value, "none") ? 0 : -EINVAL;
}

static int set_security_profile(struct config *c, const char *value)
{
	static const char *const profiles[] = { "baseline", "restricted" };

	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		if (!str_eq(profiles[i], value))
			continue;
		c->security_profile = profiles[i];
		return 0;
	}
	return -EINVAL;
}

static int set_cri_network(struct config *c, const char *value)
{
	c->cri.builtin_network = str_eq(value, "builtin");
	c->cri.plugin_network = str_eq(value, "cni");
	c->network.plugins = c->network.plugins || c->cri.plugin_network;
	return c->cri.builtin_network || c->cri.plugin_network ? 0 : -EINVAL;
}

static int set_network_conf_dir(struct config *c, const char *value)
{
	c->network.plugins = true;
	return set_absolute(c->network.conf_dir, sizeof(c->network.conf_dir), value);
}

static int set_cri_streaming(struct config *c, const char *value)
{
	char host[STREAM_HOST_SIZE];
	struct sockaddr_storage address;
	socklen_t len;
	int r = stream_address_read(value, &address, &len, host);

	return r < 0 ? r
		     : str_copy(c->cri.streaming_address, sizeof(c->cri.streaming_address), value);
}

static int set_vm_templates(struct config *c, const char *value)
{
	return set_yes(&c->vm.templates, value);
}

static int set_vm_pool(struct config *c, const char *value)
{
	uint64_t n;

	if (parse_u64(value, 0, CONFIG_VM_POOL_MAX, &n) < 0)
		return -EINVAL;
	c->vm.pool = (unsigned)n;
	return 0;
}

static int set_vm_memory(struct config *c, const char *value)
{
	uint64_t size;

	if (parse_size(value, &size) < 0 || size < CONFIG_VM_MEMORY_MIN ||
	    size > CONFIG_VM_MEMORY_MAX)
		return -EINVAL;
	c->vm.memory = size;
	return 0;
}

static int set_vm_cpus(struct config *c, const char *value)
{
	uint64_t n;

	if (parse_u64(value, 1, CONFIG_VM_CPUS_MAX, &n) < 0)
		return -EINVAL;
	c->vm.cpus = (unsigned)n;
	return 0;
}

static int set_vm_guest(struct config *c, const char *value)
{
	if (!value[0] || strchr(".-", value[0]) ||
	    strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-") !=
		    strlen(value))
		return -EINVAL;
	return str_copy(c->vm.guest, sizeof(c->vm.guest), str_eq(value, "default") ? "" : value);
}

static int set_vm_pods(struct config *c, const char *value)
{
	const enum instance_kind kind = instance_kind_of(value);

	if (kind == INSTANCE_KIND_COUNT && !str_eq(value, "auto"))
		return -EINVAL;
	c->vm.pods = kind;
	return 0;
}

static int set_vm_heartbeat(struct config *c, const char *value)
{
	nsec_t patience = NSEC_NEVER;

	if (!str_eq(value, "no") && !str_eq(value, "false") &&
	    (parse_duration(value, &patience) < 0 || patience < CONFIG_VM_HEARTBEAT_MIN))
		return -EINVAL;
	c->vm.heartbeat = patience;
	return 0;
}

static int set_vm_hardware(struct config *c, const char *value)
{
	c->vm.no_hardware = str_eq(value, "no") || str_eq(value, "false");
	return c->vm.no_hardware || str_eq(value, "auto") ? 0 : -EINVAL;
}

/* ---- clouds ---- */

/* The keys of daemon/config_cloud.h. */
#define CLOUD_KEY(name)                                                                            \
	static int set_##name(struct config *c, const char *value)                                 \
	{                                                                                          \
		return config_##name(&c->cloud, value);                                            \
	}

CLOUD_KEY(cloud_cluster)
CLOUD_KEY(cloud_poll)
CLOUD_KEY(cloud_settle)
CLOUD_KEY(cloud_lease)
CLOUD_KEY(cloud_boot_limit)
CLOUD_KEY(ec2_region)
CLOUD_KEY(ec2_endpoint)
CLOUD_KEY(ec2_profile)
CLOUD_KEY(ec2_subnet)
CLOUD_KEY(ec2_security_groups)
CLOUD_KEY(ec2_key_name)
CLOUD_KEY(ec2_instance_profile)
CLOUD_KEY(ec2_agent)
CLOUD_KEY(ec2_types)
CLOUD_KEY(ec2_spot)
CLOUD_KEY(gce_project)
CLOUD_KEY(gce_zone)
CLOUD_KEY(gce_endpoint)
CLOUD_KEY(gce_credentials)
CLOUD_KEY(gce_subnet)
CLOUD_KEY(gce_tags)
CLOUD_KEY(gce_agent)
CLOUD_KEY(gce_types)
CLOUD_KEY(gce_spot)
CLOUD_KEY(vsphere_endpoint)
CLOUD_KEY(vsphere_credentials)
CLOUD_KEY(vsphere_ca_file)
CLOUD_KEY(vsphere_thumbprint)
CLOUD_KEY(vsphere_datacenter)
CLOUD_KEY(vsphere_folder)
CLOUD_KEY(vsphere_pool)
CLOUD_KEY(vsphere_datastore)
CLOUD_KEY(vsphere_agent)
CLOUD_KEY(vsphere_types)

/* Absolute paths, parted by colons; each is set_absolute()'s. */
static int set_directories(char *to, size_t size, const char *value)
{
	char one[CONFIG_DIRECTORIES_SIZE], same[sizeof(one)];
	const char *at = value;

	for (;;) {
		size_t n = strcspn(at, ":");

		if (n >= sizeof(one))
			return -EINVAL;
		memcpy(one, at, n);
		one[n] = '\0';
		if (set_absolute(same, sizeof(same), one) < 0)
			return -EINVAL;
		if (!at[n])
			break;
		at += n + 1;
	}
	return str_copy(to, size, value);
}

static int set_images_registry_dirs(struct config *c, const char *value)
{
	return set_directories(c->images.registry_dirs, sizeof(c->images.registry_dirs), value);
}

static int set_network_bin_dirs(struct config *c, const char *value)
{
	c->network.plugins = true;
	return set_directories(c->network.bin_dirs, sizeof(c->network.bin_dirs), value);
}

static int set_cdi_dirs(struct config *c, const char *value)
{
	return set_directories(c->devices.cdi_dirs, sizeof(c->devices.cdi_dirs), value);
}

static int set_images_policy(struct config *c, const char *value)
{
	return set_absolute(c->images.policy, sizeof(c->images.policy), value);
}

static int set_system_hostname(struct config *c, const char *value)
{
	return config_system_hostname(&c->sys, value);
}

static int set_system_interface(struct config *c, const char *value)
{
	return config_system_interface(&c->sys, value);
}

static int set_system_dhcp_client(struct config *c, const char *value)
{
	return config_system_dhcp_client(&c->sys, value);
}

static int set_system_network_within(struct config *c, const char *value)
{
	return config_system_network_within(&c->sys, value);
}

static int set_system_dhcp_patience(struct config *c, const char *value)
{
	return config_system_dhcp_patience(&c->sys, value);
}

static int set_system_stop_within(struct config *c, const char *value)
{
	return config_system_stop_within(&c->sys, value);
}

static int set_images_downloads(struct config *c, const char *value)
{
	uint64_t n;

	if (parse_u64(value, 1, IMAGE_DOWNLOADS_MAX, &n) < 0)
		return -EINVAL;
	c->images.parallel_downloads = (unsigned)n;
	return 0;
}

static int set_images_unpacks(struct config *c, const char *value)
{
	uint64_t n = 0;

	if (!str_eq(value, "auto") && parse_u64(value, 1, IMAGE_UNPACKS_MAX, &n) < 0)
		return -EINVAL;
	c->images.parallel_unpacks = (unsigned)n;
	return 0;
}

static int set_images_no_progress(struct config *c, const char *value)
{
	nsec_t patience;

	if (parse_duration(value, &patience) < 0 || patience < CONFIG_IMAGES_PATIENCE_MIN ||
	    patience > CONFIG_IMAGES_PATIENCE_MAX)
		return -EINVAL;
	c->images.no_progress = patience;
	return 0;
}

static int set_svid_life(struct config *c, const char *value)
{
	nsec_t life;

	if (parse_duration(value, &life) < 0 || life < CONFIG_SVID_LIFE_MIN ||
	    life > CONFIG_SVID_LIFE_MAX)
		return -EINVAL;
	c->svid_life = (unsigned)(life / NSEC_PER_SEC);
	return 0;
}

static int set_metrics_listen(struct config *c, const char *value)
{
	return metrics_port_address_is_valid(value)
		       ? str_copy(c->metrics.listen, sizeof(c->metrics.listen), value)
		       : -EINVAL;
}

/* SPIFFE-ID, section 2.1. */
static int set_trust_domain(struct config *c, const char *value)
{
	if (!value[0] || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != strlen(value))
		return -EINVAL;
	return str_copy(c->trust_domain, sizeof(c->trust_domain), value);
}

static int set_listen(struct config *c, const char *value)
{
	struct sockaddr_storage address;
	socklen_t len;
	size_t n = c->listen.n;

	if (front_address_read(value, &address, &len) < 0 || n == CONFIG_LISTEN_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if (str_eq(c->listen.addresses[i], value))
			return -EINVAL;
	c->listen.n++;
	return str_copy(c->listen.addresses[n], sizeof(c->listen.addresses[n]), value);
}

/* A certificate holds 64, with the addresses of this host. */
#define LISTEN_NAMES_MAX 24

static int set_listen_names(struct config *c, const char *value)
{
	size_t at = strlen(c->listen.names), n = at > 0;

	for (const char *name = c->listen.names; *name; name++)
		n += *name == ',';
	if (n == LISTEN_NAMES_MAX || !front_name_is_valid(value) ||
	    str_printf(c->listen.names + at, sizeof(c->listen.names) - at, "%s%s", at ? "," : "",
		       value) < 0)
		return -EINVAL;
	return 0;
}

static int set_policy(struct config *c, const char *value)
{
	return set_absolute(c->policy, sizeof(c->policy), value);
}

static int set_audit(struct config *c, const char *value)
{
	return set_absolute(c->audit, sizeof(c->audit), value);
}

static int set_audit_full(struct config *c, const char *value)
{
	c->audit_full_refuses = str_eq(value, "refuse");
	return c->audit_full_refuses || str_eq(value, "log") ? 0 : -EINVAL;
}

static int set_ca_key(struct config *c, const char *value)
{
	return set_absolute(c->ca_key, sizeof(c->ca_key), value);
}

static int set_ca_certificate(struct config *c, const char *value)
{
	return set_absolute(c->ca_certificate, sizeof(c->ca_certificate), value);
}

static const struct config_key config_keys[] = {
	{ "listen", set_listen,
	  "an address with a port, \"192.0.2.1:7443\" or \"[::]:7443\", or the absolute path of a "
	  "unix "
	  "socket; up to 8, each once",
	  true },
	{ "policy", set_policy, "an absolute path" },
	{ "audit", set_audit, "an absolute path" },
	{ "audit_full", set_audit_full, "log or refuse" },
	{ "listen_names", set_listen_names,
	  "a DNS name in small letters, or an address, at most 24 of them", true },
	{ "log.level", set_log_level, "debug, info, warn or error" },
	{ "log.form", set_log_form, "text or json" },
	{ "log.max_size", set_log_max_size, "64KiB to 1024GiB" },
	{ "log.max_files", set_log_max_files, "1 to 1000" },
	{ "log.when_full", set_log_when_full, "block or drop" },
	{ "log.block_for", set_log_block_for, "a duration up to 24h, or forever" },
	{ "drain", set_drain, "a duration such as 10s" },
	{ "cgroup", set_cgroup, "an absolute path below the root of the cgroup hierarchy" },
	{ "libexec", set_libexec, "an absolute path" },
	{ "system.hostname", set_system_hostname, "1 to 64 of a-z, 0-9, '-' and '.'" },
	{ "system.interfaces", set_system_interface,
	  "DEVICE and words behind it: dhcp, auto, ADDRESS/LENGTH (up to 4), via GATEWAY, mtu "
	  "BYTES; up to 8 devices",
	  true },
	{ "system.dhcp_client", set_system_dhcp_client,
	  "the absolute path of a program, or a word behind it; at most 16, of 512 bytes together",
	  true },
	{ "system.network_within", set_system_network_within, "a duration up to 1h" },
	{ "system.dhcp_patience", set_system_dhcp_patience, "a duration from 1s to 1h" },
	{ "system.stop_within", set_system_stop_within, "a duration up to 1h" },
	{ "spare", set_spare, "yes or no" },
	{ "trust_domain", set_trust_domain, "1 to 255 of a-z, 0-9, '.', '-' and '_'" },
	{ "images.reserve", set_images_reserve, "a size such as 256MiB, up to 1048576GiB, or 0" },
	{ "images.root", set_images_root, "overlay, erofs or auto" },
	{ "network.cni.conf_dir", set_network_conf_dir, "an absolute path" },
	{ "network.cni.bin_dirs", set_network_bin_dirs, "absolute paths, parted by ':'" },
	{ "network.default", set_network_default, "default or none" },
	{ "security.profile", set_security_profile, "baseline or restricted" },
	{ "devices.cdi_dirs", set_cdi_dirs, "absolute paths, parted by ':'" },
	{ "cri.network", set_cri_network, "cni or builtin" },
	{ "cri.streaming_address", set_cri_streaming,
	  "a loopback address with a port, \"127.0.0.1:0\" or \"[::1]:10010\"" },
	{ "cloud.cluster", set_cloud_cluster, "1 to 63 of a-z, 0-9 and '-'" },
	{ "cloud.poll", set_cloud_poll, "a duration from 100ms to 10m" },
	{ "cloud.settle", set_cloud_settle, "a duration up to 1h" },
	{ "cloud.lease", set_cloud_lease, "a duration from 1s to 30d" },
	{ "cloud.boot_limit", set_cloud_boot_limit, "a duration from 1s to 15m" },
	{ "cloud.ec2.region", set_ec2_region, "the name of a region, as in eu-central-1" },
	{ "cloud.ec2.endpoint", set_ec2_endpoint, "a URL of https, or of http on this host" },
	{ "cloud.ec2.profile", set_ec2_profile, "the name of a profile" },
	{ "cloud.ec2.subnet", set_ec2_subnet, "the id of a subnet, as in subnet-0a1b" },
	{ "cloud.ec2.security_groups", set_ec2_security_groups,
	  "the id of a security group, as in sg-0a1b; at most 8 of them", true },
	{ "cloud.ec2.key_name", set_ec2_key_name, "the name of a key" },
	{ "cloud.ec2.instance_profile", set_ec2_instance_profile, "the name of a profile" },
	{ "cloud.ec2.agent_image", set_ec2_agent, "the id of an image, as in ami-0a1b" },
	{ "cloud.ec2.spot", set_ec2_spot, "yes or no" },
	{ "cloud.ec2.types", set_ec2_types,
	  "NAME=CPUS:MEMORY or NAME=CPUS:MEMORY:PRICE, as in t3.micro=2:1GiB:0.0104; at most 32",
	  true },
	{ "cloud.gce.project", set_gce_project, "the id of a project, as in my-project-7" },
	{ "cloud.gce.zone", set_gce_zone, "the name of a zone, as in europe-west1-b" },
	{ "cloud.gce.endpoint", set_gce_endpoint, "a URL of https, or of http on this host" },
	{ "cloud.gce.credentials", set_gce_credentials, "the absolute path of a file" },
	{ "cloud.gce.subnet", set_gce_subnet, "the name or the path of a subnetwork" },
	{ "cloud.gce.tags", set_gce_tags, "a network tag, as in nacre; at most 8 of them", true },
	{ "cloud.gce.agent_image", set_gce_agent,
	  "the path of an image, as in global/images/agent" },
	{ "cloud.gce.spot", set_gce_spot, "yes or no" },
	{ "cloud.gce.types", set_gce_types,
	  "NAME=CPUS:MEMORY or NAME=CPUS:MEMORY:PRICE, as in e2-small=2:2GiB:0.0168; at most 32",
	  true },
	{ "cloud.vsphere.endpoint", set_vsphere_endpoint,
	  "the URL of a vCenter, https://HOST/sdk; http on this host alone" },
	{ "cloud.vsphere.datacenter", set_vsphere_datacenter,
	  "the name of a datacenter; %20 is a blank" },
	{ "cloud.vsphere.resource_pool", set_vsphere_pool,
	  "a path below the datacenter's hosts, as in cluster-1/Resources" },
	{ "cloud.vsphere.folder", set_vsphere_folder, "a path below the datacenter's machines" },
	{ "cloud.vsphere.datastore", set_vsphere_datastore, "the name of a datastore" },
	{ "cloud.vsphere.credentials", set_vsphere_credentials, "the absolute path of a file" },
	{ "cloud.vsphere.ca_file", set_vsphere_ca_file,
	  "the absolute path of a file, and not beside thumbprint" },
	{ "cloud.vsphere.thumbprint", set_vsphere_thumbprint,
	  "the SHA-256 of a certificate, AA:BB:… of 32 bytes, and not beside ca_file" },
	{ "cloud.vsphere.agent_image", set_vsphere_agent,
	  "a template below the datacenter's machines, as in nacre/agent" },
	{ "cloud.vsphere.types", set_vsphere_types,
	  "NAME=CPUS:MEMORY or NAME=CPUS:MEMORY:PRICE, as in small=2:2GiB; at most 32", true },
	{ "identity.ca_key", set_ca_key, "the absolute path of a file" },
	{ "identity.ca_certificate", set_ca_certificate, "the absolute path of a file" },
	{ "identity.svid_life", set_svid_life, "a duration from 2s to 24h" },
	{ "metrics.listen", set_metrics_listen,
	  "an address of one interface with a port, \"127.0.0.1:9464\" or \"[::1]:9464\"" },
	{ "storage.container_limit", set_storage_container_limit, "16MiB to 1TiB, or none" },
	{ "users.first", set_users_first, "an id from 1 to 2147483647" },
	{ "users.count", set_users_count, "how many ids, 65536 for each pod" },
	{ "vm.memory", set_vm_memory, "64MiB to 1TiB" },
	{ "vm.cpus", set_vm_cpus, "1 to 64" },
	{ "vm.guest", set_vm_guest, "the name of a guest set, or default" },
	{ "vm.templates", set_vm_templates, "yes or no" },
	{ "vm.pool", set_vm_pool, "0 to 64" },
	{ "vm.pods", set_vm_pods, "auto, cell, vm, ec2, gce or vsphere" },
	{ "vm.heartbeat", set_vm_heartbeat, "a duration of 3s or more, or no" },
	{ "vm.nested", set_vm_nested, "yes or no" },
	{ "vm.hardware", set_vm_hardware, "auto or no" },
	{ "images.registry_dirs", set_images_registry_dirs, "absolute paths, parted by colons" },
	{ "images.policy", set_images_policy, "an absolute path" },
	{ "images.parallel_downloads", set_images_downloads, "1 to 32" },
	{ "images.parallel_unpacks", set_images_unpacks, "1 to 16, or auto" },
	{ "images.no_progress_timeout", set_images_no_progress, "a duration from 1s to 1h" },
};

static_assert(ARRAY_SIZE(config_keys) <= CONFIG_KEYS_MAX, "a place for each");

void config_init(struct config *c)
{
	*c = (struct config){
		.log_level = LOG_INFO,
		.log_form = LOG_FORM_TEXT,
		.container_log = { .max_bytes = (uint64_t)16 << 20,
				   .max_files = 4,
				   .block_for = 30 * NSEC_PER_SEC },
		.drain = 10 * NSEC_PER_SEC,
		.cri = { .streaming_address = "127.0.0.1:0" },
		.security_profile = "baseline",
		.devices = { .cdi_dirs = "/etc/cdi:/var/run/cdi" },
		.spare = true,
		.users = { POD_IDS_FIRST, POD_IDS_COUNT },
		.trust_domain = "nacre.local",
		.svid_life = 3600,
		.network = { .by_default = true,
			     .conf_dir = "/etc/cni/net.d",
			     .bin_dirs = "/opt/cni/bin:/usr/lib/cni" },
		.cloud = { .provider = "ec2",
			   .cluster = "nacre",
			   .poll = 30 * NSEC_PER_SEC,
			   .lease = 24 * 3600 * NSEC_PER_SEC,
			   .boot_limit = CLOUD_BOOT_MAX,
			   .settle = 300 * NSEC_PER_SEC },
		.vm = { .memory = (uint64_t)256 << 20,
			.cpus = 1,
			.heartbeat = 60 * NSEC_PER_SEC,
			.templates = true,
			.pods = INSTANCE_KIND_COUNT },
		.images = { .reserve = IMAGE_RESERVE_USUAL,
			    .registry_dirs = "/etc/nacre/certs.d:/etc/containerd/certs.d",
			    .policy = "/etc/nacre/policy.json",
			    .parallel_downloads = 6,
			    .no_progress = 60 * NSEC_PER_SEC },
	};
	config_system_init(&c->sys);
}

/* ---- the file ---- */

int config_load(struct config *c, const char *path, bool missing_ok, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r;

	r = fd_read_file(AT_FDCWD, path, CONFIG_FILE_MAX, &text);
	if (r == -ENOENT && missing_ok)
		return 0;
	if (r < 0)
		return error_set(err, r, "read the configuration %s", path);
	r = config_read(c, config_keys, ARRAY_SIZE(config_keys), path, &text, err);
	if (r == 0 && c->vm.pool && !c->vm.templates)
		return error_refuse(err, ERROR_INVALID,
				    "%s: vm.pool: machines of a pool go on from a template, and "
				    "vm.templates says no",
				    path);
	if (r == 0 && !*c->ca_key != !*c->ca_certificate)
		return error_refuse(err, ERROR_INVALID,
				    "%s: identity.ca_key and identity.ca_certificate are given "
				    "together, or neither",
				    path);
	return r < 0 ? r : config_cloud_check(&c->cloud, path, err);
}
