/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_JAIL_H
#define NACRE_VM_JAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"

/*
 * Where a VMM lives, for the day on which its guest breaks into it:
 *
 *   user        one of its own, no groups, no capability, no_new_privs. No user namespace: what
 *               one would add is capabilities in it, and who has none here gets none either
 *   files       a root of its own, read-only, with the program, the libraries that the linker
 *               looks into, and /proc with nothing but its own processes; /dev/kvm where wanted.
 *               Nothing that it could write to
 *   namespaces  pid, mount, ipc, uts, cgroup: new; net: given, or new and empty
 *   calls       the filter of a container without capabilities, and the VMM's own on top
 *   limits      no core, JAIL_FILES descriptors, JAIL_TASKS threads
 *
 * Unless it is fleeting it has no death signal: it lives on without the daemon. In its pid
 * namespace it is the first process, so that abort() in it ends with SIGSEGV (the kernel keeps
 * SIGABRT from such a process).
 */

#define JAIL_FILES 1024
#define JAIL_TASKS 256

struct jail {
	const char *program; /* absolute, on this host */
	char *const *argv;   /* argv[0] is the program */
	const int *fds;      /* 3, 4, ... in there */
	size_t n_fds;
	int words_fd;  /* its error stream */
	int net_ns_fd; /* -1: a new one */
	int cgroup_fd; /* -1: the caller's group */
	uid_t uid;
	gid_t gid;
	bool kvm;
	bool fleeting; /* ends with the thread that starts it */
};

/* The root of what this process sees, to look for programs of the host in (O_PATH). */
int jail_open_host(struct error *err);

/* All stays the caller's. ERROR_PRECONDITION where a program or device is missing. */
int jail_spawn(const struct jail *jail, struct isolate_child *ret, struct error *err);

#endif
