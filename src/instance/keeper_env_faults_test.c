/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/keeper_env.h"

#include "base/text/str.h"
#include "unit.h"

#define LONG_VALUE 2000

static void begin(void)
{
	CHECK(clearenv() == 0);
	CHECK(setenv("SECRET", "x", 1) == 0);
	CHECK(!keeper_env()[0]);
}

static void put(const char *name, const char *value)
{
	CHECK(setenv(name, value, 1) == 0);
}

static void expect(const char *name, const char *value)
{
	const char *found = strv_env_get(keeper_env(), name);

	if (value)
		CHECK_STR(found, value);
	else
		CHECK(!found);
}

static void passes_on(void)
{
	begin();
	put("NACRE_SYSIO", "write:1:EIO");
	put("NACRE_FAILPOINT", "spawn.clone=crash");
	put("ASAN_OPTIONS", "detect_leaks=1");
	put("UBSAN_OPTIONS", "");
	expect("NACRE_SYSIO", "write:1:EIO");
	expect("NACRE_FAILPOINT", "spawn.clone=crash");
	expect("ASAN_OPTIONS", "detect_leaks=1");
	expect("UBSAN_OPTIONS", "");
	expect("LSAN_OPTIONS", NULL);
	expect("SECRET", NULL);
	CHECK_INT(strv_len(keeper_env()), 4);
}

static void of_keepers_alone(void)
{
	begin();
	put("NACRE_FAILPOINT", "store.write=crash");
	put("NACRE_KEEPER_FAILPOINT", "");
	put("NACRE_KEEPER_SYSIO", "write:1:EIO");
	expect("NACRE_FAILPOINT", "");
	expect("NACRE_SYSIO", "write:1:EIO");
	/* For keepers of keepers. */
	expect("NACRE_KEEPER_FAILPOINT", "");
	expect("NACRE_KEEPER_SYSIO", "write:1:EIO");
}

/* Half a plan would be another plan. */
static void never_cuts(void)
{
	char value[LONG_VALUE + 1];

	begin();
	memset(value, 'a', LONG_VALUE);
	value[LONG_VALUE] = '\0';
	put("NACRE_SYSIO", value);
	put("LSAN_OPTIONS", "x");
	expect("NACRE_SYSIO", NULL);
	expect("LSAN_OPTIONS", "x");
}

UNIT_MAIN({ "passes on what steers the hooks, and nothing else", passes_on },
	  { "faults of keepers alone", of_keepers_alone }, { "never cuts a value", never_cuts })
