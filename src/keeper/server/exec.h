/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_EXEC_H
#define NACRE_KEEPER_EXEC_H

#include "api/instance.pb-c.h"

/* The call Exec: a program in a container, its output as a stream of messages that goes no faster
 * than they are taken, and its end as the last. What the client sends behind its first message is
 * typed to it. A call that is cancelled kills the program. */

struct keeper;
struct rpc_call;

/* request NULL: the client has sent none. */
void exec_handle(struct keeper *k, struct rpc_call *call,
		 const Nacre__Instance__V1__ExecRequest *request);

/* WriteStdin, of the first program of a container. */
void exec_write_stdin(struct keeper *k, struct rpc_call *call,
		      const Nacre__Instance__V1__WriteStdinRequest *request);

#endif
