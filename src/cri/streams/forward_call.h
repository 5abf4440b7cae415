/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_FORWARD_CALL_H
#define NACRE_CRI_FORWARD_CALL_H

#include <protobuf-c/protobuf-c.h>

/*
 * PortForward: a URL of the streaming server (stream/server.h), where a client connects to ports
 * of a sandbox, to 127.0.0.1 in its network or else to ::1. A member of a table of methods:
 * userdata is the struct cri_runtime_service.
 */

struct rpc_call;

void cri_port_forward(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
