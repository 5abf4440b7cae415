/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/plan_rules.h"

#include <limits.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/* The whole check, and the rules of what is neither of namespaces, the tree nor privileges. */

#define PLAN_HOSTNAME_MAX 64 /* of the kernel */
#define PLAN_SIGNAL_MAX 64
#define PLAN_ID_MAX INT32_MAX

static bool plan_ns_is_wrong(const struct isolate_plan *p)
{
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		if (p->ns[i] > ISOLATE_JOIN)
			return true;
	return false;
}

static bool plan_ns_fd_is_wrong(const struct isolate_plan *p)
{
	for (int i = 0; i < ISOLATE_NS_COUNT; i++)
		if ((p->ns[i] == ISOLATE_JOIN) != (p->ns_fd[i] >= 0))
			return true;
	return false;
}

static bool plan_is_new(const struct isolate_plan *p, enum isolate_ns kind)
{
	return p->ns[kind] == ISOLATE_NEW || (p->ns[kind] == ISOLATE_JOIN && p->joins_new);
}

static bool plan_loopback_is_wrong(const struct isolate_plan *p)
{
	return p->bring_up_loopback && !plan_is_new(p, ISOLATE_NS_NET);
}

static bool plan_new_proc_is_wrong(const struct isolate_plan *p)
{
	return p->new_proc &&
	       (p->ns[ISOLATE_NS_MOUNT] != ISOLATE_JOIN || p->root != ISOLATE_ROOT_KEEP ||
		p->ns[ISOLATE_NS_USER] != ISOLATE_KEEP);
}

static bool plan_hostname_is_wrong(const struct isolate_plan *p)
{
	return p->hostname &&
	       (!plan_is_new(p, ISOLATE_NS_UTS) || !*p->hostname ||
		strlen(p->hostname) > PLAN_HOSTNAME_MAX || !str_is_clean(p->hostname));
}

static bool plan_root_is_wrong(const struct isolate_plan *p)
{
	bool is_new = p->ns[ISOLATE_NS_MOUNT] == ISOLATE_NEW;

	switch (p->root) {
	case ISOLATE_ROOT_KEEP:
		return false;
	case ISOLATE_ROOT_TREE:
		return !is_new && p->ns[ISOLATE_NS_USER] == ISOLATE_NEW;
	case ISOLATE_ROOT_OTHER:
		return is_new;
	case ISOLATE_ROOT_CONTAINER:
	case ISOLATE_ROOT_KEEPER:
		return !is_new || p->ns[ISOLATE_NS_USER] != ISOLATE_KEEP;
	default:
		return true;
	}
}

static bool plan_root_fd_is_wrong(const struct isolate_plan *p)
{
	bool none = p->root == ISOLATE_ROOT_KEEP || p->root == ISOLATE_ROOT_KEEPER || p->root_later;

	return none == (p->root_fd >= 0);
}

static bool plan_root_later_is_wrong(const struct isolate_plan *p)
{
	return p->root_later && (p->root != ISOLATE_ROOT_CONTAINER || p->n_mounts > 0 ||
				 p->n_devices > 0 || p->masked_paths || p->readonly_paths);
}

static bool plan_rest_later_is_wrong(const struct isolate_plan *p)
{
	return p->rest_later &&
	       (!p->root_later || p->argv || p->env || p->terminal || p->exec_fd >= 0 ||
		p->stdio[0] >= 0 || p->stdio[1] >= 0 || p->stdio[2] >= 0);
}

static bool plan_read_only_is_wrong(const struct isolate_plan *p)
{
	return p->root_read_only && (p->root == ISOLATE_ROOT_KEEP || p->root == ISOLATE_ROOT_OTHER);
}

static bool plan_shm_is_wrong(const struct isolate_plan *p)
{
	return p->shm_fd >= 0 && p->root != ISOLATE_ROOT_CONTAINER;
}

static bool plan_prepared_ns_is_wrong(const struct isolate_plan *p)
{
	return p->prepared_ns_fd >= 0 && (p->root != ISOLATE_ROOT_CONTAINER || p->no_pivot ||
					  p->own_masks || p->writable_sys || p->writable_groups ||
					  (p->shm_fd >= 0 && !isolate_plan_has_dev(p)));
}

static bool plan_user_fd_is_wrong(const struct isolate_plan *p)
{
	return (p->user_fd >= 0) != isolate_ids_are_set(&p->ids) ||
	       (p->user_fd >= 0 &&
		(p->root != ISOLATE_ROOT_CONTAINER || p->rest_later || p->no_pivot));
}

static bool plan_ids_are_wrong(const struct isolate_plan *p)
{
	/* The last id of all is none. */
	return isolate_ids_are_set(&p->ids) &&
	       (p->ids.count > UINT32_MAX - p->ids.uid || p->ids.count > UINT32_MAX - p->ids.gid ||
		p->uid >= p->ids.count || p->gid >= p->ids.count);
}

static bool plan_terminal_is_wrong(const struct isolate_plan *p)
{
	return p->terminal && (!p->new_session || p->stdio[0] < 0);
}

static bool plan_argv_is_wrong(const struct isolate_plan *p)
{
	if (p->rest_later)
		return false;
	return !p->argv || !p->argv[0] || (p->exec_fd < 0 && !*p->argv[0]);
}

