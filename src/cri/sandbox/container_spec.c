/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/container_spec.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/signal_name.h"
#include "base/text/str.h"
#include "cri/sandbox/devices.h"
#include "cri/sandbox/handler.h"
#include "cri/sandbox/kubelet_mount.h"
#include "cri/sandbox/record.h"
#include "cri/sandbox/resources.h"
#include "cri/sandbox/security.h"
#include "cri/services.h"
#include "pod/workload/model.h"
#include "runtime/start/container.h"
#include "runtime/start/remote.h"
#include "runtime/start/settings.h"
#include "runtime/storage/cdi_call.h"

/* Bytes of its name in the CRI in that of the container. */
#define CONTAINER_STEM_MAX 48

typedef Runtime__V1__ContainerConfig cri_config;
typedef Aurae__Runtime__V0__Container cri_own;

static int spec_no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "container");
}

/* ---- its log ---- */

static bool log_path_is_safe(const char *path)
{
	return path[0] != '/' && !str_eq(path, "..") && !str_has_prefix(path, "../") &&
	       !str_has_suffix(path, "/..") && !strstr(path, "/../");
}

char *cri_container_log_path(struct arena *a, const Runtime__V1__PodSandboxConfig *sandbox,
			     const Runtime__V1__ContainerConfig *config)
{
	if (str_empty(sandbox->log_directory) || str_empty(config->log_path))
		return arena_strdup(a, "");
	return arena_printf(a, "%s/%s", sandbox->log_directory, config->log_path);
}

/* Somebody else opens it (runtime/storage/volumes_call.h). */
static void spec_log(const cri_config *config, const Runtime__V1__PodSandboxConfig *sandbox,
		     struct pod_container_spec *spec)
{
	if (str_empty(sandbox->log_directory) || str_empty(config->log_path))
		return;
	spec->log_dir = sandbox->log_directory;
	spec->log_name = config->log_path;
	spec->log_field = "config.log_path";
}

/* ---- what it runs ---- */

static int spec_words(struct arena *a, const cri_config *config, cri_own *to, struct error *err)
{
	to->command = config->command;
	to->n_command = config->n_command;
	to->args = config->args;
	to->n_args = config->n_args;
	to->working_dir = config->working_dir;
	to->stdin = config->stdin;
	to->tty = config->tty;
	to->env = arena_zalloc(a, config->n_envs + 1, sizeof(char *));
	if (!to->env)
		return spec_no_memory(err);
	for (size_t i = 0; i < config->n_envs; i++) {
		const Runtime__V1__KeyValue *e = config->envs[i];
		char field[ERROR_FIELD_MAX];

		(void)str_printf(field, sizeof(field), "config.envs[%zu].value", i);
		if (e->value.len > 0 && memchr(e->value.data, 0, e->value.len))
			return error_field(err, ERROR_INVALID, field, "it has a byte 0");
		to->env[i] = arena_printf(a, "%s=%.*s", e->key, (int)e->value.len,
					  e->value.data ? (const char *)e->value.data : "");
		if (!to->env[i])
			return spec_no_memory(err);
	}
	to->n_env = config->n_envs;
	return 0;
}

/* "uid:gid", "name"; the image's where nothing is said. */
static int spec_user(struct arena *a, const Runtime__V1__LinuxContainerSecurityContext *s,
		     cri_own *to, struct error *err)
{
	const char *name = s->run_as_username;
	char *user;

	if (s->run_as_group && !s->run_as_user && str_empty(name))
		return error_field(err, ERROR_INVALID, "config.linux.security_context.run_as_group",
				   "only with run_as_user or run_as_username");
	if (s->run_as_user && (s->run_as_user->value < 0 || s->run_as_user->value > UINT32_MAX - 1))
		return error_field(err, ERROR_INVALID, "config.linux.security_context.run_as_user",
				   "%" PRId64 " is no uid", s->run_as_user->value);
	if (s->run_as_group &&
	    (s->run_as_group->value < 0 || s->run_as_group->value > UINT32_MAX - 1))
		return error_field(err, ERROR_INVALID, "config.linux.security_context.run_as_group",
				   "%" PRId64 " is no gid", s->run_as_group->value);
	if (!s->run_as_user && str_empty(name))
		return 0;
	user = s->run_as_user ? arena_printf(a, "%" PRId64, s->run_as_user->value)
			      : arena_strdup(a, name);
	if (user && s->run_as_group)
		user = arena_printf(a, "%s:%" PRId64, user, s->run_as_group->value);
	to->user = user;
	return user ? 0 : spec_no_memory(err);
}

