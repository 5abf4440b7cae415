/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/plan/notes.h"
#include "isolate/seccomp/seccomp_profile.h"
#include "isolate/user/cap_name.h"
#include "oci/cmd/report.h"
#include "oci/config/given.h"
#include "oci/config/words.h"

void convert_done(struct convert *c)
{
	for (size_t i = 0; i < c->n_fds; i++)
		(void)fd_close(c->fds[i]);
	free(c->fds);
	c->fds = NULL;
	c->n_fds = 0;
	free(c->seccomp);
	c->seccomp = NULL;
	c->notes = isolate_notes_free(c->notes);
}

static int convert_notes(struct convert *c, struct error *err)
{
	c->notes = isolate_notes_new();
	c->plan.notes = c->notes;
	return c->notes ? 0 : error_set(err, -ENOMEM, "convert the configuration");
}

void convert_report_notes(const struct convert *c)
{
	static const char *const fields[ISOLATE_NOTE_COUNT] = {
		[ISOLATE_NOTE_OOM_SCORE] = "process.oomScoreAdj",
		[ISOLATE_NOTE_CPUS] = "process.execCPUAffinity",
		[ISOLATE_NOTE_MEMPOLICY] = "linux.memoryPolicy.nodes",
	};

	for (int i = 0; c->notes && i < ISOLATE_NOTE_COUNT; i++)
		if (fields[i] && c->notes->text[i][0])
			report_warning("%s: %.*s", fields[i], ISOLATE_NOTE_TEXT_MAX - 1,
				       c->notes->text[i]);
}

int convert_own(struct convert *c, int fd, struct error *err)
{
	int *fds;

	if (c->n_fds == CONVERT_FDS_MAX) {
		(void)fd_close(fd);
		return error_refuse(err, ERROR_EXHAUSTED,
				    "more than %d mounts, namespaces and devices", CONVERT_FDS_MAX);
	}
	fds = reallocarray(c->fds, c->n_fds + 1, sizeof(*fds));
	if (!fds) {
		(void)fd_close(fd);
		return error_set(err, -ENOMEM, "keep a descriptor");
	}
	c->fds = fds;
	c->fds[c->n_fds++] = fd;
	return 0;
}

static void *convert_alloc(struct convert *c, size_t n, size_t size, struct error *err)
{
	void *p = arena_zalloc(c->arena, n + 1, size);

	if (!p)
		(void)error_set(err, -ENOMEM, "convert the configuration");
	return p;
}

/* SCHED_DEADLINE, which libc's header does not name. */
#define CONVERT_DEADLINE 6

/* ---- namespaces ---- */

static const struct {
	const char *type;
	enum isolate_ns kind;
	int flag;
} namespaces[] = {
	{ "pid", ISOLATE_NS_PID, CLONE_NEWPID },
	{ "network", ISOLATE_NS_NET, CLONE_NEWNET },
	{ "mount", ISOLATE_NS_MOUNT, CLONE_NEWNS },
	{ "ipc", ISOLATE_NS_IPC, CLONE_NEWIPC },
	{ "uts", ISOLATE_NS_UTS, CLONE_NEWUTS },
	{ "user", ISOLATE_NS_USER, CLONE_NEWUSER },
	{ "cgroup", ISOLATE_NS_CGROUP, CLONE_NEWCGROUP },
	{ "time", ISOLATE_NS_TIME, CLONE_NEWTIME },
};

static int convert_join(struct convert *c, size_t n, const char *path, const char *field,
			struct error *err)
{
	int fd = given_open(path, O_RDONLY | O_NONBLOCK, 0);
	struct statfs fs;
	int r;

	if (fd < 0)
		return error_set(err, fd, "%s: open %s", field, path);
	r = convert_own(c, fd, err);
	if (r < 0)
		return r;
	/* What is no file of a namespace may understand the number as something else. */
	if (fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC ||
	    ioctl(fd, NS_GET_NSTYPE) != namespaces[n].flag)
		return error_field(err, ERROR_INVALID, field, "%s is no %s namespace", path,
				   namespaces[n].type);
	c->plan.ns[namespaces[n].kind] = ISOLATE_JOIN;
	c->plan.ns_fd[namespaces[n].kind] = fd;
	return 0;
}

