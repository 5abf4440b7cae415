/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_STATUS_H
#define NACRE_RPC_STATUS_H

#include "base/log/error.h"

/* gRPC status codes (grpc/doc/statuscodes.md), and their one translation from and to struct error.
 */

enum rpc_code {
	RPC_OK = 0,
	RPC_CANCELLED = 1,
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5,
	RPC_ALREADY_EXISTS = 6,
	RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_FAILED_PRECONDITION = 9,
	RPC_ABORTED = 10,
	RPC_OUT_OF_RANGE = 11,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
	RPC_DATA_LOSS = 15,
	RPC_UNAUTHENTICATED = 16,
};

/*
 * ERROR_FAULT is INTERNAL, except that its errno tells exhaustion: ENOMEM, ENOSPC, EDQUOT, EMFILE,
 * ENFILE, ENOBUFS are RESOURCE_EXHAUSTED. err NULL or without a code is OK.
 */
enum rpc_code rpc_code_of(const struct error *err);

/* The error for a status that a server answered with. Returns its (negative) code; 0 for OK. */
int rpc_error_of(struct error *err, enum rpc_code code, const char *message);

/* "NOT_FOUND" and so on; "UNKNOWN" for a number without a name. */
const char *rpc_code_name(enum rpc_code code);

#endif
