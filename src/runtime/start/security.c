/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/security.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text/str.h"
#include "instance/spawn.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/plan/plan.h"
#include "isolate/user/cap_name.h"
#include "pod/networks/etc_wish.h"
#include "runtime/networks/pod_join.h"
#include "runtime/start/remote.h"

#define GROUP_MAX 2147483647U /* as isolate/user/user.h */
#define SECURITY_MASKS_MAX 64 /* of each list in a request */
#define SECURITY_PROFILE_MAX ((size_t)256 << 10)
/* Of a parent group: the path of the pod's own, and of those in it, is longer. */
#define SECURITY_CGROUP_MAX 512

const char *const security_hidden[] = {
	"/proc/acpi",
	"/proc/asound",
	"/proc/interrupts",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_stats",
	"/proc/scsi",
	"/proc/sched_debug",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/sys/firmware",
	"/sys/devices/virtual/powercap",
	NULL,
};
const char *const security_read_only[] = {
	"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL,
};

static const struct {
	const char *name;
	int resource;
} security_ulimits[] = {
	{ "as", RLIMIT_AS },           { "core", RLIMIT_CORE },
	{ "cpu", RLIMIT_CPU },         { "data", RLIMIT_DATA },
	{ "fsize", RLIMIT_FSIZE },     { "locks", RLIMIT_LOCKS },
	{ "memlock", RLIMIT_MEMLOCK }, { "msgqueue", RLIMIT_MSGQUEUE },
	{ "nice", RLIMIT_NICE },       { "nofile", RLIMIT_NOFILE },
	{ "nproc", RLIMIT_NPROC },     { "rss", RLIMIT_RSS },
	{ "rtprio", RLIMIT_RTPRIO },   { "rttime", RLIMIT_RTTIME },
	{ "stack", RLIMIT_STACK },     { "sigpending", RLIMIT_SIGPENDING },
};

static int security_blame(const char *field, const char *part, size_t i, const char *what,
			  const char *word, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.%s[%zu]", field, part, i);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" %s", word, what);
}

/* The set of so many names. */
static int caps_take(char *const *names, size_t n, const char *field, const char *part,
		     uint64_t *ret, struct error *err)
{
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		int number = cap_number(names[i]);

		if (strcasecmp(names[i], "ALL") == 0)
			*ret = UINT64_MAX;
		else if (number < 0)
			return security_blame(field, part, i, "is no capability", names[i], err);
		else
			*ret |= UINT64_C(1) << number;
	}
	return 0;
}

#define SECURITY_PROFILE_SENTENCE                                                                  \
	"\"%.40s\" is none of \"baseline\", \"restricted\" and \"privileged\""

static bool security_profile_is_known(const char *profile)
{
	return str_empty(profile) || str_eq(profile, "baseline") || str_eq(profile, "restricted") ||
	       str_eq(profile, "privileged");
}

static int profile_take(struct container_security *to, const char *profile, const char *field,
			struct error *err)
{
	char name[ERROR_FIELD_MAX];

	to->caps = isolate_caps_default;
	if (str_empty(profile))
		return 0;
	to->has_caps = true;
	to->may_gain = str_eq(profile, "baseline");
	to->caps = to->may_gain ? cap_baseline : 0;
	if (security_profile_is_known(profile))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.profile", field);
	return error_field(err, ERROR_INVALID, name, SECURITY_PROFILE_SENTENCE, profile);
}

/* "ALL" that is dropped leaves what is added by name; one that is added is all but what is dropped
 * by name. */
static int caps_change(struct container_security *to, const Aurae__Runtime__V0__Security *from,
		       const char *field, struct error *err)
{
	uint64_t add = 0, drop = 0;
	int r = caps_take(from->cap_add, from->n_cap_add, field, "cap_add", &add, err);

	if (r == 0)
		r = caps_take(from->cap_drop, from->n_cap_drop, field, "cap_drop", &drop, err);
	if (r < 0 || (!add && !drop))
		return r;
	to->has_caps = true;
	if (drop == UINT64_MAX)
		to->caps = add;
	else
		to->caps = (to->caps | add) & ~drop;
	return 0;
}

static int escalation_take(struct container_security *to, const char *word, const char *field,
			   struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (str_empty(word))
		return 0;
	to->may_gain = str_eq(word, "allow");
	if (to->may_gain || str_eq(word, "deny"))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.privilege_escalation", field);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" is neither \"allow\" nor \"deny\"",
			   word);
}