/* ---- what it reaches ---- */

/* None, or those of the pod. */
static bool mount_ids_fit(const Runtime__V1__Mount *m, const struct isolate_ids *ids)
{
	if (m->n_uidmappings == 0 && m->n_gidmappings == 0)
		return true;
	return isolate_ids_are_set(ids) && m->n_uidmappings == 1 && m->n_gidmappings == 1 &&
	       m->uidmappings[0]->container_id == 0 && m->gidmappings[0]->container_id == 0 &&
	       m->uidmappings[0]->host_id == ids->uid && m->gidmappings[0]->host_id == ids->gid &&
	       m->uidmappings[0]->length == ids->count && m->gidmappings[0]->length == ids->count;
}

static bool mount_is_of_image(const Runtime__V1__Mount *m)
{
	return m->image && !str_empty(m->image->image);
}

static int mount_check(const Runtime__V1__Mount *m, size_t i, const struct isolate_ids *ids,
		       struct error *err)
{
	const struct cri_handler *handler;
	char field[ERROR_FIELD_MAX];

#define FIELD(name)                                                                                \
	(str_printf(field, sizeof(field), "config.mounts[%zu]" name, i) < 0 ? "" : field)
	if (mount_is_of_image(m) && !str_empty(m->host_path))
		return error_field(err, ERROR_INVALID, FIELD(".image"), "not beside host_path");
	if (mount_is_of_image(m) && !m->readonly)
		return error_field(err, ERROR_INVALID, FIELD(".readonly"),
				   "an image is mounted read-only: true is required");
	if (!mount_is_of_image(m) && !str_empty(m->image_sub_path))
		return error_field(err, ERROR_INVALID, FIELD(".image_sub_path"),
				   "only of an image");
	if (!mount_ids_fit(m, ids))
		return error_field(err, ERROR_INVALID, FIELD(".uidMappings"),
				   "not the ids of the sandbox's user namespace");
	if (m->recursive_read_only && !m->readonly)
		return error_field(err, ERROR_INVALID, FIELD(".recursive_read_only"),
				   "only with readonly");
	if (m->recursive_read_only &&
	    m->propagation != RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE)
		return error_field(err, ERROR_INVALID, FIELD(".recursive_read_only"),
				   "only with PROPAGATION_PRIVATE");
	if ((unsigned)m->propagation > RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL)
		return error_field(err, ERROR_INVALID, FIELD(".propagation"), "%d is unknown",
				   (int)m->propagation);
	if (mount_is_of_image(m) &&
	    m->propagation != RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE)
		return error_field(err, ERROR_INVALID, FIELD(".propagation"),
				   "of an image only PROPAGATION_PRIVATE");
	if (mount_is_of_image(m) && cri_handler_find(FIELD(".image.runtime_handler"),
						     m->image->runtime_handler, &handler, err) < 0)
		return err->code;
	if (str_empty(m->host_path) && !mount_is_of_image(m))
		return error_field(err, ERROR_INVALID, FIELD(".host_path"), "required");
	/* nosuid holds for every mount, nodev for those of containers without all devices. */
	for (size_t k = 0; k < m->n_mount_options; k++)
		if (!str_eq(m->mount_options[k], "noexec") &&
		    !str_eq(m->mount_options[k], "nodev") && !str_eq(m->mount_options[k], "nosuid"))
			return error_field(err, ERROR_INVALID, FIELD(".mount_options"),
					   "\"%.40s\" is none of noexec, nodev, nosuid",
					   m->mount_options[k]);
#undef FIELD
	return 0;
}

/* Who has the IPC of the node has its /dev/shm, unless something else goes there. */
static bool spec_wants_shm(const Runtime__V1__PodSandboxConfig *sandbox, const cri_config *config)
{
	const Runtime__V1__LinuxSandboxSecurityContext *s =
		sandbox && sandbox->linux ? sandbox->linux->security_context : NULL;

	if (!s || !s->namespace_options ||
	    s->namespace_options->ipc != RUNTIME__V1__NAMESPACE_MODE__NODE)
		return false;
	for (size_t i = 0; i < config->n_mounts; i++)
		if (str_eq(config->mounts[i]->container_path, "/dev/shm"))
			return false;
	return true;
}

