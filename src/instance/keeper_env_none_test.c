/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/keeper_env.h"

#include "unit.h"

/* Nothing of the caller's environment reaches a keeper of the product. */
static void is_empty(void)
{
	CHECK(setenv("NACRE_SYSIO", "*:1:EIO", 1) == 0);
	CHECK(setenv("NACRE_KEEPER_FAILPOINT", "spawn.clone=crash", 1) == 0);
	CHECK(setenv("ASAN_OPTIONS", "detect_leaks=1", 1) == 0);
	CHECK(!keeper_env()[0]);
}

UNIT_MAIN({ "is empty", is_empty })