static int seccomp_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
			const char *field, struct error *err)
{
	const char *word = from->seccomp;
	char name[ERROR_FIELD_MAX];

	to->unfiltered = str_eq(word, "unconfined") || (from->privileged && str_empty(word));
	if (to->unfiltered || str_empty(word))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.seccomp", field);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" is not \"unconfined\"", word);
}

static int groups_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
		       const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.groups", field);
	if (from->n_groups > CONTAINER_GROUPS_MAX)
		return error_field(err, ERROR_INVALID, name, "%zu are more than the limit of %d",
				   from->n_groups, CONTAINER_GROUPS_MAX);
	for (size_t i = 0; i < from->n_groups; i++) {
		if (from->groups[i] > GROUP_MAX)
			return error_field(err, ERROR_INVALID, name, "%" PRIu32 " is no group",
					   from->groups[i]);
		to->groups[to->n_groups++] = from->groups[i];
	}
	to->groups_exact = from->groups_exact;
	return 0;
}

static int score_take(struct container_security *to, int32_t score, const char *field,
		      struct error *err)
{
	char name[ERROR_FIELD_MAX];

	to->oom_score_adj = score;
	if (score >= -1000 && score <= 1000)
		return 0;
	(void)str_printf(name, sizeof(name), "%s.oom_score_adj", field);
	return error_field(err, ERROR_INVALID, name, "%d is not from -1000 to 1000", (int)score);
}

static int seccomp_profile_take(struct arena *a, struct pod_container_spec *to,
				const Aurae__Runtime__V0__Security *from, const char *field,
				struct error *err)
{
	char *name;

	if (from->seccomp_profile.len == 0)
		return 0;
	name = arena_printf(a, "%s.seccomp_profile", field);
	if (!name)
		return error_set(err, -ENOMEM, "%s", field);
	if (!str_empty(from->seccomp))
		return error_field(err, ERROR_INVALID, name, "not beside seccomp \"%.40s\"",
				   from->seccomp);
	if (from->seccomp_profile.len > SECURITY_PROFILE_MAX)
		return error_field(err, ERROR_INVALID, name,
				   "%zu bytes are more than the limit of %zu",
				   from->seccomp_profile.len, SECURITY_PROFILE_MAX);
	to->security.unfiltered = false;
	to->profile_field = name;
	to->profile = from->seccomp_profile.data;
	to->profile_len = from->seccomp_profile.len;
	return 0;
}

/* ---- limits of processes ---- */

static int ulimit_take(struct container_security *to, const Aurae__Runtime__V0__Ulimit *m,
		       const char *field, struct error *err)
{
	size_t at = 0;

	while (at < ARRAY_SIZE(security_ulimits) && !str_eq(m->name, security_ulimits[at].name))
		at++;
	if (at == ARRAY_SIZE(security_ulimits))
		return error_field(err, ERROR_INVALID, field,
				   "\"%.40s\" is no limit of processes; they are called nofile, "
				   "nproc, core, memlock, ... (setrlimit(2))",
				   m->name);
	if (m->soft > m->hard)
		return error_field(err, ERROR_INVALID, field,
				   "%s: the soft limit %" PRIu64 " is above the hard one, %" PRIu64,
				   m->name, m->soft, m->hard);
	for (size_t i = 0; i < to->n_rlimits; i++)
		if (to->rlimits[i].resource == security_ulimits[at].resource)
			return error_field(err, ERROR_INVALID, field, "%s is there twice", m->name);
	to->rlimits[to->n_rlimits++] = (struct isolate_rlimit){
		.resource = security_ulimits[at].resource, .soft = m->soft, .hard = m->hard
	};
	return 0;
}

static int ulimits_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
			const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];
	int r = 0;

	for (size_t i = 0; i < from->n_ulimits && r == 0; i++) {
		(void)str_printf(name, sizeof(name), "%s.ulimits[%zu]", field, i);
		r = ulimit_take(to, from->ulimits[i], name, err);
	}
	return r;
}

/* ---- what is hidden ---- */

