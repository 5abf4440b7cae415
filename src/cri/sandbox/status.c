/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/status.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "cri/sandbox/container_spec.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/resources.h"
#include "cri/sandbox/sandbox_spec.h"
#include "image/image.h"
#include "isolate/cgroup/process.h"
#include "network/attachment.h"
#include "pod/storage/image_mounts.h"
#include "pod/workload/stop_signal.h"
#include "runtime/start/settings.h"

/* protobuf-c's strings are not const. */
static char *status_str(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* ---- maps ---- */

/* Each entry of a map of strings is so, whatever its type. */
struct status_entry {
	ProtobufCMessage base;
	char *key, *value;
};

/* The same entries as those of another message. */
static void *status_map(struct arena *a, void *from, size_t n,
			const ProtobufCMessageDescriptor *type)
{
	struct status_entry **was = from, **to = arena_zalloc(a, n + 1, sizeof(*to));

	for (size_t i = 0; i < n && to; i++) {
		to[i] = arena_zalloc(a, 1, sizeof(**to));
		if (!to[i])
			return NULL;
		protobuf_c_message_init(type, to[i]);
		to[i]->key = was[i]->key;
		to[i]->value = was[i]->value;
	}
	return to;
}

#define STATUS_MAP(a, to, from, field, type)                                                       \
	((to)->field = status_map((a), (from)->field, (from)->n_##field, &(type)),                 \
	 (to)->n_##field = (to)->field ? (from)->n_##field : 0, (to)->field != NULL)

/* ---- sandboxes ---- */

Runtime__V1__PodSandboxState cri_sandbox_state(const struct workload *w)
{
	return w->state == WORKLOAD_RUNNING ? RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY
					    : RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
}

Runtime__V1__PodSandbox *cri_sandbox_item(struct arena *a, const struct workload *w,
					  const Runtime__V1__RunPodSandboxRequest *q)
{
	Runtime__V1__PodSandbox *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__pod_sandbox__init(m);
	m->id = arena_strdup(a, w->id);
	if (!m->id)
		return NULL;
	m->metadata = q->config->metadata;
	m->state = cri_sandbox_state(w);
	m->created_at = (int64_t)w->created_at;
	m->runtime_handler = q->runtime_handler;
	return STATUS_MAP(a, m, q->config, labels,
			  runtime__v1__pod_sandbox__labels_entry__descriptor) &&
			       STATUS_MAP(a, m, q->config, annotations,
					  runtime__v1__pod_sandbox__annotations_entry__descriptor)
		       ? m
		       : NULL;
}

/* Adds an address, of family 0: nothing. The first one of all is the pod's. -ENOMEM. */
static int status_add_address(struct arena *a, Runtime__V1__PodSandboxNetworkStatus *m,
			      const struct prefix *address)
{
	char text[PREFIX_TEXT_MAX], *copy;
	Runtime__V1__PodIP *other;

	if (!address->family)
		return 0;
	prefix_print_address(address, text);
	copy = arena_strdup(a, text);
	if (!copy)
		return -ENOMEM;
	if (str_empty(m->ip)) {
		m->ip = copy;
		return 0;
	}
	other = arena_zalloc(a, 1, sizeof(*other));
	if (!other)
		return -ENOMEM;
	runtime__v1__pod_ip__init(other);
	other->ip = copy;
	m->additional_ips[m->n_additional_ips++] = other;
	return 0;
}

/* The addresses of its first network, IPv4 before IPv6, then those of the further ones. */
static Runtime__V1__PodSandboxNetworkStatus *status_network(struct arena *a,
							    const struct workload *w)
{
	Runtime__V1__PodSandboxNetworkStatus *m = arena_zalloc(a, 1, sizeof(*m));
	int r = 0;

	if (!m)
		return NULL;
	runtime__v1__pod_sandbox_network_status__init(m);
	m->additional_ips =
		arena_zalloc(a, (size_t)2 * NETWORK_OF_ONE_MAX, sizeof(*m->additional_ips));
	if (!m->additional_ips)
		return NULL;
	if (w->instance && w->instance->address[0] && w->state == WORKLOAD_RUNNING) {
		m->ip = arena_strdup(a, w->instance->address);
		r = m->ip ? 0 : -ENOMEM;
	}
	for (const struct attachment *at = w->attachment; at && r == 0; at = at->next) {
		if (at->is_half)
			continue;
		r = status_add_address(a, m, &at->ip4);
		if (r == 0)
			r = status_add_address(a, m, &at->ip6);
	}
	return r < 0 ? NULL : m;
}

static Runtime__V1__LinuxPodSandboxStatus *status_namespaces(
	struct arena *a, const Runtime__V1__PodSandboxConfig *config)
{
	Runtime__V1__LinuxPodSandboxStatus *m = arena_zalloc(a, 1, sizeof(*m));
	Runtime__V1__Namespace *n = arena_zalloc(a, 1, sizeof(*n));
	Runtime__V1__NamespaceOption *o = arena_zalloc(a, 1, sizeof(*o));
	const Runtime__V1__LinuxSandboxSecurityContext *s =
		config->linux ? config->linux->security_context : NULL;

	if (!m || !n || !o)
		return NULL;
	runtime__v1__linux_pod_sandbox_status__init(m);
	runtime__v1__namespace__init(n);
	runtime__v1__namespace_option__init(o);
	m->namespaces = n;
	n->options = s && s->namespace_options ? s->namespace_options : o;
	return m;
}

Runtime__V1__PodSandboxStatus *cri_sandbox_status(struct arena *a, const struct workload *w,
						  const Runtime__V1__RunPodSandboxRequest *q)
{
	Runtime__V1__PodSandboxStatus *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__pod_sandbox_status__init(m);
	m->id = status_str(w->id);
	m->metadata = q->config->metadata;
	m->state = cri_sandbox_state(w);
	m->created_at = (int64_t)w->created_at;
	m->runtime_handler = q->runtime_handler;
	m->network = status_network(a, w);
	m->linux = status_namespaces(a, q->config);
	if (!m->network || !m->linux)
		return NULL;
	return STATUS_MAP(a, m, q->config, labels,
			  runtime__v1__pod_sandbox_status__labels_entry__descriptor) &&
			       STATUS_MAP(
				       a, m, q->config, annotations,
				       runtime__v1__pod_sandbox_status__annotations_entry__descriptor)
		       ? m
		       : NULL;
}

/* ---- containers ---- */

Runtime__V1__ContainerState cri_container_state(const struct pod_container *c)
{
	switch (c->status.state) {
	case CONTAINER_RUNNING:
	case CONTAINER_DRAINING:
		return RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
	case CONTAINER_EXITED:
	case CONTAINER_FAILED:
		return RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;
	case CONTAINER_STARTING:
	case CONTAINER_STATE_COUNT:
	default:
		return RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED;
	}
}

/* Its image as the kubelet named it, and by its id. */
static char *status_image_ref(const struct pod_container *c)
{
	return c->image_id ? c->image_id : status_str("");
}

Runtime__V1__Container *cri_container_item(struct arena *a, const struct pod_container *c,
					   const Runtime__V1__CreateContainerRequest *q)
{
	Runtime__V1__Container *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__container__init(m);
	m->id = arena_strdup(a, c->id);
	m->pod_sandbox_id = arena_strdup(a, c->workload->id);
	m->image_ref = arena_strdup(a, status_image_ref(c));
	if (!m->id || !m->pod_sandbox_id || !m->image_ref)
		return NULL;
	m->metadata = q->config->metadata;
	m->image = q->config->image;
	m->image_id = m->image_ref;
	m->state = cri_container_state(c);
	m->created_at = (int64_t)c->created_at;
	return STATUS_MAP(a, m, q->config, labels,
			  runtime__v1__container__labels_entry__descriptor) &&
			       STATUS_MAP(a, m, q->config, annotations,
					  runtime__v1__container__annotations_entry__descriptor)
		       ? m
		       : NULL;
}

/* One word for programs; the sentence is `message`. */
static const char *status_reason(const struct pod_container *c)
{
	if (!pod_container_has_ended(c))
		return "";
	if (c->status.state == CONTAINER_FAILED)
		return "StartError";
	if (str_has_prefix(c->status.reason, "OOMKilled"))
		return "OOMKilled";
	return c->status.exit_code == 0 ? "Completed" : "Error";
}

/* The values that hold, whoever changed them. */
static Runtime__V1__ContainerResources *status_resources(struct arena *a,
							 const struct pod_container *c,
							 const Runtime__V1__ContainerConfig *config)
{
	Runtime__V1__ContainerResources *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return NULL;
	runtime__v1__container_resources__init(m);
	m->linux = cri_limits_show(a, config->linux ? config->linux->resources : NULL,
				   settings_resources(a, c->settings));
	return m->linux ? m : NULL;
}

/* What it is stopped with where nobody said. */
static Runtime__V1__Signal status_image_signal(const struct pod_container *c)
{
	const char *word = c->image ? c->image->config.stop_signal : "";

	return cri_signal_of(stop_signal_parse(word));
}

/* As they were asked for, and of images their ids. -ENOMEM. */
static int status_mounts(struct arena *a, const struct pod_container *c,
			 const Runtime__V1__ContainerConfig *config,
			 Runtime__V1__ContainerStatus *to)
{
	Runtime__V1__Mount **mounts = arena_zalloc(a, config->n_mounts + 1, sizeof(*mounts));
	size_t n_images = 0;

	if (!mounts)
		return -ENOMEM;
	to->mounts = mounts;
	to->n_mounts = config->n_mounts;
	for (size_t i = 0; i < config->n_mounts; i++) {
		Runtime__V1__Mount *m = mounts[i] = config->mounts[i];
		const char *id;

		if (!m->image || str_empty(m->image->image))
			continue;
		id = image_mounts_id(c, n_images++);
		mounts[i] = arena_memdup(a, m, sizeof(*m));
		if (!mounts[i])
			return -ENOMEM;
		mounts[i]->image = arena_memdup(a, m->image, sizeof(*m->image));
		if (!mounts[i]->image)
			return -ENOMEM;
		mounts[i]->image->image_ref = status_str(id ? id : "");
	}
	return 0;
}

/* Whom it runs as: the groups with the primary one among them, as other runtimes tell it. */
static int status_user(struct arena *a, struct pod_container *c, Runtime__V1__ContainerStatus *to)
{
	const struct process_identity *identity = pod_container_identity(c);
	Runtime__V1__LinuxContainerUser *user;
	bool has_own = false;

	if (!identity)
		return 0;
	to->user = arena_zalloc(a, 1, sizeof(*to->user));
	user = arena_zalloc(a, 1, sizeof(*user));
	if (!to->user || !user)
		return -ENOMEM;
	runtime__v1__container_user__init(to->user);
	runtime__v1__linux_container_user__init(user);
	to->user->linux = user;
	user->uid = identity->uid;
	user->gid = identity->gid;
	user->supplemental_groups = arena_zalloc(a, identity->n_groups + 1, sizeof(int64_t));
	if (!user->supplemental_groups)
		return -ENOMEM;
	for (size_t i = 0; i < identity->n_groups; i++)
		has_own = has_own || identity->groups[i] == identity->gid;
	if (!has_own)
		user->supplemental_groups[user->n_supplemental_groups++] = identity->gid;
	for (size_t i = 0; i < identity->n_groups; i++)
		user->supplemental_groups[user->n_supplemental_groups++] = identity->groups[i];
	return 0;
}

/* The clock of a machine is not quite that of the node, which tells the first one. */
static void status_times(const struct pod_container *c, Runtime__V1__ContainerStatus *to)
{
	const struct container_status *s = &c->status;
	uint64_t started = s->started_at ? MAX(s->started_at, c->created_at) : 0;

	to->created_at = (int64_t)c->created_at;
	to->started_at = (int64_t)started;
	to->finished_at = (int64_t)(s->finished_at ? MAX(s->finished_at, started) : 0);
}

/* A kubelet names the image by its id, and shows people what it is told here: the name that the pod
 * has for it. NULL: out of memory. */
static Runtime__V1__ImageSpec *status_image(struct arena *a, Runtime__V1__ImageSpec *asked)
{
	Runtime__V1__ImageSpec *m;

	if (str_empty(asked->user_specified_image))
		return asked;
	m = arena_memdup(a, asked, sizeof(*asked));
	if (m)
		m->image = m->user_specified_image;
	return m;
}

Runtime__V1__ContainerStatus *cri_container_status(struct arena *a, struct pod_container *c,
						   const Runtime__V1__CreateContainerRequest *q)
{
	const Runtime__V1__RunPodSandboxRequest *pod = cri_record_of_sandbox(a, c->workload);
	Runtime__V1__ContainerStatus *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m || !pod)
		return NULL;
	runtime__v1__container_status__init(m);
	m->id = status_str(c->id);
	m->metadata = q->config->metadata;
	m->state = cri_container_state(c);
	status_times(c, m);
	m->exit_code = pod_container_has_ended(c) ? c->status.exit_code : 0;
	m->image = status_image(a, q->config->image);
	m->image_ref = status_image_ref(c);
	m->image_id = status_image_ref(c);
	m->reason = status_str(status_reason(c));
	m->message = status_str(c->status.reason);
	if (status_mounts(a, c, q->config, m) < 0 || status_user(a, c, m) < 0)
		return NULL;
	m->log_path = cri_container_log_path(a, pod->config, q->config);
	m->resources = status_resources(a, c, q->config);
	m->stop_signal = q->config->stop_signal ?: status_image_signal(c);
	if (!m->image || !m->log_path || !m->resources)
		return NULL;
	return STATUS_MAP(a, m, q->config, labels,
			  runtime__v1__container_status__labels_entry__descriptor) &&
			       STATUS_MAP(
				       a, m, q->config, annotations,
				       runtime__v1__container_status__annotations_entry__descriptor)
		       ? m
		       : NULL;
}