/* ---- devices ---- */

static int spec_devices(struct arena *a, const cri_config *config, cri_own *to, struct error *err)
{
	Aurae__Runtime__V0__Device *devices =
		arena_zalloc(a, config->n_devices + 1, sizeof(*devices));

	to->devices = arena_zalloc(a, config->n_devices + 1, sizeof(*to->devices));
	if (!devices || !to->devices)
		return spec_no_memory(err);
	for (size_t i = 0; i < config->n_devices; i++) {
		aurae__runtime__v0__device__init(&devices[i]);
		devices[i].host_path = config->devices[i]->host_path;
		devices[i].path = config->devices[i]->container_path;
		devices[i].permissions = config->devices[i]->permissions;
		to->devices[to->n_devices++] = &devices[i];
	}
	return 0;
}

static int spec_mounts(struct arena *a, const Runtime__V1__PodSandboxConfig *sandbox,
		       const cri_config *config, const struct isolate_ids *ids, cri_own *to,
		       struct error *err)
{
	static char shm[] = "/dev/shm";
	size_t n = config->n_mounts;
	Aurae__Runtime__V0__Mount *mounts = arena_zalloc(a, n + 1, sizeof(*mounts));

	to->mounts = arena_zalloc(a, n + 1, sizeof(*to->mounts));
	if (!mounts || !to->mounts)
		return spec_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		const Runtime__V1__Mount *m = config->mounts[i];
		int r = mount_check(m, i, ids, err);

		if (r < 0)
			return r;
		aurae__runtime__v0__mount__init(&mounts[i]);
		mounts[i].source = m->host_path;
		if (mount_is_of_image(m)) {
			mounts[i].image = m->image->image;
			mounts[i].sub_path = m->image_sub_path;
		}
		mounts[i].target = m->container_path;
		mounts[i].read_only = m->readonly;
		for (size_t k = 0; k < m->n_mount_options; k++)
			mounts[i].no_exec =
				mounts[i].no_exec || str_eq(m->mount_options[k], "noexec");
		to->mounts[to->n_mounts++] = &mounts[i];
	}
	if (spec_wants_shm(sandbox, config)) {
		aurae__runtime__v0__mount__init(&mounts[n]);
		mounts[n].source = shm;
		mounts[n].target = shm;
		to->mounts[to->n_mounts++] = &mounts[n];
	}
	return 0;
}

static int spec_resources(int base_fd, struct arena *a,
			  const Runtime__V1__LinuxContainerResources *from, cri_own *to,
			  struct pod_container_spec *spec, struct error *err)
{
	struct cri_limits limits;
	int r = cri_limits_take(a, from, base_fd, "config.linux.resources", NULL, &limits, err);

	if (r < 0)
		return r;
	to->resources = limits.resources;
	spec->limits = limits.more;
	return 0;
}

/* The limits that the own API has come first, as settings_take() made them. */
static int spec_join_limits(struct arena *a, struct pod_container_spec *spec, char *const *more,
			    struct error *err)
{
	size_t n = strv_len(spec->limits), n_more = strv_len(more);
	char **all = arena_zalloc(a, n + n_more + 1, sizeof(*all));

	if (!all)
		return spec_no_memory(err);
	for (size_t i = 0; i < n + n_more; i++)
		all[i] = i < n ? spec->limits[i] : more[i - n];
	if (n_more > 0)
		spec->limits = all;
	return 0;
}

static int spec_linux(int base_fd, struct arena *a,
		      const Runtime__V1__LinuxContainerConfig *linux_config, cri_own *to,
		      struct pod_container_spec *spec, struct error *err)
{
	const Runtime__V1__LinuxContainerSecurityContext *context = linux_config->security_context;
	int r = 0;

	if (linux_config->resources)
		r = spec_resources(base_fd, a, linux_config->resources, to, spec, err);
	if (r == 0 && context)
		r = spec_user(a, context, to, err);
	if (context)
		to->read_only_root = context->readonly_rootfs;
	if (r == 0 && linux_config->resources && to->security)
		to->security->oom_score_adj = (int32_t)linux_config->resources->oom_score_adj;
	return r;
}

/* ---- its name ---- */

static bool name_is_taken(const struct workload *w, const char *name)
{
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_eq(w->containers[i]->name, name))
			return true;
	return false;
}

/* "app", or "app-2" for its third attempt: what the kubelet calls it, as far as it can be a name
 * here. */
