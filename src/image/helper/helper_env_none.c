/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/helper_env.h"

#include "base/text/str.h"

char **helper_env(void)
{
	return strv_copy(NULL);
}
