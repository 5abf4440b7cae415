/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_STREAM_H
#define NACRE_CRI_STREAM_H

#include "base/log/error.h"

/*
 * Lists as streams: pieces of at most CRI_STREAM_ITEMS, the next one when the client has room for
 * it. A client that never reads costs one piece. Between two pieces the list may change: what
 * `send` sends is behind what it has sent before, in an order that does not change, so that each
 * item that is there all the time is told once.
 */

#define CRI_STREAM_ITEMS 64

struct rpc_call;

/* Sends one piece. 1: there may be more; 0: that was all (nothing need have been sent). */
typedef int (*cri_stream_fn)(struct rpc_call *call, void *userdata, struct error *err);

/* Ends the call. userdata lives in its arena. */
void cri_stream_start(struct rpc_call *call, cri_stream_fn send, void *userdata);

#endif
