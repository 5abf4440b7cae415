/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/doctor_check.h"
#include "cli/cmd/handlers.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/disk/erofs_file.h"
#include "isolate/disk/quota.h"
#include "isolate/seccomp/confine.h"
#include "vm/probe/probe_record.h"
#include "vm/qemu/qemu_driver.h"

/*
 * Looks at the host, changes nothing. Each check asks the kernel in the way in which the daemon
 * uses it, as far as that leaves no trace.
 */

#define DOCTOR_FILE_MAX (64U << 10)
/* Exit status where something essential lacks. */
#define DOCTOR_MISSING 1

#define _cleanup_buf_ _cleanup_(buf_done)

/* A small file of the kernel as text without its last line feed; NULL where it cannot be read. */
static char *doctor_read(int dir_fd, const char *name)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	char *text;

	if (fd_read_file(dir_fd, name, DOCTOR_FILE_MAX, &b) < 0 || buf_add(&b, "", 1) < 0)
		return NULL;
	text = buf_take_str(&b);
	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

static bool kernel(const struct cli *cli, char **ret_detail)
{
	struct utsname name;
	unsigned long major, minor = 0;
	char *rest;

	if (uname(&name) < 0)
		return false;
	*ret_detail = xformat("%s", name.release);
	major = strtoul(name.release, &rest, 10);
	if (*rest == '.')
		minor = strtoul(rest + 1, NULL, 10);
	return major > 6 || (major == 6 && minor >= 1);
}

static bool cgroup(const struct cli *cli, char **ret_detail)
{
	_cleanup_fd_ int root_fd = -1;
	struct error err = ERROR_INIT;
	_cleanup_str_ char *self = NULL;
	char path[512];
	ssize_t n;

	root_fd = cgroup_open_root(&err);
	if (root_fd < 0) {
		*ret_detail = xstrdup(error_text(&err));
		return false;
	}
	self = xformat("/proc/self/fd/%d", root_fd);
	n = readlink(self, path, sizeof(path));
	*ret_detail = xformat("at %.*s", n > 0 ? (int)n : 1, n > 0 ? path : "?");
	return true;
}

static bool doctor_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == len && memcmp(at, word, len) == 0)
			return true;
		at += n;
	}
	return false;
}

static bool controllers(const struct cli *cli, char **ret_detail)
{
	static const char *const wanted[] = { "cpu", "memory", "pids", "io" };
	_cleanup_fd_ int root_fd = cgroup_open_root(NULL);
	_cleanup_str_ char *there = root_fd < 0 ? NULL : doctor_read(root_fd, "cgroup.controllers");
	char missing[64] = "";
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (!doctor_has_word(there ? there : "", wanted[i]))
			len += (size_t)snprintf(missing + len, sizeof(missing) - len, " %s",
						wanted[i]);
	}
	*ret_detail = len ? xformat("missing:%s", missing) : xstrdup(there);
	return len == 0;
}

/* The flag is looked at before the descriptor: with a wrong one no process is made, and EBADF says
 * that the kernel knows the flag (5.7). */
static bool clone_into_cgroup(const struct cli *cli, char **ret_detail)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .cgroup = INT32_MAX };
	pid_t pid = sysio_clone3(&args);

	if (pid == 0)
		_exit(0);
	*ret_detail = xstrdup(errno == EBADF ? "known" : strerror(errno));
	return pid < 0 && errno == EBADF;
}

static bool overlay(const struct cli *cli, char **ret_detail)
{
	_cleanup_fd_ int fd = sysio_fsopen("overlay", FSOPEN_CLOEXEC);

	*ret_detail = xstrdup(fd >= 0 ? "known" : strerror(errno));
	return fd >= 0;
}

static bool openat2_(const struct cli *cli, char **ret_detail)
{
	_cleanup_fd_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = rootfd_open(root_fd, "proc", O_PATH | O_DIRECTORY, 0);
	int r = fd;

	*ret_detail = xstrdup(r >= 0 ? "works" : strerror(-r));
	return r >= 0;
}

static bool namespaces(const struct cli *cli, char **ret_detail)
{
	static const char *const names[] = { "pid", "mnt", "net", "ipc", "uts", "cgroup" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_str_ char *path = xformat("/proc/self/ns/%s", names[i]);

		if (access(path, F_OK) < 0) {
			*ret_detail = xformat("%s: %s", path, strerror(errno));
			return false;
		}
	}
	*ret_detail = xstrdup("pid mnt net ipc uts cgroup");
	return true;
}