static int masks_check(char *const *paths, size_t n, const char *field, const char *part,
		       struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.%s", field, part);
	if (n > SECURITY_MASKS_MAX)
		return error_field(err, ERROR_INVALID, name, "%zu are more than the limit of %d", n,
				   SECURITY_MASKS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (str_eq(part, "unmask") && strcasecmp(paths[i], "ALL") == 0)
			continue;
		if (paths[i][0] != '/' || !paths[i][1] || strlen(paths[i]) > SPEC_PATH_MAX)
			return security_blame(field, part, i, "is no absolute path of a file",
					      paths[i], err);
	}
	return 0;
}

static bool masks_have(char *const *paths, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(paths[i], path) || strcasecmp(paths[i], "ALL") == 0)
			return true;
	return false;
}

/* Those of every container but what is not wanted (of one with all privilege: none), and what is
 * wanted beside them. */
static char **masks_list(struct arena *a, const Aurae__Runtime__V0__Security *from,
			 const char *const *usual, char *const *more, size_t n_more)
{
	size_t n = strv_len((char *const *)(uintptr_t)usual), k = 0;
	char **list = arena_zalloc(a, n + n_more + 1, sizeof(*list));

	for (size_t i = 0; list && i < n && !from->privileged; i++)
		if (!masks_have(from->unmask, from->n_unmask, usual[i]))
			list[k++] = (char *)(uintptr_t)usual[i];
	for (size_t i = 0; list && i < n_more; i++)
		list[k++] = more[i];
	return list;
}

static int masks_take(struct arena *a, struct pod_container_spec *to,
		      const Aurae__Runtime__V0__Security *from, const char *field,
		      struct error *err)
{
	int r = masks_check(from->mask, from->n_mask, field, "mask", err);

	if (r == 0)
		r = masks_check(from->unmask, from->n_unmask, field, "unmask", err);
	if (r < 0 || (!from->n_mask && !from->n_unmask && !from->privileged))
		return r;
	to->security.own_masks = true;
	to->masks.hidden = masks_list(a, from, security_hidden, from->mask, from->n_mask);
	to->masks.read_only = masks_list(a, from, security_read_only, NULL, 0);
	return to->masks.hidden && to->masks.read_only ? 0 : error_set(err, -ENOMEM, "%s", field);
}

/* ---- a container ---- */

/* What the others change of it. */
static int privilege_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
			  const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (!from->privileged)
		return 0;
	(void)str_printf(name, sizeof(name), "%s.privileged", field);
	if (!str_empty(from->profile))
		return error_field(err, ERROR_INVALID, name, "not beside the profile \"%.40s\"",
				   from->profile);
	to->has_caps = true;
	to->caps = UINT64_MAX;
	to->may_gain = true;
	to->writable_sys = true;
	to->all_devices = true;
	return 0;
}

int security_take(struct arena *a, struct pod_container_spec *to,
		  const Aurae__Runtime__V0__Security *from, const char *field, struct error *err)
{
	struct container_security *s = &to->security;
	Aurae__Runtime__V0__Security all;
	static char none[] = "";
	int r;

	*s = (struct container_security){ .has_caps = false };
	if (!from)
		return 0;
	/* Two names of the same. */
	if (str_eq(from->profile, "privileged")) {
		all = *from;
		all.profile = none;
		all.privileged = true;
		from = &all;
	}
	s->writable_groups = from->writable_cgroup;
	r = profile_take(s, from->profile, field, err);
	if (r == 0)
		r = privilege_take(s, from, field, err);
	if (r == 0)
		r = caps_change(s, from, field, err);
	if (r == 0)
		r = escalation_take(s, from->privilege_escalation, field, err);
	if (r == 0)
		r = seccomp_take(s, from, field, err);
	if (r == 0)
		r = seccomp_profile_take(a, to, from, field, err);
	if (r == 0)
		r = groups_take(s, from, field, err);
	if (r == 0)
		r = ulimits_take(s, from, field, err);
	if (r == 0)
		r = masks_take(a, to, from, field, err);
	return r < 0 ? r : score_take(s, from->oom_score_adj, field, err);
}

int security_name_profile(struct arena *a, Aurae__Runtime__V0__Container **c, const char *profile)
{
	const Aurae__Runtime__V0__Security *from = (*c)->security;
	Aurae__Runtime__V0__Security *to;

	if (str_empty(profile) || (from && (from->privileged || !str_empty(from->profile))))
		return 0;
	*c = arena_memdup(a, *c, sizeof(**c));
	to = arena_zalloc(a, 1, sizeof(*to));
	if (!*c || !to)
		return -ENOMEM;
	aurae__runtime__v0__security__init(to);
	if (from)
		*to = *from;
	to->profile = (char *)(uintptr_t)profile;
	(*c)->security = to;
	return 0;
}

