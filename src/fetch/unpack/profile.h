/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_PROFILE_H
#define NACRE_FETCH_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "isolate/seccomp/seccomp_profile.h"

/*
 * A seccomp profile as a file, JSON in the form of docker, podman and containerd, turned into the
 * kernel's filter: linux.seccomp of the OCI runtime specification, and what docker adds: archMap,
 * rules with one `name`, and rules that are there only with certain capabilities, architectures or
 * kernels (includes, excludes).
 */

#define PROFILE_BYTES_MAX ((size_t)1 << 20) /* of the file */
#define PROFILE_MEMORY_MAX ((size_t)64 << 20)

/* Where the filter will be. */
struct profile_place {
	uint64_t caps; /* of the container, a bit for each number */
	unsigned major, minor;
};

/* Pure. As seccomp_profile_compile(); the text of the error begins with the member of the document.
 * A profile that needs an agent (SCMP_ACT_NOTIFY) is ERROR_UNSUPPORTED. */
int profile_compile(struct seccomp_filter **ret, const void *data, size_t len,
		    const struct profile_place *place, struct error *err) _must_check_;
/* This machine, for a container with these capabilities. */
int profile_find_place(struct profile_place *ret, uint64_t caps, struct error *err);
/* The job: the document is read from from_fd, the filter written to to_fd, and its size answered.
 */
int profile_run(const struct profile_place *place, int from_fd, int to_fd, int sock_fd,
		struct error *err);

#endif