static bool user_namespaces(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *most = doctor_read(AT_FDCWD, "/proc/sys/user/max_user_namespaces");
	uint64_t n = 0;

	if (!most || parse_u64(most, 0, UINT64_MAX, &n) < 0) {
		*ret_detail = xstrdup("the kernel has none");
		return false;
	}
	*ret_detail = xformat("at most %s", most);
	return n > 0;
}

static bool seccomp(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *actions =
		doctor_read(AT_FDCWD, "/proc/sys/kernel/seccomp/actions_avail");

	*ret_detail = xstrdup(actions ? actions : strerror(errno));
	return actions && doctor_has_word(actions, "errno");
}

/* The hexadecimal or decimal number of a line of /proc/PID/status; pid 0 is this process. */
static bool doctor_status(int64_t pid, const char *key, int base, uint64_t *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	_cleanup_str_ char *status = NULL;
	_cleanup_str_ char *path =
		pid ? xformat("/proc/%lld/status", (long long)pid) : xstrdup("/proc/self/status");
	_cleanup_str_ char *start = xformat("\n%s:", key);
	const char *line;

	if (fd_read_file(AT_FDCWD, path, DOCTOR_FILE_MAX, &b) < 0 || buf_add(&b, "", 1) < 0)
		return false;
	status = buf_take_str(&b);
	line = status ? strstr(status, start) : NULL;
	if (!line)
		return false;
	*ret = strtoull(line + strlen(start), NULL, base);
	return true;
}

static bool doctor_has_capability(unsigned capability)
{
	uint64_t set = 0;

	return doctor_status(0, "CapEff", 16, &set) && (set >> capability & 1);
}

static bool privilege(const struct cli *cli, char **ret_detail)
{
	bool is_admin = doctor_has_capability(CAP_SYS_ADMIN);

	*ret_detail = xformat("uid %u, %s CAP_SYS_ADMIN", geteuid(), is_admin ? "with" : "without");
	return geteuid() == 0 && is_admin;
}

static bool sys_resource(const struct cli *cli, char **ret_detail)
{
	bool is_there = doctor_has_capability(CAP_SYS_RESOURCE);

	*ret_detail = xstrdup(is_there ? "held" : "not held");
	return is_there;
}

/* What a trial has shown, where the daemon has made one and it can be read. */
static bool kvm(const struct cli *cli, char **ret_detail)
{
	Nacre__V1__InfoRequest request = NACRE__V1__INFO_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = NULL;
	_cleanup_fd_ int root_fd = -1;
	struct error err = ERROR_INIT;
	struct probe_record record;

	probe_look(&record);
	if (record.verdict == PROBE_UNTRIED)
		info = client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Info", &request.base,
				       &nacre__v1__info_response__descriptor, DOCTOR_TIMEOUT, &err);
	if (info)
		root_fd = open(info->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd >= 0)
		probe_read(&record, root_fd, NULL);
	*ret_detail = xstrdup(record.text);
	return record.verdict == PROBE_WORKS || record.verdict == PROBE_UNTRIED;
}

/*
 * The lowest kernels that are advised for machines flush the branch predictor between a guest and
 * its VMM (VMSCAPE, CVE-2025-40300). Distributions carry that back, so the kernel itself is asked:
 * it has the file since then.
 */
static bool machine_kernel(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *text =
		doctor_read(AT_FDCWD, "/sys/devices/system/cpu/vulnerabilities/vmscape");
	struct utsname name;

	if (uname(&name) < 0)
		return false;
	*ret_detail = xformat("%s; vmscape: %s", name.release, text ? text : "not known to it");
	return text && !str_has_prefix(text, "Vulnerable");
}

static bool qemu(const struct cli *cli, char **ret_detail)
{
	struct error err = ERROR_INIT;
	bool is_there = vm_qemu.check(&err) == 0;

	*ret_detail = xstrdup(is_there ? "installed" : error_text(&err));
	return is_there;
}

static bool mkfs_erofs(const struct cli *cli, char **ret_detail)
{
	static const char *const places[] = { "/usr/bin/mkfs.erofs", "/usr/sbin/mkfs.erofs" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (access(places[i], X_OK) < 0)
			continue;
		*ret_detail = xstrdup(places[i]);
		return true;
	}
	*ret_detail = xstrdup("it is not installed");
	return false;
}

/* The root directory of the daemon, whose file system has a say in some things; without a daemon
 * where there is most likely a disk as well. -1 with *ret_detail. */