static int convert_namespace(struct convert *c, const struct oci_namespace *ns, const char *field,
			     struct error *err)
{
	for (size_t n = 0; n < ARRAY_SIZE(namespaces); n++) {
		if (!str_eq(namespaces[n].type, ns->type))
			continue;
		if (!str_empty(ns->path))
			return convert_join(c, n, ns->path, field, err);
		c->plan.ns[namespaces[n].kind] = ISOLATE_NEW;
		return 0;
	}
	return error_field(err, ERROR_INVALID, field, "type \"%.40s\" is not known", ns->type);
}

int convert_id_maps(struct convert *c, const struct oci_id_map *maps, size_t n,
		    const struct isolate_id_map **ret, size_t *ret_n, struct error *err)
{
	struct isolate_id_map *list = convert_alloc(c, n, sizeof(*list), err);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = (struct isolate_id_map){ .inside = (uint32_t)maps[i].inside.value,
						   .outside = (uint32_t)maps[i].outside.value,
						   .count = (uint32_t)maps[i].size.value };
	*ret = list;
	*ret_n = n;
	return 0;
}

static int convert_user_ns(struct convert *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	int r;

	if (c->plan.ns[ISOLATE_NS_USER] != ISOLATE_NEW) {
		if (c->plan.ns[ISOLATE_NS_USER] == ISOLATE_KEEP && os->n_uid_maps > 0)
			return error_field(err, ERROR_INVALID, "linux.uidMappings",
					   "needs a user namespace");
		return 0;
	}
	r = convert_id_maps(c, os->uid_maps, os->n_uid_maps, &c->plan.uid_map, &c->plan.n_uid_map,
			    err);
	if (r < 0)
		return r;
	return convert_id_maps(c, os->gid_maps, os->n_gid_maps, &c->plan.gid_map,
			       &c->plan.n_gid_map, err);
}

int convert_namespaces(struct convert *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	char field[32];

	for (size_t i = 0; i < os->n_namespaces; i++) {
		int r;

		(void)str_printf(field, sizeof(field), "linux.namespaces[%zu]", i);
		r = convert_namespace(c, &os->namespaces[i], field, err);
		if (r < 0)
			return r;
	}
	c->plan.bring_up_loopback = c->plan.ns[ISOLATE_NS_NET] == ISOLATE_NEW;
	return convert_user_ns(c, err);
}

/* ---- the process ---- */

static uint64_t convert_cap_set(const char *const *names, size_t n)
{
	uint64_t set = 0;

	for (size_t i = 0; i < n; i++) {
		int number = cap_number(names[i]);

		if (number >= 0)
			set |= UINT64_C(1) << number;
		else
			report_warning("process.capabilities: \"%.60s\" is not known", names[i]);
	}
	return set;
}

/* A new user namespace has all capabilities; elsewhere nothing can be added to the bounding set.
 * What the other sets name beyond it, the kernel refuses by itself. */
static void convert_look_at_bounding(const struct convert *c)
{
	for (unsigned cap = 0; cap_name(cap); cap++)
		if (c->caps.bounding & UINT64_C(1) << cap &&
		    prctl(PR_CAPBSET_READ, (unsigned long)cap, 0, 0, 0) <= 0)
			report_warning("process.capabilities.bounding: CAP_%s is not in the "
				       "bounding set of the caller, and not set",
				       cap_name(cap));
}

static void convert_caps(struct convert *c, const struct oci_caps *caps)
{
	if (caps)
		c->caps = (struct isolate_cap_sets){
			.bounding = convert_cap_set(caps->bounding, caps->n_bounding),
			.effective = convert_cap_set(caps->effective, caps->n_effective),
			.permitted = convert_cap_set(caps->permitted, caps->n_permitted),
			.inheritable = convert_cap_set(caps->inheritable, caps->n_inheritable),
			.ambient = convert_cap_set(caps->ambient, caps->n_ambient),
		};
	c->plan.cap_sets = &c->caps;
	if (c->plan.ns[ISOLATE_NS_USER] == ISOLATE_KEEP)
		convert_look_at_bounding(c);
}

