/* SPDX-License-Identifier: Apache-2.0 */
#include "bare_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/macros.h"
#include "isolate/plan/plan.h"

#define WHOLE_PLAIN (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static const struct {
	const char *fs, *target, *options;
	unsigned long flags;
} whole_mounts[] = {
	{ "proc", "proc", NULL, WHOLE_PLAIN },
	{ "tmpfs", "dev", "mode=0755,size=64k,nr_inodes=1024", MS_NOSUID | MS_NOEXEC },
	{ "devpts", "dev/pts", "newinstance,ptmxmode=0666,mode=0620,gid=5", MS_NOSUID | MS_NOEXEC },
	{ "tmpfs", "dev/shm", "mode=1777,size=64m", WHOLE_PLAIN },
	{ "mqueue", "dev/mqueue", NULL, WHOLE_PLAIN },
	{ "sysfs", "sys", NULL, WHOLE_PLAIN | MS_RDONLY },
	{ "cgroup2", "sys/fs/cgroup", NULL, WHOLE_PLAIN | MS_RDONLY },
};

static const struct {
	const char *name;
	unsigned major, minor;
} whole_nodes[] = {
	{ "dev/null", 1, 3 },   { "dev/zero", 1, 5 },    { "dev/full", 1, 7 },
	{ "dev/random", 1, 8 }, { "dev/urandom", 1, 9 }, { "dev/tty", 5, 0 },
};

static const char *const whole_dirs[] = { "dev/shm", "dev/pts", "dev/mqueue" };

static const char *const whole_links[][2] = {
	{ "/proc/self/fd", "dev/fd" },       { "/proc/self/fd/0", "dev/stdin" },
	{ "/proc/self/fd/1", "dev/stdout" }, { "/proc/self/fd/2", "dev/stderr" },
	{ "pts/ptmx", "dev/ptmx" },
};

/* What is hidden, and what is made read-only; a kernel need not have each. */
static const char *const whole_masked_files[] = { "proc/interrupts",  "proc/kcore",
						  "proc/keys",        "proc/latency_stats",
						  "proc/sched_debug", "proc/timer_list",
						  "proc/timer_stats" };
static const char *const whole_masked_dirs[] = { "proc/acpi", "proc/asound", "proc/scsi",
						 "sys/devices/virtual/powercap", "sys/firmware" };
static const char *const whole_read_only[] = { "proc/bus", "proc/fs", "proc/irq", "proc/sys",
					       "proc/sysrq-trigger" };

static bool whole_make_dev(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(whole_nodes); i++)
		if (mknod(whole_nodes[i].name, S_IFCHR | 0666,
			  makedev(whole_nodes[i].major, whole_nodes[i].minor)) < 0)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(whole_dirs); i++)
		if (mkdir(whole_dirs[i], 0755) < 0)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(whole_links); i++)
		if (symlink(whole_links[i][0], whole_links[i][1]) < 0)
			return false;
	return true;
}

static bool whole_mask(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(whole_masked_files); i++)
		if (mount("dev/null", whole_masked_files[i], NULL, MS_BIND, NULL) < 0 &&
		    errno != ENOENT)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(whole_masked_dirs); i++)
		if (mount("tmpfs", whole_masked_dirs[i], "tmpfs", MS_RDONLY | WHOLE_PLAIN,
			  "mode=0555,size=4k,nr_inodes=2") < 0 &&
		    errno != ENOENT)
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(whole_read_only); i++) {
		const char *name = whole_read_only[i];

		if (mount(name, name, NULL, MS_BIND, NULL) < 0) {
			if (errno != ENOENT)
				return false;
			continue;
		}
		if (mount(NULL, name, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | WHOLE_PLAIN, NULL) <
		    0)
			return false;
	}
	return true;
}

const char *bare_whole_mounts(const char *root)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0 || close(fd) < 0)
		return "bring up lo";
	if (sethostname("bare", 4) < 0 || setsid() < 0)
		return "name the namespace, begin a session";
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
	(void)umask(0);
	if (chdir(root) < 0)
		return root;
	for (size_t i = 0; i < ARRAY_SIZE(whole_mounts); i++) {
		if (mount(whole_mounts[i].fs, whole_mounts[i].target, whole_mounts[i].fs,
			  whole_mounts[i].flags, whole_mounts[i].options) < 0)
			return whole_mounts[i].target;
		if (i == 1 && !whole_make_dev())
			return "fill /dev";
	}
	return whole_mask() ? NULL : "hide what is hidden";
}

static bool whole_limits(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit now;

	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (getrlimit((__rlimit_resource_t)i, &now) < 0)
			return false;
	if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_NOFILE, &now) < 0)
		return false;
	now.rlim_cur = 1024;
	return setrlimit(RLIMIT_NOFILE, &now) == 0;
}

static bool whole_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	uint64_t keep = isolate_caps_default;
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)keep, .permitted = (uint32_t)keep },
		{ .effective = (uint32_t)(keep >> 32), .permitted = (uint32_t)(keep >> 32) },
	};

	for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(keep & (uint64_t)1 << cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 &&
		    errno != EINVAL)
			return false;
	return setgroups(0, NULL) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 &&
	       syscall(SYS_capset, &head, data) == 0;
}

const char *bare_whole_privilege(void)
{
	if (!whole_limits())
		return "set the limits";
	if (!whole_caps())
		return "drop the capabilities";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
		    isolate_seccomp_default(isolate_caps_default)) < 0)
		return "set the filter";
	return NULL;
}