static int doctor_open_root(const struct cli *cli, char **ret_name, char **ret_detail)
{
	Nacre__V1__InfoRequest request = NACRE__V1__INFO_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = NULL;
	struct error err = ERROR_INIT;
	int fd;

	info = client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Info", &request.base,
			       &nacre__v1__info_response__descriptor, DOCTOR_TIMEOUT, &err);
	*ret_name = xstrdup(info ? info->root : "/var/tmp");
	fd = open(*ret_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		*ret_detail = xformat("%s: %s", *ret_name, strerror(errno));
	return fd;
}

static bool erofs_files(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *dir = NULL;
	_cleanup_fd_ int dir_fd = doctor_open_root(cli, &dir, ret_detail);
	struct error err = ERROR_INIT;
	bool works;

	if (dir_fd < 0)
		return false;
	works = erofs_file_try(dir_fd, &err) == 0;
	*ret_detail = works ? xformat("works in %s", dir) : xstrdup(error_text(&err));
	return works;
}

static bool project_quotas(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *dir = NULL;
	_cleanup_fd_ int dir_fd = doctor_open_root(cli, &dir, ret_detail);
	bool works;

	if (dir_fd < 0)
		return false;
	works = quota_is_enforced(dir_fd);
	*ret_detail = xformat(works ? "--disk is a quota of a project in %s"
				    : "--disk is a file system in a file: no project quota in %s",
			      dir);
	return works;
}

static bool daemon_(const struct cli *cli, char **ret_detail)
{
	Nacre__V1__InfoRequest request = NACRE__V1__INFO_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = NULL;
	struct error err = ERROR_INIT;

	info = client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Info", &request.base,
			       &nacre__v1__info_response__descriptor, DOCTOR_TIMEOUT, &err);
	if (!info)
		*ret_detail = xstrdup(error_text(&err));
	else if (info->pool)
		*ret_detail = xformat("%s at %s, %" PRIu32 " of %" PRIu32 " machines in its pool",
				      info->version, cli->daemon.socket, info->pool->waiting,
				      info->pool->size);
	else
		*ret_detail = xformat("%s at %s", info->version, cli->daemon.socket);
	return info;
}

/* What a daemon that runs has given up (isolate/seccomp/confine.h), by the kernel's word. */
static bool confinement(const struct cli *cli, char **ret_detail)
{
	Nacre__V1__InfoRequest request = NACRE__V1__INFO_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = NULL;
	struct error err = ERROR_INIT;
	uint64_t mode = 0, caps = 0;

	info = client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Info", &request.base,
			       &nacre__v1__info_response__descriptor, DOCTOR_TIMEOUT, &err);
	if (!info || !doctor_status(info->pid, "Seccomp", 10, &mode) ||
	    !doctor_status(info->pid, "CapPrm", 16, &caps)) {
		*ret_detail = xstrdup("no daemon to look at");
		return false;
	}
	*ret_detail = xformat("%s seccomp filter, %d capabilities%s", mode == 2 ? "a" : "no",
			      __builtin_popcountll(caps),
			      caps & ~confine_caps ? ", some not needed" : "");
	return mode == 2 && !(caps & ~confine_caps);
}

