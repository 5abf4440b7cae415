/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_SANDBOX_H
#define NACRE_FETCH_SANDBOX_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * The walls that the helper puts around itself before it looks at a byte of what strangers wrote.
 * The core has put it into new mount, net (but for a job with a network), pid, ipc and uts
 * namespaces already (but see sandbox_enter_apart()); here follow, in
 * this order: an empty read-only root, limits, Landlock for the one directory that may be written,
 * no capability but those named, and a seccomp filter.
 */

enum sandbox_job {
	SANDBOX_READ,   /* parses documents, writes files: no capability beyond reading */
	SANDBOX_UNPACK, /* makes files with owners, modes and links */
	SANDBOX_EXPORT, /* reads the blobs of a directory, writes into a pipe */
	/*
	 * Speaks to registries, and writes documents. It stays in the machine's network namespace,
	 * as nobody, with no capability; its root has copies of /etc/resolv.conf, hosts and
	 * nsswitch.conf, so that names can be looked up. To begin with it needs CAP_SYS_ADMIN,
	 * SETPCAP, SETUID, SETGID, DAC_READ_SEARCH and CHOWN: the directory, where there is one,
	 * becomes its own.
	 */
	SANDBOX_NETWORK,
	SANDBOX_JOB_COUNT
};

/* write_fd: the directory, or -1 where none may be written. read_fd: of SANDBOX_NETWORK nothing.
 * max_file: bytes of the longest file that may be written. */
int sandbox_enter(enum sandbox_job job, int write_fd, int read_fd, uint64_t max_file,
		  struct error *err);
/*
 * The same, where the core has no mount namespace made for this process: its root is the empty one
 * of the mount namespace ns_fd, which is closed. To begin with it needs CAP_SYS_CHROOT too.
 */
int sandbox_enter_apart(enum sandbox_job job, int ns_fd, int write_fd, int read_fd,
			uint64_t max_file, struct error *err);

#endif
