/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/plan.h"

#include <limits.h>
#include <sys/mount.h>

#include "base/macros.h"
#include "base/text/str.h"
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

static void make_tree(struct isolate_plan *p)
{
	static const struct isolate_mount mounts[] = {
		{ .target = "/proc", .fs = "proc", .source_fd = -1, .idmap_fd = -1 },
		{ .target = "/x", .source_fd = 5, .recursive = true, .idmap_fd = 6 },
		{ .target = "/t", .fs = "tmpfs", .copy_up = true, .source_fd = -1, .idmap_fd = -1 },
	};
	static const struct isolate_id_map map = { 0, 100000, 65536 };
	static const struct isolate_device device = { "/dev/x", 'c', 1, 3, 0666, 0, 0, -1 };

	make_container(p);
	p->root = ISOLATE_ROOT_TREE;
	p->mounts = mounts;
	p->n_mounts = ARRAY_SIZE(mounts);
	p->devices = &device;
	p->n_devices = 1;
	p->ns[ISOLATE_NS_USER] = ISOLATE_NEW;
	p->uid_map = p->gid_map = &map;
	p->n_uid_map = p->n_gid_map = 1;
	p->uid = 65535;
}

static void good_trees(void)
{
	static const struct isolate_sysctl sysctls[] = {
		{ "net.ipv4.conf.eth0/1.forwarding", "1" },
		{ "net/ipv4/conf/eth0.1/forwarding", "1" },
		{ "kernel.msgmax", "1 2\t3" },
		{ "user/max_user_namespaces", "7" },
	};
	struct isolate_plan p;

	make_tree(&p);
	CHECK_INT(isolate_plan_check(&p, NULL), 0);
	p.sysctls = sysctls;
	p.n_sysctls = ARRAY_SIZE(sysctls);
	p.ns[ISOLATE_NS_TIME] = ISOLATE_NEW;
	p.boottime = (struct isolate_time_offset){ .sec = -5, .nsec = 999999999, .set = true };
	p.domainname = "";
	p.umask = 0777;
	p.io_priority = 3 << 13 | 7;
	p.personality = 0x40000;
	p.ns[ISOLATE_NS_PID] = ISOLATE_KEEP;
	CHECK_INT(isolate_plan_check(&p, NULL), 0);
}

static void good_roots_elsewhere(void)
{
	struct isolate_plan p;

	make_tree(&p);
	p.ns[ISOLATE_NS_USER] = ISOLATE_KEEP;
	p.n_uid_map = p.n_gid_map = 0;
	p.ns[ISOLATE_NS_MOUNT] = ISOLATE_KEEP;
	CHECK_INT(isolate_plan_check(&p, NULL), 0);
	p.root = ISOLATE_ROOT_OTHER;
	p.n_mounts = p.n_devices = 0;
	CHECK_INT(isolate_plan_check(&p, NULL), 0);
}

static const struct isolate_mount later_mount = ISOLATE_MOUNT_INIT;

#define BREAKS(name, statement)                                                                    \
	static void break_##name(struct isolate_plan *p)                                           \
	{                                                                                          \
		statement;                                                                         \
	}

BREAKS(join_without_fd, p->ns[ISOLATE_NS_NET] = ISOLATE_JOIN)
BREAKS(fd_without_join, p->ns_fd[ISOLATE_NS_NET] = 3)
BREAKS(mode, p->ns[ISOLATE_NS_IPC] = (enum isolate_ns_mode)7)
BREAKS(new_proc, p->new_proc = true)
BREAKS(loopback, p->bring_up_loopback = true; p->ns[ISOLATE_NS_NET] = ISOLATE_KEEP)
BREAKS(hostname_kept, p->hostname = "a"; p->ns[ISOLATE_NS_UTS] = ISOLATE_KEEP)
BREAKS(hostname_empty, p->hostname = "")
BREAKS(hostname_control, p->hostname = "a\nb")
BREAKS(hostname_long,
       p->hostname = "01234567890123456789012345678901234567890123456789012345678901234")
BREAKS(root_mount, p->ns[ISOLATE_NS_MOUNT] = ISOLATE_KEEP)
BREAKS(masks_with_prepared, p->own_masks = true; p->prepared_ns_fd = 3)
BREAKS(sys_with_prepared, p->writable_sys = true; p->prepared_ns_fd = 3)
BREAKS(groups_with_prepared, p->writable_groups = true; p->prepared_ns_fd = 3)
BREAKS(root_fd, p->root_fd = -1)
BREAKS(root_fd_unused, p->root = ISOLATE_ROOT_KEEPER)
BREAKS(root_fd_and_later, p->root_later = true)
BREAKS(root_later, p->root = ISOLATE_ROOT_KEEPER; p->root_fd = -1; p->root_later = true)
BREAKS(root_later_mounts, p->root_fd = -1; p->root_later = true; p->mounts = &later_mount;
       p->n_mounts = 1)