/* ---- a pod ---- */

int security_check_tracer(const struct container_security *s, bool host, const char *field,
			  struct error *err)
{
	uint64_t caps = s->has_caps ? s->caps : 0;

	if (s->pids != CONTAINER_PIDS_LAYER || host || !(caps & 1ULL << CAP_SYS_PTRACE) ||
	    caps & 1ULL << CAP_SYS_ADMIN)
		return 0;
	return error_field(
		err, ERROR_PRECONDITION, field,
		"SYS_PTRACE: not where the pod's processes are shared, since its keeper "
		"is one of them; a container that has another one as its target may have "
		"it");
}

int security_check_cgroup(const char *base, const char *parent, const char *field,
			  struct error *err)
{
	size_t len = strlen(base);

	if (strlen(parent) > SECURITY_CGROUP_MAX || cgroup_path_check(parent) < 0)
		return error_field(err, ERROR_INVALID, field,
				   "\"%.200s\" is no path of a cgroup that begins with /: no empty "
				   "part, no \".\" or \"..\", at most %d bytes and %d parts",
				   parent, SECURITY_CGROUP_MAX, CGROUP_PATH_DEPTH_MAX);
	if (strncmp(parent, base, len) == 0 && (!parent[len] || parent[len] == '/'))
		return error_field(err, ERROR_INVALID, field,
				   "\"%.200s\" is in the node's own group", parent);
	return 0;
}

int security_check_sysctls(char *const *sysctls, const struct workload_spec *spec,
			   bool host_network, const char *field, struct error *err)
{
	struct error why = ERROR_INIT;

	if (strv_len(sysctls) > ISOLATE_SYSCTLS_MAX)
		return error_field(err, ERROR_INVALID, field, "%zu are more than the limit of %d",
				   strv_len(sysctls), ISOLATE_SYSCTLS_MAX);
	if (instance_check_sysctls(sysctls, host_network, spec->host_ipc,
				   spec->host_uts || spec->uts_of, &why) == 0)
		return 0;
	return error_field(err, why.kind, field, "%.300s", error_text(&why) + strlen("sysctls: "));
}

/* One of "", "private" and the others; *ret: which of those, from 1 on, or 0. */
static int mode_take(const char *word, const char *field, const char *const *others, size_t n,
		     size_t *ret, struct error *err)
{
	*ret = 0;
	if (str_empty(word) || str_eq(word, "private"))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (str_eq(word, others[i]))
			*ret = i + 1;
	if (*ret > 0)
		return 0;
	if (str_has_prefix(word, "container:"))
		return error_field(err, ERROR_UNSUPPORTED, field,
				   "\"%.80s\": of another pod only the network and the name (uts) "
				   "can be shared; containers of one pod (`nacre pod`) share "
				   "more, and `nacre debug` sees the processes of a container",
				   word);
	return error_field(err, ERROR_INVALID, field, "\"%.40s\" is not \"private\"%s%s%s", word,
			   n > 1 ? ", \"pod\"" : "", " or ", "\"host\"");
}

/* What a pod cannot have that has a kernel of its own, or is in another instance. */
static int pod_check_place(const struct workload_spec *to,
			   const Aurae__Runtime__V0__PodSecurity *from, struct error *err)
{
	const struct {
		const char *field;
		bool set;
	} fields[] = {
		{ "security.pid", to->host_pids },
		{ "security.ipc", to->host_ipc },
		{ "security.uts", to->host_uts },
		{ "security.userns", to->users },
		{ "security.sysctls", from->n_sysctls > 0 },
		{ "security.cgroup_parent", !str_empty(from->cgroup_parent) },
	};
	bool remote = remote_will_be(to->parent, &to->choice);

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].set && (remote || to->parent))
			return error_field(err, ERROR_UNSUPPORTED, fields[i].field,
					   remote ? "a pod of kind \"vm\" has a kernel of its own, "
						    "and nothing of the node's"
						  : "only for a pod of the node itself, not in an "
						    "instance");
	return 0;
}