static char *spec_name(struct arena *a, const struct workload *w,
		       const Runtime__V1__ContainerMetadata *m)
{
	char stem[CONTAINER_STEM_MAX + 1];
	size_t n = 0;
	char *name;

	for (const char *at = m->name; *at && n < CONTAINER_STEM_MAX; at++) {
		bool fits = isascii(*at) && isalnum(*at);

		if (fits || n > 0)
			stem[n++] = fits ? (char)tolower(*at) : '-';
	}
	while (n > 0 && stem[n - 1] == '-')
		n--;
	stem[n] = '\0';
	if (n == 0)
		(void)str_copy(stem, sizeof(stem), "container");
	name = m->attempt ? arena_printf(a, "%s-%" PRIu32, stem, m->attempt)
			  : arena_strdup(a, stem);
	for (unsigned k = w->n_ever; name && name_is_taken(w, name); k++)
		name = arena_printf(a, "%.40s-%u", stem, k);
	return name;
}

/* ---- the whole ---- */

static int spec_check(const cri_config *config, struct error *err)
{
	const struct cri_handler *handler;

	if (!config)
		return error_field(err, ERROR_INVALID, "config", "required");
	if (!config->metadata || str_empty(config->metadata->name))
		return error_field(err, ERROR_INVALID, "config.metadata.name", "required");
	if (!config->image || str_empty(config->image->image))
		return error_field(err, ERROR_INVALID, "config.image.image", "required");
	if (cri_handler_find("config.image.runtime_handler", config->image->runtime_handler,
			     &handler, err) < 0)
		return err->code;
	if (!log_path_is_safe(config->log_path))
		return error_field(err, ERROR_INVALID, "config.log_path",
				   "\"%.200s\" is not a relative path without \"..\"",
				   config->log_path);
	if (config->stop_signal && !cri_container_stop_signal(config))
		return error_field(err, ERROR_INVALID, "config.stop_signal", "%d is no signal",
				   (int)config->stop_signal);
	return config->linux ? cri_security_check_container(config->linux->security_context, err)
			     : 0;
}

/* The fields of the message that it was made of. */
static void spec_blame(struct error *err)
{
	static const struct {
		const char *was, *is;
	} words[] = {
		{ "security.cap_add", "linux.security_context.capabilities.add_capabilities" },
		{ "security.cap_drop", "linux.security_context.capabilities.drop_capabilities" },
		{ "security.groups", "linux.security_context.supplemental_groups" },
		{ ".target", ".container_path" },
		{ ".source", ".host_path" },
		{ ".sub_path", ".image_sub_path" },
		{ "].path", "].container_path" },
		{ "env[", "envs[" },
		{ "user", "linux.security_context.run_as_username" },
	};
	const char *rest = err->field + strlen("containers[0]."), *at = NULL;
	char field[ERROR_FIELD_MAX];
	size_t i = 0;

	if (!str_has_prefix(err->field, "containers[0]."))
		return;
	for (; i < ARRAY_SIZE(words) && !at; i++)
		at = strstr(rest, words[i].was);
	if (at)
		(void)str_printf(field, sizeof(field), "config.%.*s%s%.20s", (int)(at - rest), rest,
				 words[i - 1].is, at + strlen(words[i - 1].was));
	else
		(void)str_printf(field, sizeof(field), "config.%.50s", rest);
	error_rename_field(err, field);
	cri_limits_blame(err, "config.linux.resources");
}

/* In the words of the own API. */
static int spec_make(int base_fd, struct arena *a, const Runtime__V1__PodSandboxConfig *sandbox,
		     const cri_config *config, const struct isolate_ids *ids, cri_own *own,
		     struct pod_container_spec *spec, struct error *err)
{
	int r;

	r = spec_words(a, config, own, err);
	if (r == 0)
		r = spec_mounts(a, sandbox, config, ids, own, err);
	if (r == 0)
		r = spec_devices(a, config, own, err);
	if (r == 0)
		r = cri_security_take(a, config->linux ? config->linux->security_context : NULL,
				      &own->security, err);
	if (r == 0 && config->linux)
		r = spec_linux(base_fd, a, config->linux, own, spec, err);
	return r;
}

static int spec_take(int base_fd, struct arena *a, const cri_own *own,
		     struct pod_container_spec *spec, struct error *err)
{
	const struct settings_whole whole = { .base_fd = base_fd };
	char *const *more = spec->limits;
	size_t n_used = 0;
	int r;

