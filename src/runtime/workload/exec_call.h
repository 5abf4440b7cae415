/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_EXEC_CALL_H
#define NACRE_RUNTIME_EXEC_CALL_H

#include <protobuf-c/protobuf-c.h>

/*
 * The calls that reach a program in a container: Exec, Attach, Signal, WriteStdin. The first
 * message is checked and translated for the keeper, which answers; everything behind it is passed
 * on as it comes. Members of a table of methods: userdata is the struct workload_service.
 */

struct rpc_call;

void exec_call_exec(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void exec_call_attach(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void exec_call_signal(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);
void exec_call_write_stdin(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

#endif