static const struct check checks[] = {
	{ "kernel", true, kernel, "calls that nacre is built on may lack",
	  "run Linux 6.1 or newer" },
	{ "privilege", true, privilege, "the daemon can make neither namespaces nor mounts",
	  "run nacre as root of the host, or of a container that is privileged" },
	{ "cgroup v2", true, cgroup, "no workload can be started",
	  "mount -t cgroup2 cgroup2 /sys/fs/cgroup (systemd: systemd.unified_cgroup_hierarchy=1)" },
	{ "controllers", false, controllers, "a limit that needs a missing controller is refused",
	  "take it from cgroup v1 (boot with cgroup_no_v1=all), or write +NAME into "
	  "cgroup.subtree_control of the group above" },
	{ "CLONE_INTO_CGROUP", true, clone_into_cgroup, "no workload can be started",
	  "run Linux 6.1 or newer; allow clone3 where a seccomp filter denies it" },
	{ "namespaces", true, namespaces, "workloads cannot be kept apart",
	  "run a kernel with CONFIG_NAMESPACES and all of its kinds" },
	{ "overlayfs", true, overlay, "no image can be run",
	  "modprobe overlay, or run a kernel with CONFIG_OVERLAY_FS" },
	{ "openat2", true, openat2_, "names in an image cannot be resolved safely",
	  "run Linux 6.1 or newer; allow openat2 where a seccomp filter denies it" },
	{ "seccomp", true, seccomp, "containers cannot have their filter",
	  "run a kernel with CONFIG_SECCOMP_FILTER" },
	{ "user namespaces", false, user_namespaces, "root in a container stays root of the host",
	  "sysctl user.max_user_namespaces=10000" },
	{ "CAP_SYS_RESOURCE", false, sys_resource,
	  "limits cannot be raised above those that nacre itself has",
	  "give it to nacre where something has taken it away" },
	{ "KVM", false, kvm, "instances are cells, never virtual machines with hardware's help",
	  "turn virtualization on in the firmware, or nesting on in the host of this machine" },
	{ "kernel for machines", false, machine_kernel,
	  "a guest may read memory of its own VMM (CVE-2025-40300)",
	  "run Linux 6.1.152, 6.6.106, 6.12.47 or newer of these series, or 6.17 or newer" },
	{ "QEMU", false, qemu, "no instance can be a virtual machine",
	  "apt-get install qemu-system-x86" },
	{ "mkfs.erofs", false, mkfs_erofs,
	  "no image can be run in a virtual machine, or with images.root: erofs",
	  "apt install erofs-utils" },
	{ "EROFS files", false, erofs_files, "images.root: erofs is refused, auto means overlay",
	  "run Linux 6.15 or newer with CONFIG_EROFS_FS_BACKED_BY_FILE; keep the root directory on "
	  "a disk" },
	{ "project quotas", false, project_quotas,
	  "a limit of a container's files takes its size from the disk at once",
	  "put the root directory on ext4 (mkfs.ext4 -O quota,project -E quotatype=prjquota) or "
	  "XFS, mounted with prjquota, under Linux 5.14 or newer" },
	{ "confinement", false, confinement,
	  "the daemon and the instances below it can ask for more than they need",
	  "start the daemon; where it runs, its log says what the kernel refused" },
	{ "daemon", false, daemon_, "no command but doctor, help and version works",
	  "nacre daemon, or systemctl start nacre" },
};

static const char *doctor_verdict(const struct check *c, bool there)
{
	return there ? "ok" : c->essential ? "MISSING" : "lacks";
}

static void doctor_json(struct json *j, const struct check *c, bool there, const char *detail)
{
	json_put_object(j, NULL);
	json_put_string(j, "check", c->name);
	json_put_bool(j, "ok", there);
	json_put_bool(j, "essential", c->essential);
	json_put_word(j, "detail", there ? detail : NULL);
	json_put_word(j, "cause", there ? NULL : detail);
	json_put_string(j, "consequence", there ? NULL : c->consequence);
	json_put_string(j, "cure", there ? NULL : c->cure);
	json_put_end(j);
}

static void doctor_rows(struct table *t, const struct check *c, bool there, const char *detail)
{
	enum table_color color = there ? TABLE_GREEN : c->essential ? TABLE_RED : TABLE_YELLOW;

	table_add_color(t, color, doctor_verdict(c, there));
	table_add(t, c->name);
	table_add(t, detail ? detail : "");
	if (there)
		return;
	for (size_t i = 0; i < 2; i++) {
		_cleanup_str_ char *line =
			i == 0 ? xformat("so: %s", c->consequence) : xformat("cure: %s", c->cure);

		table_add(t, "");
		table_add(t, "");
		table_add(t, line);
	}
}

/* Whether something essential is missing. */
static bool doctor_look(const struct cli *cli, const struct check *c, struct table *t,
			struct json *j)
{
	_cleanup_str_ char *detail = NULL;
	bool there = c->look(cli, &detail);

	if (cli->json)
		doctor_json(j, c, there, detail);
	else
		doctor_rows(t, c, there, detail);
	return !there && c->essential;
}

struct doctor_part {
	const struct check *list;
	size_t n;
};

int cmd_doctor(const struct cli *cli, const struct args *args)
{
	struct table t = TABLE_INIT_WRAPS(3);
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	const struct doctor_part parts[] = {
		{ checks, ARRAY_SIZE(checks) },
		{ doctor_networks, doctor_n_networks },
		{ doctor_kubernetes, args_flag(args, "kubernetes") ? doctor_n_kubernetes : 0 },
	};
	unsigned n_missing = 0;

	if (target_check_local(&cli->daemon, "doctor", &err) < 0)
		return cli_fail(&err);
	if (cli->json)
		json_put_array(&j, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (size_t k = 0; k < parts[i].n; k++)
			n_missing += doctor_look(cli, &parts[i].list[k], &t, &j);
	if (cli->json)
		json_put_end(&j);
	table_write(&t, stdout, cli->color);
	table_done(&t);
	if (n_missing == 0)
		return 0;
	(void)cli_complain("doctor: %u essential thing%s missing: nacre cannot run workloads here",
			   n_missing, n_missing == 1 ? " is" : "s are");
	return DOCTOR_MISSING;
}
