/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/keeper_env.h"

#include <stdlib.h>

#include "base/macros.h"
#include "base/text/str.h"

#define KEEPER_ENV_VALUE_MAX 1024

/* A value for keepers comes first where there is one. It goes on itself, for keepers of keepers. */
static const struct {
	const char *name, *instead;
} keeper_env_names[] = {
	{ "NACRE_SYSIO", "NACRE_KEEPER_SYSIO" },
	{ "NACRE_FAILPOINT", "NACRE_KEEPER_FAILPOINT" },
	{ "NACRE_KEEPER_SYSIO", NULL },
	{ "NACRE_KEEPER_FAILPOINT", NULL },
	{ "NACRE_CLOCK_SWING", NULL },
	{ "ASAN_OPTIONS", NULL },
	{ "UBSAN_OPTIONS", NULL },
	{ "LSAN_OPTIONS", NULL },
	{ "TSAN_OPTIONS", NULL },
	{ "ASAN_SYMBOLIZER_PATH", NULL },
};

static const char *keeper_env_value(size_t i)
{
	const char *value =
		keeper_env_names[i].instead ? getenv(keeper_env_names[i].instead) : NULL;

	return value ?: getenv(keeper_env_names[i].name);
}

char *const *keeper_env(void)
{
	static char text[ARRAY_SIZE(keeper_env_names)][KEEPER_ENV_VALUE_MAX];
	static char *env[ARRAY_SIZE(keeper_env_names) + 1];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keeper_env_names); i++) {
		const char *value = keeper_env_value(i);

		if (!value || str_printf(text[n], sizeof(text[n]), "%s=%s",
					 keeper_env_names[i].name, value) < 0)
			continue;
		env[n] = text[n];
		n++;
	}
	env[n] = NULL;
	return env;
}
