/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/security.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "base/text/str.h"
#include "cri/sandbox/find.h"
#include "runtime/start/security.h"

#define SANDBOX "config.linux.security_context."
#define CONTAINER "config.linux.security_context."

static int security_refuse(const char *field, const char *what, struct error *err)
{
	return error_field(err, ERROR_UNSUPPORTED, field, "%s: not honoured yet by this release",
			   what);
}

/* ---- parts of both ---- */

static const char *security_mode(Runtime__V1__NamespaceMode mode)
{
	static const char *const words[] = { "POD", "CONTAINER", "NODE", "TARGET" };

	return (unsigned)mode < ARRAY_SIZE(words) ? words[mode] : "?";
}

/* One range each, from id 0 on, of the same length: what a kubelet gives. */
static int security_check_mapping(const Runtime__V1__UserNamespace *u, const char *field,
				  struct error *err)
{
	const Runtime__V1__IDMapping *uid, *gid;

	if (u->n_uids != 1 || u->n_gids != 1)
		return error_field(err, ERROR_INVALID, field,
				   "%zu ranges of users and %zu of groups: there is one of each",
				   u->n_uids, u->n_gids);
	uid = u->uids[0];
	gid = u->gids[0];
	if (uid->container_id != 0 || gid->container_id != 0)
		return error_field(err, ERROR_INVALID, field,
				   "id 0 of the container is not mapped: its range begins with 0");
	if (uid->length == 0 || uid->length != gid->length)
		return error_field(err, ERROR_INVALID, field,
				   "%u users and %u groups: as many of each, and at least one",
				   uid->length, gid->length);
	/* A kubelet without ranges of its own takes them from all that a 32-bit id can be. */
	if (uid->host_id == 0 || gid->host_id == 0 || uid->length > UINT32_MAX - uid->host_id ||
	    gid->length > UINT32_MAX - gid->host_id)
		return error_field(err, ERROR_INVALID, field,
				   "from id %u, %u on: not 0, nor past 4294967294", uid->host_id,
				   gid->host_id);
	return 0;
}

static int security_check_userns(const Runtime__V1__UserNamespace *u, const char *field,
				 struct error *err)
{
	if (!u || u->mode == RUNTIME__V1__NAMESPACE_MODE__NODE)
		return 0;
	if (u->mode != RUNTIME__V1__NAMESPACE_MODE__POD)
		return error_field(err, ERROR_INVALID, field, "mode %s is neither POD nor NODE",
				   security_mode(u->mode));
	return security_check_mapping(u, field, err);
}

void cri_security_ids(const Runtime__V1__NamespaceOption *o, struct isolate_ids *ret)
{
	const Runtime__V1__UserNamespace *u = o ? o->userns_options : NULL;

	*ret = (struct isolate_ids){ .count = 0 };
	if (u && u->mode == RUNTIME__V1__NAMESPACE_MODE__POD && u->n_uids == 1 && u->n_gids == 1)
		*ret = (struct isolate_ids){ u->uids[0]->host_id, u->gids[0]->host_id,
					     u->uids[0]->length };
}

static int security_check_mode(const char *field, Runtime__V1__NamespaceMode mode,
			       struct error *err)
{
	if (mode == RUNTIME__V1__NAMESPACE_MODE__POD || mode == RUNTIME__V1__NAMESPACE_MODE__NODE)
		return 0;
	return error_field(err, ERROR_INVALID, field, "mode %s is neither POD nor NODE",
			   security_mode(mode));
}

/* Of a sandbox `pid` says what its containers are going to ask for, each by itself. */
static int security_check_namespaces(const Runtime__V1__NamespaceOption *o, struct error *err)
{
	int r;

	if (!o)
		return 0;
	r = security_check_mode(SANDBOX "namespace_options.network", o->network, err);
	if (r == 0)
		r = security_check_mode(SANDBOX "namespace_options.ipc", o->ipc, err);
	if (r < 0)
		return r;
	if ((unsigned)o->pid > RUNTIME__V1__NAMESPACE_MODE__TARGET)
		return error_field(err, ERROR_INVALID, SANDBOX "namespace_options.pid",
				   "mode %d is unknown", (int)o->pid);
	if (!str_empty(o->target_id) && o->pid != RUNTIME__V1__NAMESPACE_MODE__TARGET)
		return error_field(err, ERROR_INVALID, SANDBOX "namespace_options.target_id",
				   "only with pid TARGET, not %s", security_mode(o->pid));
	return security_check_userns(o->userns_options, SANDBOX "namespace_options.userns_options",
				     err);
}

