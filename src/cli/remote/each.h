/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_EACH_H
#define NACRE_CLI_EACH_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

struct args;
struct cli;

/*
 * One call for each operand, over one connection: *slot of the request is the operand. A failure is
 * reported, in the order of the operands, and does not keep the others from being asked; returns
 * the exit status.
 *
 * together: all at the same time, except that an operand that is named again waits for everything
 * before it. Otherwise one after the other.
 */
struct each_call {
	const char *method;
	const ProtobufCMessage *request;
	char **slot;
	const ProtobufCMessageDescriptor *answer;
	bool together;
	bool missing_is_fine; /* operands that do not exist are skipped */
};

int each_operand(const struct cli *cli, const struct args *args, const struct each_call *call);

#endif
