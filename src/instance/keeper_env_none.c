/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/keeper_env.h"

#include <stddef.h>

char *const *keeper_env(void)
{
	static char *const none[] = { NULL };

	return none;
}
