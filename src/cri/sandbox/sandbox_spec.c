/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/sandbox_spec.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text/id.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cri/sandbox/handler.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/security.h"
#include "cri/services.h"
#include "instance/choose.h"
#include "network/networks.h"
#include "runtime/networks/pod_network.h"
#include "runtime/start/security.h"

#define METADATA_MAX 1024
/* Bytes of the pod's name in that of the sandbox. */
#define SANDBOX_STEM_MAX 40
/* Of limits of processor time where nobody says, and what a kubelet tells for a request of one
 * processor, and for none. */
#define SANDBOX_PERIOD 100000
#define SANDBOX_SHARES_OF_ONE 1024
#define SANDBOX_SHARES_NONE 2

static int metadata_check(const char *field, const char *text, bool required, struct error *err)
{
	if (required && str_empty(text))
		return error_field(err, ERROR_INVALID, field, "required");
	if (strlen(text) > METADATA_MAX)
		return error_field(err, ERROR_INVALID, field, "longer than the limit of %d bytes",
				   METADATA_MAX);
	return 0;
}

static int sandbox_check_metadata(const Runtime__V1__PodSandboxMetadata *m, struct error *err)
{
	int r;

	if (!m)
		return error_field(err, ERROR_INVALID, "config.metadata", "required");
	r = metadata_check("config.metadata.name", m->name, true, err);
	if (r == 0)
		r = metadata_check("config.metadata.namespace", m->namespace_, true, err);
	return r < 0 ? r : metadata_check("config.metadata.uid", m->uid, true, err);
}

/* "nginx-7d8f-3f2a9c01": the pod's name, as far as it can be one here, and something to tell its
 * sandboxes apart. */
static int sandbox_name(struct arena *a, const Runtime__V1__PodSandboxMetadata *m, char **ret,
			struct error *err)
{
	char stem[SANDBOX_STEM_MAX + 1], id[ID_SIZE];
	size_t n = 0;
	int r = id_new(id);

	if (r < 0)
		return error_set(err, r, "draw an id");
	for (const char *at = m->name; *at && n < SANDBOX_STEM_MAX; at++) {
		bool fits = isascii(*at) && isalnum(*at);

		if (fits || n > 0)
			stem[n++] = fits ? (char)tolower(*at) : '-';
	}
	stem[n] = '\0';
	*ret = arena_printf(a, "%s-%.8s", n ? stem : "pod", id);
	return *ret ? 0 : error_set(err, -ENOMEM, "sandbox");
}

static const Runtime__V1__LinuxSandboxSecurityContext *sandbox_security(
	const Runtime__V1__PodSandboxConfig *config)
{
	return config->linux ? config->linux->security_context : NULL;
}

static const Runtime__V1__NamespaceOption *sandbox_namespaces(
	const Runtime__V1__PodSandboxConfig *config)
{
	const Runtime__V1__LinuxSandboxSecurityContext *s = sandbox_security(config);

	return s ? s->namespace_options : NULL;
}

bool cri_sandbox_is_on_host(const Runtime__V1__PodSandboxConfig *config)
{
	const Runtime__V1__NamespaceOption *n = sandbox_namespaces(config);

	return n && n->network == RUNTIME__V1__NAMESPACE_MODE__NODE;
}

/* ---- its network ---- */

static const char *port_protocol(Runtime__V1__Protocol protocol)
{
	static const char *const words[] = {
		[RUNTIME__V1__PROTOCOL__TCP] = "tcp",
		[RUNTIME__V1__PROTOCOL__UDP] = "udp",
		[RUNTIME__V1__PROTOCOL__SCTP] = "sctp",
	};

	return (unsigned)protocol < ARRAY_SIZE(words) ? words[protocol] : NULL;
}

static int port_check(const Runtime__V1__PortMapping *p, size_t i, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	(void)str_printf(field, sizeof(field), "config.port_mappings[%zu]", i);
	if (!port_protocol(p->protocol))
		return error_field(err, ERROR_INVALID, field, "protocol %d is unknown",
				   (int)p->protocol);
	if (p->host_port < 0 || p->host_port > UINT16_MAX)
		return error_field(err, ERROR_INVALID, field, "host_port %d; ports are 1 to 65535",
				   p->host_port);
	if (p->container_port < 0 || p->container_port > UINT16_MAX)
		return error_field(err, ERROR_INVALID, field,
				   "container_port %d; ports are 1 to 65535", p->container_port);
	return 0;
}

