/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_DIALING_H
#define NACRE_KEEPER_DIALING_H

#include <stddef.h>

#include "api/instance.pb-c.h"

/*
 * Dial of a keeper: connections to ports of its own network, for a parent that cannot make a socket
 * there, since another kernel does. A value. A connection ends with its call.
 */

#define DIALING_MAX 256 /* at once */
#define DIALING_DATA_MAX ((size_t)65536)

struct loop;
struct rpc_call;

struct dialing {
	struct loop *loop;
	size_t n; /* connections */
};

/* Takes the call over. */
void dialing_dial(struct dialing *d, struct rpc_call *call,
		  const Nacre__Instance__V1__DialRequest *request);

#endif