static int security_check_selinux(const Runtime__V1__SELinuxOption *o, struct error *err)
{
	if (!o || (!*o->user && !*o->role && !*o->type && !*o->level))
		return 0;
	return security_refuse(SANDBOX "selinux_options", "labels", err);
}

/* ---- sandboxes ---- */

int cri_security_check_sandbox(const Runtime__V1__LinuxSandboxSecurityContext *s, struct error *err)
{
	int r;

	if (!s)
		return 0;
	if (s->run_as_group && !s->run_as_user)
		return error_field(err, ERROR_INVALID, SANDBOX "run_as_group",
				   "not without run_as_user");
	r = security_check_namespaces(s->namespace_options, err);
	if (r == 0)
		r = security_check_selinux(s->selinux_options, err);
	/* `privileged` allows it to containers, which ask for it themselves. */
	return r;
}

/* ---- containers ---- */

/* The kind of a profile, and that a reference belongs to one that has it. */
static int security_check_kind(const Runtime__V1__SecurityProfile *p, const char *field,
			       struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (!p)
		return 0;
	(void)str_printf(name, sizeof(name), "%s.profile_type", field);
	if ((unsigned)p->profile_type > RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost)
		return error_field(err, ERROR_INVALID, name, "%d is unknown", (int)p->profile_type);
	(void)str_printf(name, sizeof(name), "%s.localhost_ref", field);
	if (!str_empty(p->localhost_ref) &&
	    p->profile_type != RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost)
		return error_field(err, ERROR_INVALID, name, "only of the type Localhost");
	return 0;
}

static int security_check_profile(const Runtime__V1__SecurityProfile *p, const char *field,
				  bool unconfined, struct error *err)
{
	if (!p || p->profile_type == RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__RuntimeDefault)
		return 0;
	if (p->profile_type == RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined)
		return unconfined ? 0 : security_refuse(field, "Unconfined", err);
	return security_refuse(field, "Localhost", err);
}

#define SECCOMP_LOCAL "localhost/" /* of the old form, in front of a path */

/* The path of a profile on the node, and the field that names it; NULL: there is none. */
static const char *security_seccomp_path(const Runtime__V1__LinuxContainerSecurityContext *s,
					 const char **ret_field)
{
	*ret_field =
		s->seccomp ? CONTAINER "seccomp.localhost_ref" : CONTAINER "seccomp_profile_path";
	if (s->privileged)
		return NULL;
	if (s->seccomp)
		return s->seccomp->profile_type ==
				       RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost
			       ? s->seccomp->localhost_ref
			       : NULL;
	return str_has_prefix(s->seccomp_profile_path, SECCOMP_LOCAL)
		       ? s->seccomp_profile_path + strlen(SECCOMP_LOCAL)
		       : NULL;
}

/* A kubelet says the whole path, of a file in its own directory. */
static int security_check_seccomp(const Runtime__V1__LinuxContainerSecurityContext *s,
				  struct error *err)
{
	const char *field, *path = security_seccomp_path(s, &field);

	if (!path)
		return s->seccomp || !*s->seccomp_profile_path ||
				       str_eq(s->seccomp_profile_path, "runtime/default") ||
				       str_eq(s->seccomp_profile_path, "unconfined") ||
				       s->privileged
			       ? 0
			       : error_field(
					 err, ERROR_INVALID, field,
					 "\"%.200s\" is none of runtime/default, unconfined and "
					 "localhost/PATH",
					 s->seccomp_profile_path);
	if (path[0] != '/' || strlen(path) > SPEC_PATH_MAX || strstr(path, "/../") ||
	    str_has_suffix(path, "/.."))
		return error_field(err, ERROR_INVALID, field,
				   "\"%.200s\" is no absolute path of a profile without \"..\"",
				   path);
	return 0;
}