/* Those that the node publishes; others only say where the pod listens. */
static int sandbox_ports(struct arena *a, const Runtime__V1__PodSandboxConfig *config,
			 Aurae__Runtime__V0__PodNetwork *to, struct error *err)
{
	size_t n = config->n_port_mappings;
	Aurae__Runtime__V0__PublishedPort *ports = arena_zalloc(a, n + 1, sizeof(*ports));

	to->publish = arena_zalloc(a, n + 1, sizeof(*to->publish));
	if (!ports || !to->publish)
		return error_set(err, -ENOMEM, "port_mappings");
	for (size_t i = 0; i < n; i++) {
		const Runtime__V1__PortMapping *p = config->port_mappings[i];
		bool any = str_eq(p->host_ip, "0.0.0.0") || str_eq(p->host_ip, "::");
		int r = port_check(p, i, err);

		if (r < 0)
			return r;
		if (p->host_port == 0)
			continue;
		aurae__runtime__v0__published_port__init(ports);
		ports->host_ip = any ? ports->host_ip : p->host_ip;
		ports->host_port = (uint32_t)p->host_port;
		ports->port = (uint32_t)(p->container_port ? p->container_port : p->host_port);
		ports->protocol = (char *)(uintptr_t)port_protocol(p->protocol);
		to->publish[to->n_publish++] = ports++;
	}
	return 0;
}

static void sandbox_names(const Runtime__V1__PodSandboxConfig *config,
			  Aurae__Runtime__V0__PodNetwork *to)
{
	const Runtime__V1__DNSConfig *dns = config->dns_config;

	if (!str_empty(config->hostname))
		to->hostname = config->hostname;
	if (!dns)
		return;
	to->dns = dns->servers;
	to->n_dns = dns->n_servers;
	to->dns_search = dns->searches;
	to->n_dns_search = dns->n_searches;
	to->dns_option = dns->options;
	to->n_dns_option = dns->n_options;
}

/* The fields of the message that this was made of. */
static void sandbox_blame(struct error *err)
{
	static const struct {
		const char *was, *is;
	} fields[] = {
		{ "pod_network.dns_search", "config.dns_config.searches" },
		{ "pod_network.dns_option", "config.dns_config.options" },
		{ "pod_network.dns", "config.dns_config.servers" },
		{ "pod_network.hostname", "config.hostname" },
		{ "pod_network.publish", "config.port_mappings" },
	};
	char field[ERROR_FIELD_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!str_has_prefix(err->field, fields[i].was))
			continue;
		(void)str_printf(field, sizeof(field), "%s%.20s", fields[i].is,
				 err->field + strlen(fields[i].was));
		error_rename_field(err, field);
		return;
	}
}

int cri_sandbox_etc(struct arena *a, const Runtime__V1__PodSandboxConfig *config,
		    struct workload_spec *spec, struct error *err)
{
	Aurae__Runtime__V0__PodNetwork names = AURAE__RUNTIME__V0__POD_NETWORK__INIT;
	int r;

	sandbox_names(config, &names);
	r = pod_network_take(a, "pod", &names, false, spec, err);
	if (r < 0)
		sandbox_blame(err);
	return r;
}

/* Plugins are told whose pod it is. */
static int sandbox_identity(struct arena *a, const Runtime__V1__PodSandboxMetadata *m,
			    struct workload_spec *spec, struct error *err)
{
	struct network_wish *wish = arena_zalloc(a, 1, sizeof(*wish));

	if (!wish)
		return error_set(err, -ENOMEM, "sandbox");
	*wish = *spec->attach;
	wish->pod = m->name;
	wish->pod_namespace = m->namespace_;
	wish->uid = m->uid;
	spec->attach = wish;
	return 0;
}

static int sandbox_network(const struct cri_runtime_service *s, struct arena *a,
			   const Runtime__V1__PodSandboxConfig *config, struct workload_spec *spec,
			   struct error *err)
{
	Aurae__Runtime__V0__PodNetwork *asked = arena_zalloc(a, 1, sizeof(*asked));
	bool on_host = cri_sandbox_is_on_host(config);
	const char *reason = NULL;
	int r;

