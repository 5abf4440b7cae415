/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_PROFILE_H
#define NACRE_IMAGE_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * A seccomp profile, which a stranger wrote as JSON, turned into a filter by a helper without
 * privilege (nacre-fetch profile). The answer is bounded; what it means is the kernel's to check.
 */

struct image_store;
struct profile_job;

/* insns: struct sock_filter each, len bytes, until it returns; err: what is wrong with the profile,
 * or with the helper. The job is gone then. */
typedef void (*profile_fn)(void *userdata, const void *insns, size_t len, unsigned flags,
			   const struct error *err);

/* json_fd: a file that can be read without waiting, at its beginning; a copy is made. caps: of the
 * container. done is called later and once. */
int profile_job_start(struct profile_job **ret, struct image_store *s, int json_fd, uint64_t caps,
		      profile_fn done, void *userdata, struct error *err);
/* The same of devices by their names (CDI), and the files of their vendors: from_fd is what
 * fetch/unpack/cdi.h takes, and `insns` the bytes of what that answers. */
int profile_devices_start(struct profile_job **ret, struct image_store *s, int from_fd,
			  profile_fn done, void *userdata, struct error *err);
/* Without a word. NULL is fine; returns NULL. */
struct profile_job *profile_job_free(struct profile_job *j);

#endif
