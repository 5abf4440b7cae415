/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_UPDATE_CALL_H
#define NACRE_RUNTIME_UPDATE_CALL_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"

struct pod_container;
struct rpc_call;
struct workload_service;

/* WorkloadService.Update: the limits are written on a thread, since a lower one of memory may wait
 * for the kernel; then the record has them. Ends the call, or an error. */
int update_call_start(struct rpc_call *call, struct workload_service *s,
		      const Nacre__V1__UpdateRequest *request, struct error *err);

/* The same for one container, as another family of the API has it. */
struct update_wish {
	struct arena arena; /* has all that is pointed to, and is taken over in any case */
	Aurae__Runtime__V0__Resources *resources; /* may be NULL beside `more` */
	char *const *more; /* further words of isolate/cgroup/limits_words.h, written last; may be
			      NULL */
	/* Its settings once the limits hold, with what that family keeps; in the arena. NULL
	 * without memory. */
	char *(*keep)(struct arena *a, const char *settings, void *userdata);
	void *userdata;
	void (*blame)(struct error *err); /* brings the field of an error to its message */
	void (*reply)(struct rpc_call *call);
};

/* Errors about `resources` name "resources.MEMBER", those about `more` the file, before `blame`. Of
 * a container that is created the limits are those that it is going to start with.
 * ERROR_PRECONDITION where it neither runs nor is created. */
int update_call_start_container(struct rpc_call *call, struct workload_service *s,
				struct pod_container *pc, const struct update_wish *wish,
				struct error *err);

#endif