	if (!asked)
		return error_set(err, -ENOMEM, "sandbox");
	aurae__runtime__v0__pod_network__init(asked);
	sandbox_names(config, asked);
	spec->network = on_host ? "host" : "pod";
	r = on_host ? 0 : s->network_ready(s->network, &reason, err);
	if (r < 0)
		return r;
	r = on_host ? 0 : sandbox_ports(a, config, asked, err);
	if (r == 0)
		r = pod_network_take(a, on_host ? "host" : s->pod_network, asked, false, spec, err);
	if (r < 0)
		sandbox_blame(err);
	return r == 0 && spec->attach ? sandbox_identity(a, config->metadata, spec, err) : r;
}

/* ---- the rest ---- */

static int sandbox_check_log(const char *dir, struct error *err)
{
	if (str_empty(dir))
		return 0;
	if (dir[0] != '/' || strstr(dir, "/../") || str_has_suffix(dir, "/.."))
		return error_field(err, ERROR_INVALID, "config.log_directory",
				   "\"%.200s\" is not an absolute path without \"..\"", dir);
	return 0;
}

/* A path from the root of the hierarchy, as both cgroup drivers of a kubelet give it. */
static int sandbox_group(const struct cri_runtime_service *s, const char *parent,
			 struct workload_spec *spec, struct error *err)
{
	if (str_empty(parent) || str_eq(parent, "/"))
		return 0;
	spec->cgroup_parent = parent;
	return security_check_cgroup(s->cgroup, parent, "config.linux.cgroup_parent", err);
}

static int sandbox_sysctls(struct arena *a, const Runtime__V1__PodSandboxConfig *config,
			   struct workload_spec *spec, struct error *err)
{
	const Runtime__V1__LinuxPodSandboxConfig *own = config->linux;
	char **sysctls = arena_zalloc(a, own->n_sysctls + 1, sizeof(*sysctls));

	if (!sysctls)
		return error_set(err, -ENOMEM, "sysctls");
	for (size_t i = 0; i < own->n_sysctls; i++) {
		sysctls[i] = arena_printf(a, "%s=%s", own->sysctls[i]->key, own->sysctls[i]->value);
		if (!sysctls[i])
			return error_set(err, -ENOMEM, "sysctls");
	}
	if (own->n_sysctls == 0)
		return 0;
	spec->sysctls = sysctls;
	return security_check_sysctls(sysctls, spec, cri_sandbox_is_on_host(config),
				      "config.linux.sysctls", err);
}

/* `overhead` and `resources` say what the cgroup of the pod has, which is the kubelet's. */
static int sandbox_linux(const struct cri_runtime_service *s, struct arena *a,
			 const Runtime__V1__PodSandboxConfig *config, struct workload_spec *spec,
			 struct error *err)
{
	const Runtime__V1__NamespaceOption *namespaces = sandbox_namespaces(config);
	int r;

	if (!config->linux)
		return 0;
	r = cri_security_check_sandbox(config->linux->security_context, err);
	if (r < 0)
		return r;
	spec->host_pids = namespaces && namespaces->pid == RUNTIME__V1__NAMESPACE_MODE__NODE;
	spec->host_ipc = namespaces && namespaces->ipc == RUNTIME__V1__NAMESPACE_MODE__NODE;
	cri_security_ids(namespaces, &spec->ids);
	spec->users = isolate_ids_are_set(&spec->ids);
	r = sandbox_group(s, config->linux->cgroup_parent, spec, err);
	return r < 0 ? r : sandbox_sysctls(a, config, spec, err);
}

/* ---- in a machine ---- */

/* What there is of the node alone; of a machine in a cloud more. */
static int sandbox_check_machine(const Runtime__V1__PodSandboxConfig *config,
				 enum instance_kind kind, struct error *err)
{
	const Runtime__V1__LinuxSandboxSecurityContext *s = sandbox_security(config);
	const Runtime__V1__NamespaceOption *n = sandbox_namespaces(config);
	const Runtime__V1__UserNamespace *users = n ? n->userns_options : NULL;
	const bool granted = instance_kind_can(kind, INSTANCE_KERNEL_GRANTED);
	const struct {
		const char *field;
		bool set;
	} fields[] = {
		{ "config.linux.security_context.namespace_options.network",
		  n && n->network == RUNTIME__V1__NAMESPACE_MODE__NODE },
		{ "config.linux.security_context.namespace_options.pid",
		  n && n->pid == RUNTIME__V1__NAMESPACE_MODE__NODE },
		{ "config.linux.security_context.namespace_options.ipc",
		  n && n->ipc == RUNTIME__V1__NAMESPACE_MODE__NODE },
		{ "config.linux.security_context.namespace_options.userns_options",
		  users && users->mode == RUNTIME__V1__NAMESPACE_MODE__POD },
		{ "config.linux.security_context.privileged", !granted && s && s->privileged },
		{ "config.linux.sysctls",
		  !granted && config->linux && config->linux->n_sysctls > 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].set)
			return error_field(err, ERROR_UNSUPPORTED, fields[i].field,
					   "a pod of kind \"%s\" has a machine of its own, and "
					   "nothing of the node's: use another runtime class",
					   instance_kind_word(kind));
	return 0;
}

