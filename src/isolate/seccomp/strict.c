/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/seccomp/strict.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"

/*
 * The mode of seccomp with these very calls (SECCOMP_MODE_STRICT) is refused where a filter is in
 * force already, as in a container. The architecture need not be looked at: where a 64-bit process
 * of x86 can make 32-bit calls, these numbers are restart_syscall, exit, umask and fgetxattr.
 */
int strict_enter(struct error *err)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0) < 0)
		return error_set(err, -errno, "close descriptors");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, -errno, "be not dumpable");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, -errno, "set no_new_privs");
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return error_set(err, -errno, "set a seccomp filter");
	return 0;
}

void strict_exit(int status)
{
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
