/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/user/cap_name.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <strings.h>

#include "base/macros.h"

#define CAP_BIT(number) ((uint64_t)1 << (number))

static const char *const cap_names[] = {
	[CAP_CHOWN] = "CHOWN",
	[CAP_DAC_OVERRIDE] = "DAC_OVERRIDE",
	[CAP_DAC_READ_SEARCH] = "DAC_READ_SEARCH",
	[CAP_FOWNER] = "FOWNER",
	[CAP_FSETID] = "FSETID",
	[CAP_KILL] = "KILL",
	[CAP_SETGID] = "SETGID",
	[CAP_SETUID] = "SETUID",
	[CAP_SETPCAP] = "SETPCAP",
	[CAP_LINUX_IMMUTABLE] = "LINUX_IMMUTABLE",
	[CAP_NET_BIND_SERVICE] = "NET_BIND_SERVICE",
	[CAP_NET_BROADCAST] = "NET_BROADCAST",
	[CAP_NET_ADMIN] = "NET_ADMIN",
	[CAP_NET_RAW] = "NET_RAW",
	[CAP_IPC_LOCK] = "IPC_LOCK",
	[CAP_IPC_OWNER] = "IPC_OWNER",
	[CAP_SYS_MODULE] = "SYS_MODULE",
	[CAP_SYS_RAWIO] = "SYS_RAWIO",
	[CAP_SYS_CHROOT] = "SYS_CHROOT",
	[CAP_SYS_PTRACE] = "SYS_PTRACE",
	[CAP_SYS_PACCT] = "SYS_PACCT",
	[CAP_SYS_ADMIN] = "SYS_ADMIN",
	[CAP_SYS_BOOT] = "SYS_BOOT",
	[CAP_SYS_NICE] = "SYS_NICE",
	[CAP_SYS_RESOURCE] = "SYS_RESOURCE",
	[CAP_SYS_TIME] = "SYS_TIME",
	[CAP_SYS_TTY_CONFIG] = "SYS_TTY_CONFIG",
	[CAP_MKNOD] = "MKNOD",
	[CAP_LEASE] = "LEASE",
	[CAP_AUDIT_WRITE] = "AUDIT_WRITE",
	[CAP_AUDIT_CONTROL] = "AUDIT_CONTROL",
	[CAP_SETFCAP] = "SETFCAP",
	[CAP_MAC_OVERRIDE] = "MAC_OVERRIDE",
	[CAP_MAC_ADMIN] = "MAC_ADMIN",
	[CAP_SYSLOG] = "SYSLOG",
	[CAP_WAKE_ALARM] = "WAKE_ALARM",
	[CAP_BLOCK_SUSPEND] = "BLOCK_SUSPEND",
	[CAP_AUDIT_READ] = "AUDIT_READ",
	[CAP_PERFMON] = "PERFMON",
	[CAP_BPF] = "BPF",
	[CAP_CHECKPOINT_RESTORE] = "CHECKPOINT_RESTORE",
};

const uint64_t cap_baseline =
	CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FSETID) | CAP_BIT(CAP_FOWNER) |
	CAP_BIT(CAP_MKNOD) | CAP_BIT(CAP_NET_RAW) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_SETUID) |
	CAP_BIT(CAP_SETFCAP) | CAP_BIT(CAP_SETPCAP) | CAP_BIT(CAP_NET_BIND_SERVICE) |
	CAP_BIT(CAP_SYS_CHROOT) | CAP_BIT(CAP_KILL) | CAP_BIT(CAP_AUDIT_WRITE);

int cap_number(const char *name)
{
	if (strncasecmp(name, "CAP_", 4) == 0)
		name += 4;
	for (size_t i = 0; i < ARRAY_SIZE(cap_names); i++)
		if (cap_names[i] && strcasecmp(name, cap_names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

const char *cap_name(unsigned number)
{
	return number < ARRAY_SIZE(cap_names) ? cap_names[number] : NULL;
}
