/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/document/jsonread.h"

/* An agent that has half of somebody else's line drops it when it sees this byte, and says it in
 * front of its answer. */
#define AGENT_FLUSH "\xff"

static void agent_take_refusal(struct agent_answer *ret, const struct json_value *error)
{
	const struct json_value *text = json_member(error, "desc");

	ret->kind = AGENT_REFUSAL;
	if (text && text->kind == JSON_STRING)
		(void)str_printf(ret->words, sizeof(ret->words), "%.*s", AGENT_WORDS_SIZE - 1,
				 text->text);
	for (char *c = ret->words; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

int agent_read(struct agent_answer *ret, const uint8_t *line, size_t len, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(AGENT_COST_MAX);
	struct json_value *top;
	const struct json_value *v;
	int r;

	if (len > AGENT_LINE_MAX)
		return error_refuse(err, ERROR_INVALID, "the agent's line is too long");
	if (len > 0 && line[0] == 0xff) {
		line++;
		len--;
	}
	r = json_parse(&top, &arena, line, len, err);
	if (r < 0)
		return r;
	if (top->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "the agent's line is no object");
	*ret = (struct agent_answer){ .kind = AGENT_OTHER };
	v = json_member(top, "error");
	if (v && v->kind == JSON_OBJECT) {
		agent_take_refusal(ret, v);
		return 0;
	}
	v = json_member(top, "return");
	if (v && v->kind == JSON_NUMBER && parse_u64(v->text, 0, UINT64_MAX, &ret->number) == 0)
		ret->kind = AGENT_NUMBER;
	return 0;
}

size_t agent_sync(char ret[AGENT_LINE_MAX], uint64_t number)
{
	return (size_t)snprintf(ret, AGENT_LINE_MAX,
				AGENT_FLUSH "{\"execute\":\"guest-sync-delimited\",\"arguments\":"
					    "{\"id\":%" PRIu64 "}}\n",
				number);
}

size_t agent_shutdown(char ret[AGENT_LINE_MAX])
{
	return (size_t)snprintf(ret, AGENT_LINE_MAX,
				"{\"execute\":\"guest-shutdown\",\"arguments\":"
				"{\"mode\":\"powerdown\"}}\n");
}