static int security_check_profiles(const Runtime__V1__LinuxContainerSecurityContext *s,
				   struct error *err)
{
	int r = security_check_kind(s->seccomp, CONTAINER "seccomp", err);

	if (r == 0)
		r = security_check_kind(s->apparmor, CONTAINER "apparmor", err);
	if (r == 0)
		r = security_check_seccomp(s, err);
	/* No container has a profile of AppArmor. */
	if (r == 0)
		r = security_check_profile(s->apparmor, CONTAINER "apparmor", true, err);
	if (r == 0 && !s->apparmor && *s->apparmor_profile &&
	    !str_eq(s->apparmor_profile, "runtime/default") &&
	    !str_eq(s->apparmor_profile, "unconfined"))
		r = security_refuse(CONTAINER "apparmor_profile", s->apparmor_profile, err);
	return r;
}

static int security_check_ambient(const Runtime__V1__Capability *c, struct error *err)
{
	return c && c->n_add_ambient_capabilities > 0
		       ? security_refuse(CONTAINER "capabilities.add_ambient_capabilities",
					 c->add_ambient_capabilities[0], err)
		       : 0;
}

static int security_check_paths(const char *field, char *const *paths, size_t n, struct error *err)
{
	if (n > CONTAINER_MASKS_MAX)
		return error_field(err, ERROR_INVALID, field, "%zu are more than the limit of %d",
				   n, CONTAINER_MASKS_MAX);
	for (size_t i = 0; i < n; i++)
		if (paths[i][0] != '/' || strlen(paths[i]) > SPEC_PATH_MAX)
			return error_field(err, ERROR_INVALID, field,
					   "\"%.200s\" is not absolute, or longer than %d bytes",
					   paths[i], SPEC_PATH_MAX);
	return 0;
}

int cri_security_check_container(const Runtime__V1__LinuxContainerSecurityContext *s,
				 struct error *err)
{
	int r;

	if (!s)
		return 0;
	r = security_check_namespaces(s->namespace_options, err);
	if (r == 0 && (unsigned)s->supplemental_groups_policy >
			      RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict)
		r = error_field(err, ERROR_INVALID, CONTAINER "supplemental_groups_policy",
				"%d is unknown", (int)s->supplemental_groups_policy);
	if (r == 0)
		r = security_check_ambient(s->capabilities, err);
	if (r == 0)
		r = security_check_selinux(s->selinux_options, err);
	if (r == 0)
		r = security_check_profiles(s, err);
	if (r == 0)
		r = security_check_paths(CONTAINER "masked_paths", s->masked_paths,
					 s->n_masked_paths, err);
	if (r == 0)
		r = security_check_paths(CONTAINER "readonly_paths", s->readonly_paths,
					 s->n_readonly_paths, err);
	return r;
}

/* ---- what is asked of the domain ---- */

/* Nothing said is no filter, as the CRI has it. */
static bool security_is_unconfined(const Runtime__V1__LinuxContainerSecurityContext *s)
{
	if (s->seccomp)
		return s->seccomp->profile_type ==
		       RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Unconfined;
	return !str_eq(s->seccomp_profile_path, "runtime/default") &&
	       !str_has_prefix(s->seccomp_profile_path, SECCOMP_LOCAL);
}

static int security_take_groups(struct arena *a,
				const Runtime__V1__LinuxContainerSecurityContext *s,
				Aurae__Runtime__V0__Security *to, struct error *err)
{
	to->groups = arena_zalloc(a, s->n_supplemental_groups + 1, sizeof(*to->groups));
	if (!to->groups)
		return error_set(err, -ENOMEM, "supplemental_groups");
	for (size_t i = 0; i < s->n_supplemental_groups; i++) {
		if (s->supplemental_groups[i] < 0 || s->supplemental_groups[i] > INT32_MAX)
			return error_field(err, ERROR_INVALID, CONTAINER "supplemental_groups",
					   "%lld is no group",
					   (long long)s->supplemental_groups[i]);
		to->groups[to->n_groups++] = (uint32_t)s->supplemental_groups[i];
	}
	to->groups_exact =
		s->supplemental_groups_policy == RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict;
	return 0;
}

