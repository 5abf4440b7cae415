/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_RESOURCES_H
#define NACRE_RUNTIME_RESOURCES_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

/* Limits as the API has them, and as the owner of the group takes them
 * (isolate/cgroup/limits_words.h). */

struct arena;
struct rpc_call;

/*
 * The words, in the arena; NULL where nothing is limited. base_fd: the node's group, whose
 * controllers are asked whether they are there; -1: another kernel has the group, and says so
 * itself. field: "containers[0].resources". ERROR_INVALID for
 * what is wrong whatever the host, ERROR_PRECONDITION for what this host cannot enforce; both name
 * the field.
 */
int resources_words(struct arena *a, const Aurae__Runtime__V0__Resources *from, int base_fd,
		    const char *field, char ***ret, struct error *err);

/*
 * For an error whose field is a file of the kernel (isolate/cgroup/limits.h), or
 * "containers[0].FILE": the field of the API that this file is written for is to blame,
 * "containers[0].resources.pids". Any other error stays as it is.
 */
void resources_blame(struct error *err);
/* Fails a call with an error, blamed so. */
void resources_fail(struct rpc_call *call, const struct error *err);

/* Puts what `with` says over what `to` says; the strings of `with` must live as long. */
void resources_merge(Aurae__Runtime__V0__Resources *to, const Aurae__Runtime__V0__Resources *with);

#endif
