/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan.h"

#include <limits.h>

#include "base/macros.h"
#include "base/str.h"
#include "unit.h"

static void make_container(struct isolate_plan *p)
{
	static char name[] = "true";
	static char *const argv[] = { name, NULL };

	isolate_plan_init(p);
	p->argv = argv;
	p->env = argv + 1;
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		p->ns[i] = ISOLATE_NEW;
	p->root = ISOLATE_ROOT_CONTAINER;
	p->root_fd = 9;
}

static void good_plans(void)
{
	static char long_name[65];
	struct isolate_plan p;

	make_container(&p);
	CHECK_INT(isolate_plan_check(&p, NULL), 0);
	p.root_read_only = true;
	p.shm_fd = 4;
	p.bring_up_loopback = true;
	memset(long_name, 'a', 64);
	p.hostname = long_name;
	p.n_groups = ISOLATE_GROUPS_MAX;
	p.uid = INT32_MAX;
	p.cwd = "/x";
	p.oom_score_adj = -1000;
	p.n_keep_fds = ISOLATE_KEEP_FDS_MAX;
	CHECK_INT(isolate_plan_check(&p, NULL), 0);

	make_container(&p);
	p.root = ISOLATE_ROOT_KEEPER;
	p.root_fd = -1;
	p.exec_fd = 5;
	CHECK_INT(isolate_plan_check(&p, NULL), 0);

	make_container(&p);
	p.root = ISOLATE_ROOT_KEEP;
	p.root_fd = -1;
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++) {
		p.ns[i] = ISOLATE_JOIN;
		p.ns_fd[i] = 20 + i;
	}
	CHECK_INT(isolate_plan_check(&p, NULL), 0);
}

#define BREAKS(name, statement)                                                                    \
	static void break_##name(struct isolate_plan *p)                                           \
	{                                                                                          \
		statement;                                                                         \
	}

BREAKS(join_without_fd, p->ns[ISOLATE_NS_NET] = ISOLATE_JOIN)
BREAKS(fd_without_join, p->ns_fd[ISOLATE_NS_NET] = 3)
BREAKS(mode, p->ns[ISOLATE_NS_IPC] = (enum isolate_ns_mode)7)
BREAKS(loopback, p->bring_up_loopback = true; p->ns[ISOLATE_NS_NET] = ISOLATE_KEEP)
BREAKS(hostname_kept, p->hostname = "a"; p->ns[ISOLATE_NS_UTS] = ISOLATE_KEEP)
BREAKS(hostname_empty, p->hostname = "")
BREAKS(hostname_control, p->hostname = "a\nb")
BREAKS(hostname_long,
       p->hostname = "01234567890123456789012345678901234567890123456789012345678901234")
BREAKS(root_mount, p->ns[ISOLATE_NS_MOUNT] = ISOLATE_KEEP)
BREAKS(root_pid, p->ns[ISOLATE_NS_PID] = ISOLATE_KEEP)
BREAKS(root_fd, p->root_fd = -1)
BREAKS(root_fd_unused, p->root = ISOLATE_ROOT_KEEPER)
BREAKS(read_only, p->root = ISOLATE_ROOT_KEEP; p->root_fd = -1; p->root_read_only = true)
BREAKS(pts, p->root = ISOLATE_ROOT_CONTAINER; p->root_fd = 3; p->pts_fd = 3)
BREAKS(terminal, p->terminal = true; p->new_session = true)
BREAKS(shm, p->root = ISOLATE_ROOT_KEEPER; p->root_fd = -1; p->shm_fd = 3)
BREAKS(argv, p->argv = p->env)
BREAKS(argv_null, p->argv = NULL)
BREAKS(env, p->env = NULL)
BREAKS(cwd, p->cwd = "relative")
BREAKS(uid, p->uid = (uid_t)INT32_MAX + 1)
BREAKS(uid_none, p->uid = UINT32_MAX)
BREAKS(gid, p->gid = UINT32_MAX)
BREAKS(groups, p->n_groups = ISOLATE_GROUPS_MAX + 1)
BREAKS(group, p->n_groups = 1; p->groups[0] = UINT32_MAX)
BREAKS(seccomp, static const struct sock_fprog none; p->seccomp = &none)
BREAKS(oom, p->oom_score_adj = -1001)
BREAKS(oom_high, p->oom_score_adj = 1001)
BREAKS(death_signal, p->death_signal = 65)
BREAKS(keep_fds, p->n_keep_fds = ISOLATE_KEEP_FDS_MAX + 1)
BREAKS(keep_fd, p->n_keep_fds = 1; p->keep_fds[0] = -1)

static const struct {
	const char *member;
	void (*break_it)(struct isolate_plan *p);
} bad_plans[] = {
	{ "ns_fd", break_join_without_fd },
	{ "ns_fd", break_fd_without_join },
	{ "ns", break_mode },
	{ "bring_up_loopback", break_loopback },
	{ "hostname", break_hostname_kept },
	{ "hostname", break_hostname_empty },
	{ "hostname", break_hostname_control },
	{ "hostname", break_hostname_long },
	{ "root", break_root_mount },
	{ "root", break_root_pid },
	{ "root_fd", break_root_fd },
	{ "root_fd", break_root_fd_unused },
	{ "root_read_only", break_read_only },
	{ "pts_fd", break_pts },
	{ "terminal", break_terminal },
	{ "shm_fd", break_shm },
	{ "argv", break_argv },
	{ "argv", break_argv_null },
	{ "env", break_env },
	{ "cwd", break_cwd },
	{ "uid", break_uid },
	{ "uid", break_uid_none },
	{ "gid", break_gid },
	{ "groups", break_groups },
	{ "groups", break_group },
	{ "seccomp", break_seccomp },
	{ "oom_score_adj", break_oom },
	{ "oom_score_adj", break_oom_high },
	{ "death_signal", break_death_signal },
	{ "keep_fds", break_keep_fds },
	{ "keep_fds", break_keep_fd },
};

static void wrong_plans(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_plans); i++) {
		struct error err = ERROR_INIT;
		struct isolate_plan p;
		char want[64];

		make_container(&p);
		bad_plans[i].break_it(&p);
		CHECK(isolate_plan_check(&p, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		(void)str_printf(want, sizeof(want), "%s: ", bad_plans[i].member);
		CHECK(str_has_prefix(err.text, want));
		if (!str_has_prefix(err.text, want))
			printf("# plan %zu: %s\n", i, err.text);
	}
}

UNIT_MAIN({ "accepts what makes sense", good_plans },
	  { "refuses what does not, by the name of the member", wrong_plans })