int cri_security_take(struct arena *a, const Runtime__V1__LinuxContainerSecurityContext *s,
		      Aurae__Runtime__V0__Security **ret, struct error *err)
{
	static char baseline[] = "baseline", deny[] = "deny", unconfined[] = "unconfined";
	static char every[] = "ALL", *all[] = { every };
	static const Runtime__V1__LinuxContainerSecurityContext none =
		RUNTIME__V1__LINUX_CONTAINER_SECURITY_CONTEXT__INIT;
	Aurae__Runtime__V0__Security *m = arena_zalloc(a, 1, sizeof(*m));

	if (!m)
		return error_set(err, -ENOMEM, "security_context");
	s = s ?: &none;
	aurae__runtime__v0__security__init(m);
	m->profile = baseline;
	if (s->no_new_privs)
		m->privilege_escalation = deny;
	if (s->privileged || security_is_unconfined(s))
		m->seccomp = unconfined;
	if (s->privileged) {
		m->cap_add = all;
		m->n_cap_add = 1;
	} else if (s->capabilities) {
		m->cap_add = s->capabilities->add_capabilities;
		m->n_cap_add = s->capabilities->n_add_capabilities;
		m->cap_drop = s->capabilities->drop_capabilities;
		m->n_cap_drop = s->capabilities->n_drop_capabilities;
	}
	*ret = m;
	return security_take_groups(a, s, m, err);
}

/* ---- walls ---- */

static const Runtime__V1__NamespaceOption *security_namespaces(
	const Runtime__V1__PodSandboxConfig *sandbox)
{
	return sandbox && sandbox->linux && sandbox->linux->security_context
		       ? sandbox->linux->security_context->namespace_options
		       : NULL;
}

static int security_take_target(const struct cri_runtime_service *s, const struct workload *w,
				const char *id, struct pod_container_spec *spec, struct error *err)
{
	struct pod_container *c = NULL;
	int r = cri_find_container(s, CONTAINER "namespace_options.target_id", id, &c, err);

	if (r < 0)
		return r;
	if (c->workload != w)
		return error_field(err, ERROR_INVALID, CONTAINER "namespace_options.target_id",
				   "the container %s is of another sandbox", id);
	if (c->status.state != CONTAINER_RUNNING)
		return error_field(err, ERROR_PRECONDITION, CONTAINER "namespace_options.target_id",
				   "the container %s does not run", id);
	spec->security.pids = CONTAINER_PIDS_OTHER;
	return str_copy(spec->security.pids_of, sizeof(spec->security.pids_of), c->id);
}

static int security_take_pids(const struct cri_runtime_service *s, const struct workload *w,
			      const Runtime__V1__NamespaceOption *of_pod,
			      const Runtime__V1__NamespaceOption *own,
			      struct pod_container_spec *spec, struct error *err)
{
	static const Runtime__V1__NamespaceOption none = RUNTIME__V1__NAMESPACE_OPTION__INIT;
	bool host = of_pod && of_pod->pid == RUNTIME__V1__NAMESPACE_MODE__NODE;

	/* Where nothing is said, the sandbox says it; and the first mode, where that says nothing.
	 */
	own = own ?: of_pod ?: &none;
	if (own->pid == RUNTIME__V1__NAMESPACE_MODE__CONTAINER)
		return 0;
	if (own->pid == RUNTIME__V1__NAMESPACE_MODE__TARGET)
		return security_take_target(s, w, own->target_id, spec, err);
	if (own->pid == RUNTIME__V1__NAMESPACE_MODE__NODE && !host)
		return error_field(err, ERROR_INVALID, CONTAINER "namespace_options.pid",
				   "NODE: its sandbox was not made so");
	spec->security.pids = CONTAINER_PIDS_LAYER;
	return security_check_tracer(&spec->security, host,
				     CONTAINER "capabilities.add_capabilities", err);
}

