/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/model.h"

#include <assert.h>

static const char *const instance_words[] = {
	[INSTANCE_SPAWNING] = "spawning", [INSTANCE_READY] = "ready",
	[INSTANCE_STOPPING] = "stopping", [INSTANCE_GONE] = "removed",
	[INSTANCE_FAILED] = "failed",
};

static_assert(ARRAY_SIZE(instance_words) == INSTANCE_STATE_COUNT, "one word for each state");

const char *instance_state_word(enum instance_state state)
{
	return instance_words[state];
}