static int convert_user(struct convert *c, const struct oci_user *u, struct error *err)
{
	if (!u)
		return 0;
	c->plan.uid = (uid_t)u->uid.value;
	c->plan.gid = (gid_t)u->gid.value;
	if (u->umask.set)
		c->plan.umask = (int)u->umask.value;
	if (u->n_groups > ISOLATE_GROUPS_MAX)
		return error_field(err, ERROR_EXHAUSTED, "process.user.additionalGids",
				   "has more than %d groups", ISOLATE_GROUPS_MAX);
	for (size_t i = 0; i < u->n_groups; i++)
		c->plan.groups[i] = (gid_t)u->groups[i];
	c->plan.n_groups = u->n_groups;
	return 0;
}

static int convert_rlimits(struct convert *c, const struct oci_process *p, struct error *err)
{
	struct isolate_rlimit *list = convert_alloc(c, p->n_rlimits, sizeof(*list), err);
	char field[48];

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_rlimits; i++) {
		uint64_t number = 0;
		int r;

		(void)str_printf(field, sizeof(field), "process.rlimits[%zu].type", i);
		r = word_need(words_rlimits, p->rlimits[i].type, field, &number, err);
		if (r < 0)
			return r;
		list[i] = (struct isolate_rlimit){ .resource = (int)number,
						   .soft = p->rlimits[i].soft.value,
						   .hard = p->rlimits[i].hard.value };
	}
	c->plan.rlimits = list;
	c->plan.n_rlimits = p->n_rlimits;
	return 0;
}

/* The kernel passes over what is not of the policy. */
static int convert_check_scheduler(const struct oci_scheduler *s, uint64_t policy,
				   struct error *err)
{
	const struct {
		const char *field;
		bool is_set;
		uint64_t policies;
	} members[] = {
		{ "nice", s->nice.value != 0, 1 << SCHED_OTHER | 1 << SCHED_BATCH },
		{ "priority", s->priority.value != 0, 1 << SCHED_FIFO | 1 << SCHED_RR },
		{ "runtime", s->runtime.value != 0, 1 << CONVERT_DEADLINE },
		{ "deadline", s->deadline.value != 0, 1 << CONVERT_DEADLINE },
		{ "period", s->period.value != 0, 1 << CONVERT_DEADLINE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		char field[40];

		if (!members[i].is_set || members[i].policies & UINT64_C(1) << policy)
			continue;
		(void)str_printf(field, sizeof(field), "process.scheduler.%s", members[i].field);
		return error_field(err, ERROR_INVALID, field, "has no effect with policy %s",
				   s->policy);
	}
	return 0;
}

static int convert_scheduler(struct convert *c, const struct oci_process *p, struct error *err)
{
	const struct oci_scheduler *s = p->scheduler;
	uint64_t policy = 0, flags = 0, class = 0;
	int r;

	if (s) {
		r = word_need(words_policies, s->policy, "process.scheduler.policy", &policy, err);
		if (r == 0)
			r = word_flags(words_sched_flags, s->flags, s->n_flags,
				       "process.scheduler.flags", &flags, err);
		if (r == 0)
			r = convert_check_scheduler(s, policy, err);
		if (r < 0)
			return r;
		c->sched = (struct isolate_sched){ .policy = (unsigned)policy,
						   .nice = (int)s->nice.value,
						   .priority = (unsigned)s->priority.value,
						   .flags = flags,
						   .runtime = s->runtime.value,
						   .deadline = s->deadline.value,
						   .period = s->period.value };
		c->plan.sched = &c->sched;
	}
	if (p->io_priority) {
		r = word_need(words_io_classes, p->io_priority->class, "process.ioPriority.class",
			      &class, err);
		if (r < 0)
			return r;
		c->plan.io_priority = (int)(class << 13 | (uint64_t)p->io_priority->priority.value);
	}
	return 0;
}

/* The environment as it is given, and HOME, which the child finds out, where that is missing or
 * empty. */
static int convert_env(struct convert *c, const struct oci_process *p, struct error *err)
{
	static const char name[] = "HOME=";
	size_t n = 0, size = sizeof(name) + ISOLATE_HOME_SIZE;
	char **env, *home;

	env = convert_alloc(c, p->n_env + 2, sizeof(char *), err);
	home = env ? convert_alloc(c, size, 1, err) : NULL;
	if (!home)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_env; i++)
		if (!str_eq(p->env[i], name))
			env[n++] = (char *)(uintptr_t)p->env[i];
	if (!strv_env_get(env, "HOME")) {
		(void)str_printf(home, size, "%s/", name);
		c->plan.home = home + sizeof(name) - 1;
		env[n++] = home;
	}
	c->plan.env = env;
	return 0;
}