int security_take_users(struct workload_spec *to, const char *word, const char *field,
			struct error *err)
{
	to->users = str_eq(word, "auto");
	if (to->users || str_empty(word) || str_eq(word, "host"))
		return 0;
	if (str_eq(word, "keep-id"))
		return error_field(
			err, ERROR_INVALID, field,
			"\"keep-id\" keeps the ids of a user who runs containers without "
			"root; those of this node are run by root (\"auto\" is a range of "
			"ids of its own)");
	return error_field(err, ERROR_INVALID, field, "\"%.40s\" is neither \"auto\" nor \"host\"",
			   word);
}

static int pod_take_modes(struct workload_spec *to, const Aurae__Runtime__V0__PodSecurity *from,
			  bool *ret_shared, struct error *err)
{
	static const char *const host[] = { "host" }, *const pids[] = { "host", "pod" };
	size_t pid = 0, ipc = 0, uts = 0;
	int r = mode_take(from->pid, "security.pid", pids, ARRAY_SIZE(pids), &pid, err);

	if (r == 0)
		r = mode_take(from->ipc, "security.ipc", host, ARRAY_SIZE(host), &ipc, err);
	/* Taken already. */
	if (r == 0 && !to->uts_of && !((to->create_only || to->runs) && pod_join_is(from->uts)))
		r = mode_take(from->uts, "security.uts", host, ARRAY_SIZE(host), &uts, err);
	if (r == 0)
		r = security_take_users(to, from->userns, "security.userns", err);
	*ret_shared = pid > 0;
	to->host_pids = pid == 1;
	to->host_ipc = ipc > 0;
	to->host_uts = uts > 0;
	return r;
}

int security_take_pod(struct arena *a, struct workload_spec *to,
		      const Aurae__Runtime__V0__PodSecurity *from, const char *base,
		      bool *ret_shared, struct error *err)
{
	char **sysctls;
	int r;

	*ret_shared = false;
	if (!from)
		return 0;
	if (!security_profile_is_known(from->profile))
		return error_field(err, ERROR_INVALID, "security.profile",
				   SECURITY_PROFILE_SENTENCE, from->profile);
	r = pod_take_modes(to, from, ret_shared, err);
	if (r == 0)
		r = pod_check_place(to, from, err);
	if (r == 0 && !str_empty(from->cgroup_parent) && !str_eq(from->cgroup_parent, "/")) {
		to->cgroup_parent = from->cgroup_parent;
		r = security_check_cgroup(base, from->cgroup_parent, "security.cgroup_parent", err);
	}
	if (r < 0 || from->n_sysctls == 0)
		return r;
	sysctls = arena_zalloc(a, from->n_sysctls + 1, sizeof(*sysctls));
	if (!sysctls)
		return error_set(err, -ENOMEM, "security.sysctls");
	memcpy(sysctls, from->sysctls, from->n_sysctls * sizeof(*sysctls));
	to->sysctls = sysctls;
	return security_check_sysctls(sysctls, to, str_eq(to->network, "host") || to->net_of,
				      "security.sysctls", err);
}

int security_share_pids(const struct workload_spec *spec, bool shared, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	int r = 0;

	for (size_t i = 0; shared && i < spec->n_containers && r == 0; i++) {
		struct pod_container_spec *c =
			(struct pod_container_spec *)(uintptr_t)&spec->containers[i];

		c->security.pids = CONTAINER_PIDS_LAYER;
		(void)str_printf(field, sizeof(field), "containers[%zu].security.cap_add", i);
		r = security_check_tracer(&c->security, spec->host_pids, field, err);
	}
	return r;
}

int security_take_name(struct arena *a, struct workload_spec *to, struct error *err)
{
	char hostname[HOST_NAME_MAX + 1] = "";
	struct etc_wish *etc;

	if (!to->host_uts)
		return 0;
	if (to->etc && to->etc->hostname)
		return error_field(err, ERROR_INVALID, "pod_network.hostname",
				   "not with security.uts \"host\", where it is the node's");
	etc = arena_zalloc(a, 1, sizeof(*etc));
	if (!etc)
		return error_set(err, -ENOMEM, "security.uts");
	if (to->etc)
		*etc = *to->etc;
	(void)gethostname(hostname, sizeof(hostname) - 1);
	etc->hostname = arena_strdup(a, hostname);
	etc->is_host = true;
	to->etc = etc;
	return etc->hostname ? 0 : error_set(err, -ENOMEM, "security.uts");
}