BREAKS(read_only, p->root = ISOLATE_ROOT_KEEP; p->root_fd = -1; p->root_read_only = true)
BREAKS(prepared_ns_with_shm, p->prepared_ns_fd = 3; p->shm_fd = 4)
BREAKS(prepared_ns, p->root = ISOLATE_ROOT_KEEPER; p->root_fd = -1; p->prepared_ns_fd = 3)
BREAKS(pts, p->root = ISOLATE_ROOT_CONTAINER; p->root_fd = 3; p->pts_fd = 3)
BREAKS(terminal, p->terminal = true; p->new_session = true)
BREAKS(shm, p->root = ISOLATE_ROOT_KEEPER; p->root_fd = -1; p->shm_fd = 3)
BREAKS(rest_with_root, p->argv = p->env = NULL; p->rest_later = true)
BREAKS(rest_with_argv, p->root_fd = -1; p->root_later = p->rest_later = true; p->env = NULL)
BREAKS(rest_with_stdio, p->root_fd = -1; p->root_later = p->rest_later = true;
       p->argv = p->env = NULL; p->stdio[1] = 1)
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

#define MOUNT(...)                                                                                 \
	static struct isolate_mount m = ISOLATE_MOUNT_INIT;                                        \
	m.target = "/a";                                                                           \
	__VA_ARGS__;                                                                               \
	p->mounts = &m;                                                                            \
	p->n_mounts = 1
#define SYSCTL(...)                                                                                \
	static const struct isolate_sysctl one = { __VA_ARGS__ };                                  \
	p->sysctls = &one;                                                                         \
	p->n_sysctls = 1
#define MAP(...)                                                                                   \
	static const struct isolate_id_map map = { __VA_ARGS__ };                                  \
	p->uid_map = &map
#define DEVICE(...)                                                                                \
	static const struct isolate_device device = { __VA_ARGS__ };                               \
	p->devices = &device
#define RLIMIT(...)                                                                                \
	static const struct isolate_rlimit limits[] = { __VA_ARGS__ };                             \
	p->rlimits = limits;                                                                       \
	p->n_rlimits = ARRAY_SIZE(limits)
#define CAPS(...)                                                                                  \
	static const struct isolate_cap_sets sets = { __VA_ARGS__ };                               \
	p->cap_sets = &sets

static char relative[] = "a", slash[] = "//", absolute[] = "/a";
static char *const relative_paths[] = { relative, NULL };
static char *const root_paths[] = { slash, NULL };
static char *many_paths[ISOLATE_PATHS_MAX + 2];

BREAKS(tree_lists, p->root = ISOLATE_ROOT_KEEP; p->root_fd = -1)
BREAKS(tree_place, p->root_place = "relative")
BREAKS(tree_mount_ns, p->ns[ISOLATE_NS_MOUNT] = ISOLATE_KEEP)
BREAKS(tree_unbindable, MOUNT(m.fs = "tmpfs"; m.propagation = MS_UNBINDABLE);
       p->ns[ISOLATE_NS_MOUNT] = ISOLATE_KEEP; p->ns[ISOLATE_NS_USER] = ISOLATE_KEEP;
       p->n_uid_map = p->n_gid_map = 0)
