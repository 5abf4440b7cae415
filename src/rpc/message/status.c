/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/status.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/macros.h"

#define RPC_CODE_COUNT (RPC_UNAUTHENTICATED + 1)

static const enum rpc_code rpc_codes[] = {
	[ERROR_FAULT] = RPC_INTERNAL,
	[ERROR_INVALID] = RPC_INVALID_ARGUMENT,
	[ERROR_PRECONDITION] = RPC_FAILED_PRECONDITION,
	[ERROR_NOT_FOUND] = RPC_NOT_FOUND,
	[ERROR_EXISTS] = RPC_ALREADY_EXISTS,
	[ERROR_UNAVAILABLE] = RPC_UNAVAILABLE,
	[ERROR_EXHAUSTED] = RPC_RESOURCE_EXHAUSTED,
	[ERROR_UNSUPPORTED] = RPC_UNIMPLEMENTED,
	[ERROR_DENIED] = RPC_PERMISSION_DENIED,
	[ERROR_CANCELLED] = RPC_CANCELLED,
	[ERROR_DEADLINE] = RPC_DEADLINE_EXCEEDED,
	[ERROR_ABORTED] = RPC_ABORTED,
	[ERROR_RANGE] = RPC_OUT_OF_RANGE,
	[ERROR_UNAUTHENTICATED] = RPC_UNAUTHENTICATED,
	[ERROR_UNKNOWN] = RPC_UNKNOWN,
};
_Static_assert(ARRAY_SIZE(rpc_codes) == ERROR_KIND_COUNT, "one status for each kind");

static const struct {
	const char *name;
	enum error_kind kind;
} rpc_statuses[] = {
	[RPC_OK] = { "OK", ERROR_FAULT },
	[RPC_CANCELLED] = { "CANCELLED", ERROR_CANCELLED },
	[RPC_UNKNOWN] = { "UNKNOWN", ERROR_UNKNOWN },
	[RPC_INVALID_ARGUMENT] = { "INVALID_ARGUMENT", ERROR_INVALID },
	[RPC_DEADLINE_EXCEEDED] = { "DEADLINE_EXCEEDED", ERROR_DEADLINE },
	[RPC_NOT_FOUND] = { "NOT_FOUND", ERROR_NOT_FOUND },
	[RPC_ALREADY_EXISTS] = { "ALREADY_EXISTS", ERROR_EXISTS },
	[RPC_PERMISSION_DENIED] = { "PERMISSION_DENIED", ERROR_DENIED },
	[RPC_RESOURCE_EXHAUSTED] = { "RESOURCE_EXHAUSTED", ERROR_EXHAUSTED },
	[RPC_FAILED_PRECONDITION] = { "FAILED_PRECONDITION", ERROR_PRECONDITION },
	[RPC_ABORTED] = { "ABORTED", ERROR_ABORTED },
	[RPC_OUT_OF_RANGE] = { "OUT_OF_RANGE", ERROR_RANGE },
	[RPC_UNIMPLEMENTED] = { "UNIMPLEMENTED", ERROR_UNSUPPORTED },
	[RPC_INTERNAL] = { "INTERNAL", ERROR_FAULT },
	[RPC_UNAVAILABLE] = { "UNAVAILABLE", ERROR_UNAVAILABLE },
	[RPC_DATA_LOSS] = { "DATA_LOSS", ERROR_FAULT },
	[RPC_UNAUTHENTICATED] = { "UNAUTHENTICATED", ERROR_UNAUTHENTICATED },
};
_Static_assert(ARRAY_SIZE(rpc_statuses) == RPC_CODE_COUNT, "one line for each status");

static bool rpc_errno_is_exhaustion(int r)
{
	static const int exhausted[] = { ENOMEM, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOBUFS };

	for (size_t i = 0; i < ARRAY_SIZE(exhausted); i++)
		if (r == -exhausted[i])
			return true;
	return false;
}

enum rpc_code rpc_code_of(const struct error *err)
{
	if (!err || err->code == 0)
		return RPC_OK;
	if (err->kind == ERROR_FAULT && rpc_errno_is_exhaustion(err->code))
		return RPC_RESOURCE_EXHAUSTED;
	if ((unsigned)err->kind >= ERROR_KIND_COUNT)
		return RPC_INTERNAL;
	return rpc_codes[err->kind];
}

int rpc_error_of(struct error *err, enum rpc_code code, const char *message)
{
	enum error_kind kind = ERROR_FAULT;

	if (code == RPC_OK)
		return 0;
	if ((unsigned)code < RPC_CODE_COUNT)
		kind = rpc_statuses[code].kind;
	if (!message || !*message)
		message = rpc_code_name(code);
	return error_refuse(err, kind, "%s", message);
}

const char *rpc_code_name(enum rpc_code code)
{
	return (unsigned)code < RPC_CODE_COUNT ? rpc_statuses[code].name : "UNKNOWN";
}