	r = container_take(a, own, 0, 1, spec, err);
	if (r == 0)
		r = settings_take(a, spec, own, "containers[0]", &whole, &n_used, err);
	if (r < 0)
		spec_blame(err);
	return r < 0 ? r : spec_join_limits(a, spec, more, err);
}

static bool mount_has_option(const Runtime__V1__Mount *m, const char *option)
{
	for (size_t i = 0; i < m->n_mount_options; i++)
		if (str_eq(m->mount_options[i], option))
			return true;
	return false;
}

/* A kubelet means what its links lead to, and by read-only the mount itself. */
static int spec_follow(struct arena *a, const cri_config *config, const struct cdi_changes *changes,
		       struct pod_container_spec *spec, struct error *err)
{
	struct pod_mount_spec *mounts = (struct pod_mount_spec *)(uintptr_t)spec->mounts;

	static const enum mount_propagation propagations[] = {
		[RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE] = MOUNT_PRIVATE,
		[RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER] = MOUNT_FROM_HOST,
		[RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL] = MOUNT_BOTH_WAYS,
	};

	for (size_t i = 0; i < config->n_mounts && i < spec->n_mounts; i++) {
		const Runtime__V1__Mount *m = config->mounts[i];

		if (mount_is_of_image(m)) {
			mounts[i].field = arena_printf(a, "config.mounts[%zu].image", i);
			if (!mounts[i].field)
				return spec_no_memory(err);
			continue;
		}
		mounts[i].follow = true;
		mounts[i].map_ids = m->n_uidmappings > 0;
		mounts[i].top_only = !m->recursive_read_only;
		mounts[i].devices = spec->security.all_devices && !mount_has_option(m, "nodev");
		mounts[i].mount.propagation = propagations[m->propagation];
		mounts[i].field = arena_printf(a, "config.mounts[%zu].host_path", i);
		if (!mounts[i].field)
			return spec_no_memory(err);
	}
	for (size_t i = 0; i < config->n_devices; i++) {
		size_t n_behind = config->n_devices + (changes ? changes->n_devices : 0);
		struct pod_mount_spec *m = &mounts[spec->n_mounts - n_behind + i];

		m->field = arena_printf(a, "config.devices[%zu].host_path", i);
		if (!m->field)
			return spec_no_memory(err);
	}
	return 0;
}

/* What vendors name is likewise of the node, and told by the field of their devices. */
static void spec_follow_vendor(const cri_own *own, const struct cdi_changes *changes,
			       struct pod_container_spec *spec)
{
	struct pod_mount_spec *mounts = (struct pod_mount_spec *)(uintptr_t)spec->mounts;

	for (size_t i = 0; i < changes->n_mounts; i++) {
		struct pod_mount_spec *m = &mounts[own->n_mounts - changes->n_mounts + i];

		m->follow = true;
		m->map_ids = false;
		m->field = CRI_FIELD_DEVICES;
	}
	for (size_t i = 0; i < changes->n_devices; i++)
		mounts[spec->n_mounts - changes->n_devices + i].field = CRI_FIELD_DEVICES;
}

/* Refuses the fields that a machine cannot provide; one in a cloud provides less. */
static int spec_check_machine(const struct workload *w, const cri_config *config,
			      const struct pod_container_spec *spec, struct error *err)
{
	const struct workload_spec whole = {
		.kind = WORKLOAD_POD, .choice = w->choice, .containers = spec, .n_containers = 1
	};

	if (!instance_kind_can(w->choice.kind, INSTANCE_KERNEL_GRANTED) && config->linux &&
	    config->linux->security_context && config->linux->security_context->privileged)
		return error_field(err, ERROR_UNSUPPORTED,
				   "config.linux.security_context.privileged",
				   "not in a pod of kind \"%s\": what has all privilege of its "
				   "machine's kernel has that of the agent",
				   instance_kind_word(w->choice.kind));
	return remote_check_run(&whole, err);
}

/* What a kubelet makes for a pod on its node, a machine makes itself where nothing of the node is
 * mounted. */
static int spec_move_scratch(struct arena *a, const cri_config *config,
			     const Runtime__V1__PodSandboxConfig *sandbox,
			     struct pod_container_spec *spec, struct error *err)
{
	struct pod_mount_spec *mounts = (struct pod_mount_spec *)(uintptr_t)spec->mounts;
	const char *uid = sandbox && sandbox->metadata ? sandbox->metadata->uid : "";