/* What its containers may use together, or else have asked for: the machine has that. */
static struct instance_size sandbox_size(const Runtime__V1__LinuxContainerResources *r)
{
	struct instance_size ret = { .memory = 0 };
	uint64_t period, quota;

	if (!r)
		return ret;
	period = r->cpu_period > 0 ? (uint64_t)r->cpu_period : SANDBOX_PERIOD;
	quota = r->cpu_quota > 0 ? (uint64_t)r->cpu_quota : 0;
	if (!quota && r->cpu_shares > SANDBOX_SHARES_NONE) {
		period = SANDBOX_SHARES_OF_ONE;
		quota = (uint64_t)r->cpu_shares;
	}
	ret.memory = r->memory_limit_in_bytes > 0 ? (uint64_t)r->memory_limit_in_bytes : 0;
	ret.cpus = (unsigned)MIN(quota / period + (quota % period > 0), (uint64_t)UINT16_MAX);
	return ret;
}

/* It is on the network of its cloud, whatever those of the node are. */
static int sandbox_far_network(struct arena *a, const Runtime__V1__PodSandboxConfig *config,
			       struct workload_spec *spec, struct error *err)
{
	Aurae__Runtime__V0__PodNetwork *asked = arena_zalloc(a, 1, sizeof(*asked));
	int r;

	if (!asked)
		return error_set(err, -ENOMEM, "sandbox");
	aurae__runtime__v0__pod_network__init(asked);
	sandbox_names(config, asked);
	spec->network = "pod";
	r = sandbox_ports(a, config, asked, err);
	if (r == 0)
		r = pod_network_take(a, "", asked, false, spec, err);
	if (r < 0)
		sandbox_blame(err);
	return r;
}

static int sandbox_machine(const struct cri_runtime_service *s, struct arena *a,
			   const Runtime__V1__PodSandboxConfig *config, struct workload_spec *spec,
			   struct error *err)
{
	int r = sandbox_check_machine(config, spec->choice.kind, err);

	if (r < 0)
		return r;
	spec->size = sandbox_size(config->linux ? config->linux->resources : NULL);
	return instance_kind_can(spec->choice.kind, INSTANCE_NODE_NETWORKS)
		       ? sandbox_network(s, a, config, spec, err)
		       : sandbox_far_network(a, config, spec, err);
}

int cri_sandbox_spec(const struct cri_runtime_service *s, struct arena *a,
		     const Runtime__V1__RunPodSandboxRequest *q, struct workload_spec *spec,
		     struct error *err)
{
	const struct cri_handler *handler = NULL;
	char *name = NULL;
	int r;

	if (!q->config)
		return error_field(err, ERROR_INVALID, "config", "required");
	r = sandbox_check_metadata(q->config->metadata, err);
	if (r == 0)
		r = cri_handler_find("runtime_handler", q->runtime_handler, &handler, err);
	if (r == 0)
		r = sandbox_check_log(q->config->log_directory, err);
	if (r == 0)
		r = sandbox_name(a, q->config->metadata, &name, err);
	if (r < 0)
		return r;
	*spec = (struct workload_spec){ .kind = WORKLOAD_POD, .name = name, .lasts = true };
	r = sandbox_linux(s, a, q->config, spec, err);
	if (r < 0)
		return r;
	r = instances_choose(s->instances, NULL, handler->kind, &spec->choice, err);
	if (r < 0)
		return *handler->name ? error_wrap_field(err, r, "runtime_handler") : r;
	r = instance_kind_can(handler->kind, INSTANCE_LOCAL_PROCESS)
		    ? sandbox_network(s, a, q->config, spec, err)
		    : sandbox_machine(s, a, q->config, spec, err);
	if (r < 0)
		return r;
	spec->settings = cri_record_sandbox(a, spec->settings, q);
	return spec->settings ? 0 : error_set(err, -ENOMEM, "sandbox");
}
