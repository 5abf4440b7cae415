/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

static int read_line(struct agent_answer *a, const char *line)
{
	return agent_read(a, (const uint8_t *)line, strlen(line), NULL);
}

static void takes_answers(void)
{
	struct agent_answer a;

	if (read_line(&a, "\xff{\"return\": 4711}") == -ENOMEM)
		return;
	CHECK_INT(a.kind, AGENT_NUMBER);
	CHECK(a.number == 4711);
	CHECK_INT(read_line(&a, "{\"return\": {}}"), 0);
	CHECK_INT(a.kind, AGENT_OTHER);
	CHECK_INT(read_line(&a, "{\"return\": -1}"), 0);
	CHECK_INT(a.kind, AGENT_OTHER);
	CHECK_INT(
		read_line(
			&a,
			"{\"error\": {\"class\": \"GenericError\", \"desc\": \"not\\u0007 so\"}}"),
		0);
	CHECK_INT(a.kind, AGENT_REFUSAL);
	CHECK_STR(a.words, "not? so");
	CHECK_INT(read_line(&a, "{\"error\": {\"desc\": 1}}"), 0);
	CHECK_STR(a.words, "");
}

static void refuses_what_is_none(void)
{
	static const char *const lines[] = {
		"", "\xff", "[]", "1", "{", "{\"return\": 1}}", "{\"return\": 1, \"return\": 2}"
	};
	_cleanup_str_ char *longest = malloc(AGENT_LINE_MAX + 2);
	struct agent_answer a;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		CHECK(read_line(&a, lines[i]) < 0);
	if (!longest)
		return;
	memset(longest, ' ', AGENT_LINE_MAX + 1);
	longest[AGENT_LINE_MAX + 1] = '\0';
	CHECK(read_line(&a, longest) < 0);
}

static void asks(void)
{
	char line[AGENT_LINE_MAX];

	CHECK_INT(agent_sync(line, 7), strlen(line));
	CHECK_STR(line, "\xff{\"execute\":\"guest-sync-delimited\",\"arguments\":{\"id\":7}}\n");
	CHECK_INT(agent_shutdown(line), strlen(line));
	CHECK_STR(line,
		  "{\"execute\":\"guest-shutdown\",\"arguments\":{\"mode\":\"powerdown\"}}\n");
}

UNIT_MAIN({ "takes answers", takes_answers }, { "refuses what is none", refuses_what_is_none },
	  { "asks", asks })
