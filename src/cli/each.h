/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_EACH_H
#define NACRE_CLI_EACH_H

#include <protobuf-c/protobuf-c.h>

struct args;
struct cli;

/*
 * One call for each operand, one after the other over one connection: *slot of the request is the
 * operand. What fails is told, and the next one is asked all the same; returns the exit status.
 */
struct each_call {
	const char *method;
	const ProtobufCMessage *request;
	char **slot;
	const ProtobufCMessageDescriptor *answer;
};

int each_operand(const struct cli *cli, const struct args *args, const struct each_call *call);

#endif