static bool plan_env_is_wrong(const struct isolate_plan *p)
{
	return !p->env && !p->rest_later;
}

static bool plan_cwd_is_wrong(const struct isolate_plan *p)
{
	return !str_empty(p->cwd) && (p->cwd[0] != '/' || strlen(p->cwd) >= PATH_MAX);
}

static bool plan_uid_is_wrong(const struct isolate_plan *p)
{
	return p->uid > PLAN_ID_MAX;
}

static bool plan_gid_is_wrong(const struct isolate_plan *p)
{
	return p->gid > PLAN_ID_MAX;
}

static bool plan_groups_are_wrong(const struct isolate_plan *p)
{
	if (p->n_groups > ISOLATE_GROUPS_MAX)
		return true;
	for (size_t i = 0; i < p->n_groups; i++)
		if (p->groups[i] > PLAN_ID_MAX)
			return true;
	return false;
}

static bool plan_seccomp_is_wrong(const struct isolate_plan *p)
{
	return p->seccomp && (p->seccomp->len == 0 || !p->seccomp->filter);
}

static bool plan_oom_is_wrong(const struct isolate_plan *p)
{
	return p->oom_score_adj < -1000 || p->oom_score_adj > 1000;
}

static bool plan_death_signal_is_wrong(const struct isolate_plan *p)
{
	return p->death_signal < 0 || p->death_signal > PLAN_SIGNAL_MAX;
}

static bool plan_keep_fds_are_wrong(const struct isolate_plan *p)
{
	if (p->n_keep_fds > ISOLATE_KEEP_FDS_MAX)
		return true;
	for (size_t i = 0; i < p->n_keep_fds; i++)
		if (p->keep_fds[i] < 0)
			return true;
	return false;
}

static const struct plan_rule plan_rules[] = {
	{ "ns", plan_ns_is_wrong, "no such mode" },
	{ "ns_fd", plan_ns_fd_is_wrong, "a joined namespace has a descriptor, another has none" },
	{ "bring_up_loopback", plan_loopback_is_wrong, "only in a new net namespace" },
	{ "new_proc", plan_new_proc_is_wrong,
	  "only with the tree of a mount namespace that is joined" },
	{ "hostname", plan_hostname_is_wrong,
	  "only in a new uts namespace, 1 to 64 bytes without control characters" },
	{ "root", plan_root_is_wrong,
	  "that of a container or keeper needs a new mount namespace and no user "
	  "namespace; a tree with a new user namespace, a new mount namespace; that of another "
	  "process, none" },
	{ "root_fd", plan_root_fd_is_wrong,
	  "for the root of a container, a tree or another process, and only there" },
	{ "root_later", plan_root_later_is_wrong,
	  "only for the root of a container that nothing is mounted into" },
	{ "rest_later", plan_rest_later_is_wrong,
	  "only where the root comes later, without a program and streams" },
	{ "root_read_only", plan_read_only_is_wrong, "only for a root of its own" },
	{ "shm_fd", plan_shm_is_wrong, "only for the root of a container" },
	{ "kit_ns_fd", plan_prepared_ns_is_wrong,
	  "only for the root of a container with the usual masks, and with shm_fd only where /dev "
	  "is "
	  "its own" },
	{ "user_fd", plan_user_fd_is_wrong,
	  "only for the root of a container that is not told its program later, with ids" },
	{ "ids", plan_ids_are_wrong, "past 4294967294, or without the user or group" },
	{ "terminal", plan_terminal_is_wrong, "needs a session of its own and stdio[0]" },
	{ "argv", plan_argv_is_wrong, "the name of a program is missing" },
	{ "env", plan_env_is_wrong, "missing" },
	{ "cwd", plan_cwd_is_wrong, "not an absolute path of at most 4095 bytes" },
	{ "uid", plan_uid_is_wrong, "above 2147483647" },
	{ "gid", plan_gid_is_wrong, "above 2147483647" },
	{ "groups", plan_groups_are_wrong, "more than 64, or one above 2147483647" },
	{ "seccomp", plan_seccomp_is_wrong, "an empty filter" },
	{ "oom_score_adj", plan_oom_is_wrong, "not from -1000 to 1000" },
	{ "death_signal", plan_death_signal_is_wrong, "not a signal" },
	{ "keep_fds", plan_keep_fds_are_wrong, "more than 8, or one that is no descriptor" },
	{ NULL, NULL, NULL },
};

static int plan_check_rules(const struct plan_rule *rules, const struct isolate_plan *plan,
			    struct error *err)
{
	for (; rules->member; rules++)
		if (rules->is_wrong(plan))
			return error_refuse(err, ERROR_INVALID, "%s: %s", rules->member,
					    rules->rule);
	return 0;
}

int isolate_plan_check(const struct isolate_plan *plan, struct error *err)
{
	int r = plan_check_rules(plan_rules, plan, err);

	if (r == 0)
		r = plan_check_rules(plan_ns_rules, plan, err);
	if (r == 0)
		r = isolate_sysctls_check(plan->sysctls, plan->n_sysctls, plan->ns, err);
	if (r == 0)
		r = plan_check_rules(plan_tree_rules, plan, err);
	if (r == 0)
		r = plan_check_rules(plan_process_rules, plan, err);
	return r;
}
