/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CHECK_CALL_H
#define NACRE_RUNTIME_CHECK_CALL_H

struct check_call;
struct node_service;
struct rpc_call;

/* NodeService.Check: compares the records with keepers and kernel until nothing differs, or the
 * same differs a few times in a row. At most CHECK_CALLS_MAX at once (ERROR_EXHAUSTED). Ends the
 * call. */
#define CHECK_CALLS_MAX 4
#define CHECK_FINDINGS_MAX 1000
void check_call_start(struct rpc_call *call, struct node_service *service);
/* At the end of the daemon, when the pool is gone: frees what did not come to an end. */
void check_calls_free(struct node_service *service);

#endif
