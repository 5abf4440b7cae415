/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_EXECUTABLE_H
#define NACRE_RUNTIME_EXECUTABLE_H

#include "api/runtime.pb-c.h"
#include "runtime/services.h"

/*
 * RunExecutable: starts the process, feeds it, waits for its end, reads the beginning of its two
 * streams back from its log, and removes the record unless it shall be kept. A client that goes
 * away, or a deadline that passes, kills it. (A daemon that is killed does not: then the record
 * stays until it is removed.)
 */
void executable_run(struct rpc_call *call, const Aurae__Runtime__V0__RunExecutableRequest *request,
		    struct runtime_service *service);

#endif