	for (size_t i = 0; i < config->n_mounts && i < spec->n_mounts; i++) {
		struct cri_kubelet_mount is;

		if (mount_is_of_image(config->mounts[i]) ||
		    !cri_kubelet_mount_parse(config->mounts[i]->host_path, uid, &is))
			continue;
		if (is.kind == CRI_KUBELET_HOSTS) {
			mounts[i].read_only = true;
			continue;
		}
		mounts[i].source = NULL;
		mounts[i].one_file = is.kind == CRI_KUBELET_TERMINATION;
		mounts[i].scratch = arena_strdup(a, is.name);
		if (!mounts[i].scratch)
			return spec_no_memory(err);
	}
	return 0;
}

int cri_container_spec(const struct cri_runtime_service *s, struct arena *a,
		       const struct workload *w, const Runtime__V1__PodSandboxConfig *sandbox,
		       const Runtime__V1__CreateContainerRequest *q,
		       const struct cdi_changes *changes, struct pod_container_spec *spec,
		       struct error *err)
{
	/* In a kernel of its own its keeper asks that. */
	const int base_fd = workload_is_remote(w) ? -1 : s->cgroup_fd;
	cri_own *own = arena_zalloc(a, 1, sizeof(*own));
	int r = spec_check(q->config, err);

	if (r < 0)
		return r;
	if (!own)
		return spec_no_memory(err);
	aurae__runtime__v0__container__init(own);
	own->name = spec_name(a, w, q->config->metadata);
	own->image = q->config->image->image;
	if (!own->name)
		return spec_no_memory(err);
	r = spec_make(base_fd, a, sandbox, q->config, &w->ids, own, spec, err);
	if (r == 0 && changes)
		r = cdi_changes_add(a, changes, own, err);
	if (r == 0)
		r = spec_take(base_fd, a, own, spec, err);
	if (r < 0)
		return r;
	r = cri_security_take_walls(s, a, w, sandbox,
				    q->config->linux ? q->config->linux->security_context : NULL,
				    spec, err);
	if (r == 0)
		r = spec_follow(a, q->config, changes, spec, err);
	if (r == 0 && changes)
		spec_follow_vendor(own, changes, spec);
	if (r == 0 && !instance_kind_can(w->choice.kind, INSTANCE_NODE_MOUNTS))
		r = spec_move_scratch(a, q->config, sandbox, spec, err);
	if (r == 0 && workload_is_remote(w))
		r = spec_check_machine(w, q->config, spec, err);
	if (r < 0)
		return r;
	spec_log(q->config, sandbox, spec);
	spec->settings = cri_record_container(a, spec->settings, q);
	return spec->settings ? 0 : spec_no_memory(err);
}

/* "SIGNAL_SIGRTMINPLUS3" is RTMIN+3. */
static int signal_of_name(const char *name)
{
	static const struct {
		const char *was;
		char is;
	} parts[] = { { "PLUS", '+' }, { "MINUS", '-' } };
	char word[32];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const char *at = strstr(name, parts[i].was);

		if (!at)
			continue;
		(void)str_printf(word, sizeof(word), "%.*s%c%s", (int)(at - name), name,
				 parts[i].is, at + strlen(parts[i].was));
		return signal_number(word);
	}
	return signal_number(name);
}

int cri_container_stop_signal(const Runtime__V1__ContainerConfig *config)
{
	const ProtobufCEnumValue *v;
	int number;

	if (config->stop_signal == RUNTIME__V1__SIGNAL__SIGNAL_RUNTIME_DEFAULT)
		return 0;
	v = protobuf_c_enum_descriptor_get_value(&runtime__v1__signal__descriptor,
						 (int)config->stop_signal);
	number = v ? signal_of_name(v->name + strlen("SIGNAL_")) : 0;
	return number > 0 ? number : 0;
}

Runtime__V1__Signal cri_signal_of(int number)
{
	const ProtobufCEnumDescriptor *d = &runtime__v1__signal__descriptor;

	for (unsigned i = 0; i < d->n_values; i++)
		if (d->values[i].value &&
		    signal_of_name(d->values[i].name + strlen("SIGNAL_")) == number)
			return (Runtime__V1__Signal)d->values[i].value;
	return RUNTIME__V1__SIGNAL__SIGNAL_RUNTIME_DEFAULT;
}
