/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_ATTACH_H
#define NACRE_KEEPER_ATTACH_H

#include "api/instance.pb-c.h"

/* The call Attach: the first program of a container as keeper_attach() shows it. A call that is
 * cancelled leaves it as it is. */

struct keeper;
struct rpc_call;

/* request NULL: the client has sent none. */
void attach_handle(struct keeper *k, struct rpc_call *call,
		   const Nacre__Instance__V1__AttachRequest *request);

#endif
