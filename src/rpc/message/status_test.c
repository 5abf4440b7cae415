/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/status.h"

#include <errno.h>

#include "unit.h"

static void each_kind_has_its_code(void)
{
	static const struct {
		enum error_kind kind;
		enum rpc_code code;
		const char *name;
	} table[] = {
		{ ERROR_FAULT, RPC_INTERNAL, "INTERNAL" },
		{ ERROR_INVALID, RPC_INVALID_ARGUMENT, "INVALID_ARGUMENT" },
		{ ERROR_PRECONDITION, RPC_FAILED_PRECONDITION, "FAILED_PRECONDITION" },
		{ ERROR_NOT_FOUND, RPC_NOT_FOUND, "NOT_FOUND" },
		{ ERROR_EXISTS, RPC_ALREADY_EXISTS, "ALREADY_EXISTS" },
		{ ERROR_UNAVAILABLE, RPC_UNAVAILABLE, "UNAVAILABLE" },
		{ ERROR_EXHAUSTED, RPC_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED" },
		{ ERROR_UNSUPPORTED, RPC_UNIMPLEMENTED, "UNIMPLEMENTED" },
		{ ERROR_DENIED, RPC_PERMISSION_DENIED, "PERMISSION_DENIED" },
		{ ERROR_CANCELLED, RPC_CANCELLED, "CANCELLED" },
		{ ERROR_DEADLINE, RPC_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED" },
		{ ERROR_ABORTED, RPC_ABORTED, "ABORTED" },
		{ ERROR_RANGE, RPC_OUT_OF_RANGE, "OUT_OF_RANGE" },
		{ ERROR_UNAUTHENTICATED, RPC_UNAUTHENTICATED, "UNAUTHENTICATED" },
		{ ERROR_UNKNOWN, RPC_UNKNOWN, "UNKNOWN" },
	};
	struct error err, back;

	CHECK_INT(ARRAY_SIZE(table), ERROR_KIND_COUNT);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		err = (struct error)ERROR_INIT;
		back = (struct error)ERROR_INIT;
		CHECK(error_refuse(&err, table[i].kind, "why") < 0);
		CHECK_INT(rpc_code_of(&err), table[i].code);
		CHECK_STR(rpc_code_name(table[i].code), table[i].name);
		/* There and back again: what one hop refuses, the next one tells alike. */
		CHECK_INT(rpc_error_of(&back, table[i].code, "why"), err.code);
		CHECK_INT(back.kind, err.kind);
		CHECK_STR(back.text, "why");
	}
}

static void a_fault_tells_exhaustion(void)
{
	static const int exhausted[] = { ENOMEM, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOBUFS };
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(exhausted); i++) {
		CHECK(error_set(&err, -exhausted[i], "try") < 0);
		CHECK_INT(rpc_code_of(&err), RPC_RESOURCE_EXHAUSTED);
	}
	CHECK(error_set(&err, -ENOENT, "mount") < 0);
	CHECK_INT(rpc_code_of(&err), RPC_INTERNAL);
}

static void no_error_is_ok(void)
{
	struct error err = ERROR_INIT;

	CHECK_INT(rpc_code_of(NULL), RPC_OK);
	CHECK_INT(rpc_code_of(&err), RPC_OK);
	CHECK_INT(rpc_error_of(&err, RPC_OK, "x"), 0);
	CHECK_INT(err.code, 0);
}

static void strange_codes_are_faults(void)
{
	struct error err = ERROR_INIT;

	CHECK(rpc_error_of(&err, (enum rpc_code)77, NULL) < 0);
	CHECK_INT(err.kind, ERROR_FAULT);
	CHECK_STR(err.text, "UNKNOWN");
	CHECK(rpc_error_of(&err, RPC_DATA_LOSS, "") < 0);
	CHECK_STR(err.text, "DATA_LOSS");
	CHECK_INT(rpc_code_of(&err), RPC_INTERNAL);
}

UNIT_MAIN({ "each kind has its code", each_kind_has_its_code },
	  { "a fault tells exhaustion", a_fault_tells_exhaustion },
	  { "no error is OK", no_error_is_ok },
	  { "strange codes are faults", strange_codes_are_faults })