BREAKS(other_new, p->root = ISOLATE_ROOT_OTHER; p->n_mounts = p->n_devices = 0)
BREAKS(container_userns, p->root = ISOLATE_ROOT_CONTAINER)
BREAKS(mount_relative, MOUNT(m.fs = "tmpfs"; m.target = "a"))
BREAKS(mount_root, MOUNT(m.fs = "tmpfs"; m.target = "//"))
BREAKS(mount_nothing, MOUNT(m.fs = NULL))
BREAKS(mount_both, MOUNT(m.fs = "tmpfs"; m.source_fd = 3))
BREAKS(mount_idmap, MOUNT(m.fs = "tmpfs"; m.idmap_fd = 3))
BREAKS(mount_copy_up, MOUNT(m.fs = "proc"; m.copy_up = true))
BREAKS(mount_attr, MOUNT(m.fs = "proc"; m.attr_set = 1ULL << 40))
BREAKS(mount_atime, MOUNT(m.fs = "proc"; m.attr_clear = 0x10))
BREAKS(mount_propagation, MOUNT(m.fs = "proc"; m.propagation = 1UL << 20 | 1UL << 19))
BREAKS(mount_cgroup, MOUNT(m.fs = "cgroup"); p->ns[ISOLATE_NS_CGROUP] = ISOLATE_KEEP)
BREAKS(mounts_many, p->n_mounts = ISOLATE_MOUNTS_MAX + 1)
BREAKS(devices_many, p->n_devices = ISOLATE_DEVICES_MAX + 1)
BREAKS(device_type, DEVICE("/dev/x", 'x', 1, 3, 0666, 0, 0, -1))
BREAKS(device_path, DEVICE("/dev/x/", 'c', 1, 3, 0666, 0, 0, -1))
BREAKS(masked, p->masked_paths = relative_paths)
BREAKS(readonly, p->readonly_paths = root_paths)
BREAKS(paths_many, for (size_t i = 0; i <= ISOLATE_PATHS_MAX; i++) many_paths[i] = absolute;
       p->masked_paths = many_paths)
BREAKS(root_propagation, p->root_propagation = 1)
BREAKS(map_missing, p->n_uid_map = 0)
BREAKS(map_many, p->n_uid_map = ISOLATE_ID_MAPS_MAX + 1)
BREAKS(map_empty, MAP(0, 1, 0))
BREAKS(map_past, MAP(0, UINT32_MAX, 2))
BREAKS(map_kept, p->ns[ISOLATE_NS_USER] = ISOLATE_KEEP; p->uid = 0)
BREAKS(uid_unmapped, p->uid = 65536)
BREAKS(gid_unmapped, p->gid = 65536)
BREAKS(deny_groups, p->deny_setgroups = true; p->n_groups = 1)
BREAKS(clock_kept, p->boottime.set = true)
BREAKS(clock_nsec, p->monotonic.nsec = 1000000000)
BREAKS(domainname, p->domainname = "a\nb")
BREAKS(sysctl_host, SYSCTL("kernel.core_pattern", "x"))
BREAKS(sysctl_dots, SYSCTL("net/../kernel/core_pattern", "x"))
BREAKS(sysctl_slash, SYSCTL("/net/ipv4/ip_forward", "1"))
BREAKS(sysctl_lines, SYSCTL("net.ipv4.ip_forward", "1\n2"))
BREAKS(sysctl_plus, SYSCTL("kernel.shm_rmid_forced=1+kernel.core_pattern", "x"))
BREAKS(sysctl_kept, SYSCTL("net.ipv4.ip_forward", "1"); p->ns[ISOLATE_NS_NET] = ISOLATE_KEEP)
BREAKS(sysctls_many, SYSCTL("kernel.msgmax", "1"); p->n_sysctls = ISOLATE_SYSCTLS_MAX + 1)
BREAKS(caps_effective, CAPS(.effective = 1))
BREAKS(caps_ambient, CAPS(.permitted = 1, .ambient = 1))
BREAKS(seccomp_flags, p->seccomp_flags = 1)
BREAKS(seccomp_notify, p->seccomp_notify = true)
BREAKS(apparmor, p->apparmor = "")
BREAKS(selinux, p->selinux = "a\n")
BREAKS(rlimit_soft, RLIMIT({ 1, 2, 1 }))
BREAKS(rlimit_twice, RLIMIT({ 1, 1, 1 }, { 1, 2, 2 }))
BREAKS(rlimit_unknown, RLIMIT({ 16, 1, 1 }))
BREAKS(umask, p->umask = 01000)
BREAKS(sched, static const struct isolate_sched s = { .nice = 20 }; p->sched = &s)
BREAKS(io_class, p->io_priority = 4 << 13)
BREAKS(io_level, p->io_priority = 2 << 13 | 8)
BREAKS(personality, p->personality = 1UL << 32)