/* A sandbox has its namespaces from the beginning: a container cannot have others. POD is also what
 * says nothing. */
static int security_check_own(const struct workload *w, const Runtime__V1__NamespaceOption *of_pod,
			      const Runtime__V1__NamespaceOption *own, struct error *err)
{
	static const Runtime__V1__NamespaceOption none = RUNTIME__V1__NAMESPACE_OPTION__INIT;
	const Runtime__V1__NamespaceMode node = RUNTIME__V1__NAMESPACE_MODE__NODE;
	struct isolate_ids ids;

	of_pod = of_pod ?: &none;
	if (own->network == node && of_pod->network != node)
		return error_field(err, ERROR_INVALID, CONTAINER "namespace_options.network",
				   "NODE: its sandbox was not made so");
	if (own->ipc == node && of_pod->ipc != node)
		return error_field(err, ERROR_INVALID, CONTAINER "namespace_options.ipc",
				   "NODE: its sandbox was not made so");
	cri_security_ids(own, &ids);
	if (!isolate_ids_are_set(&ids) ||
	    (ids.uid == w->ids.uid && ids.gid == w->ids.gid && ids.count == w->ids.count))
		return 0;
	return error_field(err, ERROR_INVALID, CONTAINER "namespace_options.userns_options",
			   "not the user namespace of its sandbox");
}

static bool security_is_usual(char *const *paths, size_t n, const char *const *there)
{
	for (size_t i = 0; i < n; i++) {
		/* One for each processor. */
		bool found = str_has_prefix(paths[i], "/sys/devices/system/cpu/cpu") &&
			     str_has_suffix(paths[i], "/thermal_throttle");

		for (const char *const *at = there; *at && !found; at++)
			found = str_eq(paths[i], *at);
		if (!found)
			return false;
	}
	return true;
}

/* What was named, or where nothing was, what is there otherwise. */
static char **security_paths(struct arena *a, char *const *paths, size_t n,
			     const char *const *there)
{
	size_t n_all = n ? n : strv_len((char *const *)(uintptr_t)there);
	char **list = arena_zalloc(a, n_all + 1, sizeof(*list));

	for (size_t i = 0; list && i < n_all; i++)
		list[i] = n ? paths[i] : (char *)(uintptr_t)there[i];
	return list;
}

/* A kubelet names what each container has anyway, unless a pod says otherwise. */
static int security_take_masks(struct arena *a,
			       const Runtime__V1__LinuxContainerSecurityContext *of,
			       struct pod_container_spec *spec, struct error *err)
{
	spec->security.own_masks = of->privileged;
	spec->security.writable_sys = of->privileged;
	spec->security.all_devices = of->privileged;
	if (of->privileged ||
	    (security_is_usual(of->masked_paths, of->n_masked_paths, security_hidden) &&
	     security_is_usual(of->readonly_paths, of->n_readonly_paths, security_read_only)))
		return 0;
	spec->security.own_masks = true;
	spec->masks.hidden =
		security_paths(a, of->masked_paths, of->n_masked_paths, security_hidden);
	spec->masks.read_only =
		security_paths(a, of->readonly_paths, of->n_readonly_paths, security_read_only);
	return spec->masks.hidden && spec->masks.read_only
		       ? 0
		       : error_set(err, -ENOMEM, "masked_paths");
}

int cri_security_take_walls(const struct cri_runtime_service *s, struct arena *a,
			    const struct workload *w, const Runtime__V1__PodSandboxConfig *sandbox,
			    const Runtime__V1__LinuxContainerSecurityContext *of,
			    struct pod_container_spec *spec, struct error *err)
{
	const char *field = NULL;
	int r = 0;

	if (of && of->namespace_options)
		r = security_check_own(w, security_namespaces(sandbox), of->namespace_options, err);
	if (r == 0)
		r = security_take_pids(s, w, security_namespaces(sandbox),
				       of ? of->namespace_options : NULL, spec, err);
	if (r < 0 || !of)
		return r;
	spec->profile_path = security_seccomp_path(of, &field);
	spec->profile_field = spec->profile_path ? field : NULL;
	return security_take_masks(a, of, spec, err);
}