int convert_process(struct convert *c, const struct oci_process *p, struct error *err)
{
	int r;

	c->plan.argv = (char *const *)(uintptr_t)p->args;
	r = convert_env(c, p, err);
	if (r < 0)
		return r;
	c->plan.cwd = p->cwd;
	c->plan.no_new_privs = p->no_new_privs.value;
	c->plan.apparmor = str_empty(p->apparmor) ? NULL : p->apparmor;
	c->plan.selinux = str_empty(p->selinux) ? NULL : p->selinux;
	c->plan.keep_oom_score = !p->oom_score_adj.set;
	c->plan.oom_score_adj = (int)p->oom_score_adj.value;
	c->plan.new_session = true;
	c->plan.give_stdio = true;
	c->plan.terminal = p->terminal.value;
	c->plan.groups_exact = true;
	convert_caps(c, p->caps);
	r = convert_user(c, p->user, err);
	if (r == 0 && (p->oom_score_adj.set || p->affinity || c->config->os->mem_policy))
		r = convert_notes(c, err);
	if (r == 0)
		r = convert_rlimits(c, p, err);
	if (r == 0)
		r = convert_scheduler(c, p, err);
	return r;
}

/* ---- the container ---- */

static int convert_sysctls(struct convert *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;
	struct isolate_sysctl *list = convert_alloc(c, os->n_sysctls, sizeof(*list), err);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < os->n_sysctls; i++)
		list[i] = (struct isolate_sysctl){ .name = os->sysctls[i].name,
						   .value = os->sysctls[i].value };
	c->plan.sysctls = list;
	c->plan.n_sysctls = os->n_sysctls;
	return 0;
}

static int convert_clocks(struct convert *c, struct error *err)
{
	const struct oci_linux *os = c->config->os;

	for (size_t i = 0; i < os->n_time_offsets; i++) {
		const struct oci_time_offset *o = &os->time_offsets[i];
		const struct isolate_time_offset offset = { .sec = o->sec.value,
							    .nsec = (uint32_t)o->nsec.value,
							    .set = true };

		if (str_eq(o->clock, "monotonic"))
			c->plan.monotonic = offset;
		else if (str_eq(o->clock, "boottime"))
			c->plan.boottime = offset;
		else
			return error_field(err, ERROR_INVALID, "linux.timeOffsets",
					   "\"%.40s\" is no clock that can be set", o->clock);
	}
	return 0;
}

static int convert_memory_policy(struct convert *c, struct error *err)
{
	const struct oci_mem_policy *p = c->config->os->mem_policy;
	uint64_t mode = 0, flags = 0;
	int r;

	if (!p)
		return 0;
	r = word_need(words_mem_modes, p->mode, "linux.memoryPolicy.mode", &mode, err);
	if (r == 0)
		r = word_flags(words_mem_flags, p->flags, p->n_flags, "linux.memoryPolicy.flags",
			       &flags, err);
	if (r == 0 && !str_empty(p->nodes))
		r = word_bits(p->nodes, "linux.memoryPolicy.nodes", c->mempolicy.nodes,
			      ARRAY_SIZE(c->mempolicy.nodes), err);
	if (r < 0)
		return r;
	c->mempolicy.mode = (int)mode;
	c->mempolicy.flags = (unsigned)flags;
	c->plan.mempolicy = &c->mempolicy;
	return 0;
}

static int convert_personality(struct convert *c, struct error *err)
{
	const struct oci_personality *p = c->config->os->personality;
	uint64_t domain = 0;
	int r;

	if (!p)
		return 0;
	r = word_need(words_domains, p->domain, "linux.personality.domain", &domain, err);
	if (r < 0)
		return r;
	if (p->n_flags > 0)
		return error_field(err, ERROR_INVALID, "linux.personality.flags",
				   "no flag is supported");
	c->plan.personality = (unsigned long)domain;
	return 0;
}