static const struct {
	const char *member;
	void (*break_it)(struct isolate_plan *p);
} bad_trees[] = {
	{ "root", break_tree_lists },
	{ "root_place", break_tree_place },
	{ "root", break_tree_mount_ns },
	{ "root", break_container_userns },
	{ "root", break_other_new },
	{ "mounts", break_tree_unbindable },
	{ "mounts", break_mount_relative },
	{ "mounts", break_mount_root },
	{ "mounts", break_mount_nothing },
	{ "mounts", break_mount_both },
	{ "mounts", break_mount_idmap },
	{ "mounts", break_mount_copy_up },
	{ "mounts", break_mount_attr },
	{ "mounts", break_mount_atime },
	{ "mounts", break_mount_propagation },
	{ "mounts", break_mount_cgroup },
	{ "mounts", break_mounts_many },
	{ "devices", break_devices_many },
	{ "devices", break_device_type },
	{ "devices", break_device_path },
	{ "masked_paths", break_masked },
	{ "masked_paths", break_paths_many },
	{ "readonly_paths", break_readonly },
	{ "root_propagation", break_root_propagation },
	{ "uid_map", break_map_missing },
	{ "uid_map", break_map_many },
	{ "uid_map", break_map_empty },
	{ "uid_map", break_map_past },
	{ "uid_map", break_map_kept },
	{ "uid", break_uid_unmapped },
	{ "gid", break_gid_unmapped },
	{ "deny_setgroups", break_deny_groups },
	{ "monotonic", break_clock_kept },
	{ "monotonic", break_clock_nsec },
	{ "domainname", break_domainname },
	{ "sysctls", break_sysctl_host },
	{ "sysctls", break_sysctl_dots },
	{ "sysctls", break_sysctl_slash },
	{ "sysctls", break_sysctl_lines },
	{ "sysctls", break_sysctl_plus },
	{ "sysctls", break_sysctl_kept },
	{ "sysctls", break_sysctls_many },
	{ "cap_sets", break_caps_effective },
	{ "cap_sets", break_caps_ambient },
	{ "seccomp_flags", break_seccomp_flags },
	{ "seccomp_notify", break_seccomp_notify },
	{ "apparmor", break_apparmor },
	{ "selinux", break_selinux },
	{ "rlimits", break_rlimit_soft },
	{ "rlimits", break_rlimit_twice },
	{ "rlimits", break_rlimit_unknown },
	{ "umask", break_umask },
	{ "sched", break_sched },
	{ "io_priority", break_io_class },
	{ "io_priority", break_io_level },
	{ "personality", break_personality },
};

static const struct {
	const char *member;
	void (*break_it)(struct isolate_plan *p);
} bad_plans[] = {
	{ "ns_fd", break_join_without_fd },
	{ "ns_fd", break_fd_without_join },
	{ "ns", break_mode },
	{ "bring_up_loopback", break_loopback },
	{ "new_proc", break_new_proc },
	{ "hostname", break_hostname_kept },
	{ "hostname", break_hostname_empty },
	{ "hostname", break_hostname_control },
	{ "hostname", break_hostname_long },
	{ "root", break_root_mount },
	{ "kit_ns_fd", break_masks_with_prepared },
	{ "kit_ns_fd", break_sys_with_prepared },
	{ "kit_ns_fd", break_groups_with_prepared },
	{ "root_fd", break_root_fd },
	{ "root_fd", break_root_fd_unused },
	{ "root_fd", break_root_fd_and_later },
	{ "root_later", break_root_later },
	{ "root_later", break_root_later_mounts },
	{ "rest_later", break_rest_with_root },
	{ "rest_later", break_rest_with_argv },
	{ "rest_later", break_rest_with_stdio },
	{ "root_read_only", break_read_only },
	{ "pts_fd", break_pts },
	{ "kit_ns_fd", break_prepared_ns_with_shm },
	{ "kit_ns_fd", break_prepared_ns },
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

static void check_wrong(struct isolate_plan *p, const char *member, size_t i)
{
	struct error err = ERROR_INIT;
	char want[64];

	CHECK(isolate_plan_check(p, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	(void)str_printf(want, sizeof(want), "%s: ", member);
	CHECK(str_has_prefix(err.text, want));
	if (!str_has_prefix(err.text, want))
		printf("# plan %zu (%s): %s\n", i, member, err.text);
}

static void wrong_plans(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_plans); i++) {
		struct isolate_plan p;

		make_container(&p);
		bad_plans[i].break_it(&p);
		check_wrong(&p, bad_plans[i].member, i);
	}
}

static void wrong_trees(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_trees); i++) {
		struct isolate_plan p;

		make_tree(&p);
		bad_trees[i].break_it(&p);
		check_wrong(&p, bad_trees[i].member, i);
	}
}

UNIT_MAIN({ "accepts what makes sense", good_plans }, { "accepts trees", good_trees },
	  { "roots in a namespace of others", good_roots_elsewhere },
	  { "refuses what does not, by the name of the member", wrong_plans },
	  { "refuses wrong trees and the rest, by the name of the member", wrong_trees })
