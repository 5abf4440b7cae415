/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/seccomp/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolate/confine_table.h"

#define CAP(name) (UINT64_C(1) << (name))

/* Of Linux 6.3 and 6.6; the headers of Debian 12 are older. */
#define CONFINE_SET_MDWE 65
#define CONFINE_MDWE_REFUSE_EXEC_GAIN 1UL
#define CONFINE_MDWE_NO_INHERIT 2UL

const uint64_t confine_caps =
	/* Files of others: roots, layers, logs, copies; the sandbox of nacre-fetch. */
	CAP(CAP_CHOWN) | CAP(CAP_DAC_OVERRIDE) | CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_FOWNER) |
	CAP(CAP_FSETID) | CAP(CAP_SETFCAP) | CAP(CAP_MKNOD) |
	/* Credentials of workloads, and their end. */
	CAP(CAP_SETUID) | CAP(CAP_SETGID) | CAP(CAP_SETPCAP) | CAP(CAP_KILL) |
	/* Namespaces, mounts, cgroups, devices; a mount namespace that is entered; /proc/PID/ns. */
	CAP(CAP_SYS_ADMIN) | CAP(CAP_SYS_CHROOT) | CAP(CAP_SYS_PTRACE) | CAP(CAP_NET_ADMIN) |
	/* The OOM score, limits, schedulers. */
	CAP(CAP_SYS_RESOURCE) | CAP(CAP_SYS_NICE) |
	/* Only handed on: what a container can be given beside these. */
	CAP(CAP_NET_BIND_SERVICE) | CAP(CAP_NET_RAW) | CAP(CAP_AUDIT_WRITE) | CAP(CAP_IPC_LOCK) |
	CAP(CAP_IPC_OWNER);

void confine_memory(void)
{
	/* The kernel that knows MDWE but not how to keep it from children (6.3 to 6.5) refuses. */
	(void)prctl(CONFINE_SET_MDWE, CONFINE_MDWE_REFUSE_EXEC_GAIN | CONFINE_MDWE_NO_INHERIT, 0, 0,
		    0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static int confine_bounding(struct error *err)
{
	for (unsigned cap = 0; cap < 64; cap++) {
		if (confine_caps & CAP(cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			/* The last one of this kernel was before. */
			if (errno == EINVAL)
				break;
			return error_set(err, -errno, "drop capability %u", cap);
		}
	}
	return 0;
}

static int confine_sets(bool permitted_too, struct error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &head, data) < 0)
		return error_set(err, -errno, "read the own capabilities");
	for (unsigned i = 0; i < ARRAY_SIZE(data); i++) {
		uint32_t keep = (uint32_t)(confine_caps >> 32 * i);

		data[i].effective = data[i].permitted & keep;
		if (permitted_too)
			data[i].permitted &= keep;
		/* The ambient set goes with it. */
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) < 0)
		return error_set(err, -errno, "drop the own capabilities");
	return 0;
}

/* SPEC_ALLOW: without it, kernels before 5.16 slow down every workload below. */
static int confine_calls(struct error *err)
{
	const struct sock_fprog prog = { .len = ARRAY_SIZE(confine_filter),
					 .filter =
						 (struct sock_filter *)(uintptr_t)confine_filter };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
			    SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    &prog) < 0)
		return error_set(err, -errno, "set the own seccomp filter");
	return 0;
}

int confine_daemon(struct error *err)
{
	/* In this order: the last needs CAP_SYS_ADMIN, which stays, and the first CAP_SETPCAP. */
	int bounding = confine_bounding(err);
	int sets = confine_sets(true, bounding < 0 ? NULL : err);
	int calls = confine_calls(bounding < 0 || sets < 0 ? NULL : err);

	return bounding < 0 ? bounding : sets < 0 ? sets : calls;
}

int confine_keeper(bool node, struct error *err)
{
	int r = node ? 0 : confine_bounding(err);

	return r < 0 ? r : confine_sets(!node, err);
}
