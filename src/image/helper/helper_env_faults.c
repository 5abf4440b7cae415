/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/helper_env.h"

#include <stdlib.h>

#include "base/text/str.h"

char **helper_env(void)
{
	const char *faults = getenv("NACRE_FETCH_SYSIO");
	_cleanup_strv_ char **env = strv_copy(NULL);
	_cleanup_str_ char *text = faults ? str_format("NACRE_SYSIO=%s", faults) : NULL;

	if (!env || (faults && (!text || strv_add(&env, text) < 0)))
		return NULL;
	return TAKE_PTR(env);
}
