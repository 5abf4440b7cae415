/* SPDX-License-Identifier: Apache-2.0 */

/* What an agent in somebody's guest says. */

#include <string.h>

#include "fuzz.h"
#include "wire/message/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_answer a;

	if (agent_read(&a, data, size, NULL) < 0)
		return 0;
	fuzz_need(a.kind <= AGENT_OTHER);
	if (a.kind == AGENT_REFUSAL)
		for (const char *c = a.words; *c; c++)
			fuzz_need(*c >= ' ' && *c <= '~');
	return 0;
}