/* What there is no part of isolate for. */
static int convert_refuse(const struct oci_linux *os, struct error *err)
{
	if (os->intel_rdt)
		return error_field(err, ERROR_UNSUPPORTED, "linux.intelRdt", "is not supported");
	if (os->n_net_devices > 0)
		return error_field(err, ERROR_UNSUPPORTED, "linux.netDevices", "is not supported");
	return 0;
}

/* The names of a namespace that others live in stay theirs. */
static void convert_names(struct convert *c)
{
	const char *host = str_empty(c->config->hostname) ? NULL : c->config->hostname;
	const char *domain = str_empty(c->config->domainname) ? NULL : c->config->domainname;
	bool keep = c->plan.ns[ISOLATE_NS_UTS] == ISOLATE_KEEP;
	struct utsname now = { .nodename = "" };

	if (c->plan.ns[ISOLATE_NS_UTS] == ISOLATE_NEW) {
		c->plan.hostname = host;
		c->plan.domainname = domain;
		return;
	}
	if (keep && uname(&now) < 0)
		now = (struct utsname){ .nodename = "" };
	if (host && !(keep && str_eq(host, now.nodename)))
		report_warning("hostname: \"%.64s\" is not set without a new uts namespace", host);
	if (domain && !(keep && str_eq(domain, now.domainname)))
		report_warning("domainname: \"%.64s\" is not set without a new uts namespace",
			       domain);
}

int convert_container(struct convert *c, struct error *err)
{
	const struct oci_config *config = c->config;
	int r;

	r = convert_refuse(config->os, err);
	if (r < 0)
		return r;
	convert_names(c);
	c->plan.selinux_mount = str_empty(config->os->mount_label) ? NULL : config->os->mount_label;
	r = convert_sysctls(c, err);
	if (r == 0)
		r = convert_clocks(c, err);
	if (r == 0)
		r = convert_memory_policy(c, err);
	if (r == 0)
		r = convert_personality(c, err);
	return r;
}

/* ---- seccomp ---- */

static int convert_rules(struct convert *c, const struct oci_seccomp *s,
			 struct seccomp_profile_rule **ret, struct error *err)
{
	struct seccomp_profile_rule *rules = convert_alloc(c, s->n_syscalls, sizeof(*rules), err);

	if (!rules)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_syscalls; i++) {
		const struct oci_syscall *call = &s->syscalls[i];
		struct seccomp_profile_arg *args =
			convert_alloc(c, call->n_args, sizeof(*args), err);

		if (!args)
			return -ENOMEM;
		for (size_t j = 0; j < call->n_args; j++)
			args[j] = (struct seccomp_profile_arg){
				.index = (unsigned)call->args[j].index.value,
				.value = call->args[j].value.value,
				.value_two = call->args[j].value_two.value,
				.op = call->args[j].op,
			};
		rules[i] = (struct seccomp_profile_rule){
			.names = call->names,
			.n_names = call->n_names,
			.action = call->action,
			.has_errno = call->errno_ret.set,
			.errno_value = (uint32_t)call->errno_ret.value,
			.args = args,
			.n_args = call->n_args,
		};
	}
	*ret = rules;
	return 0;
}

int convert_seccomp(struct convert *c, struct error *err)
{
	const struct oci_seccomp *s = c->config->os->seccomp;
	struct seccomp_profile profile;
	struct seccomp_profile_rule *rules = NULL;
	int r;

	if (!s)
		return 0;
	r = convert_rules(c, s, &rules, err);
	if (r < 0)
		return r;
	profile = (struct seccomp_profile){
		.default_action = s->default_action,
		.has_default_errno = s->default_errno_ret.set,
		.default_errno = (uint32_t)s->default_errno_ret.value,
		.archs = s->architectures,
		.n_archs = s->n_architectures,
		.flags = s->flags,
		.n_flags = s->n_flags,
		.listener_path = s->listener_path,
		.rules = rules,
		.n_rules = s->n_syscalls,
	};
	r = seccomp_profile_compile(&c->seccomp, &profile, err);
	if (r < 0)
		return error_wrap_field(err, r, "linux.seccomp");
	if (c->seccomp->n_unknown > 0)
		report_debug("linux.seccomp: unknown system calls: %s", c->seccomp->unknown);
	c->plan.seccomp = &c->seccomp->prog;
	c->plan.seccomp_flags = c->seccomp->flags;
	c->plan.seccomp_notify = c->seccomp->notify;
	return 0;
}
