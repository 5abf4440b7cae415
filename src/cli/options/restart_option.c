/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/restart_option.h"

#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/table/command.h"

static const char *const restart_words[] = { "no", "on-failure", "always", "unless-stopped" };

static const char *restart_word(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(restart_words); i++)
		if (strlen(restart_words[i]) == n && strncmp(restart_words[i], text, n) == 0)
			return restart_words[i];
	return NULL;
}

int restart_option_read(Aurae__Runtime__V0__RestartPolicy **field,
			Aurae__Runtime__V0__RestartPolicy *room, const struct args *args,
			bool remove, struct error *err)
{
	const char *text = args_value(args, "restart");
	size_t n = text ? strcspn(text, ":") : 0;
	const char *word = text ? restart_word(text, n) : NULL;
	uint32_t max = 0;

	*field = NULL;
	if (!text)
		return 0;
	if (!word ||
	    (text[n] && (!str_eq(word, "on-failure") || parse_u32(text + n + 1, &max) < 0)))
		return error_refuse(
			err, ERROR_INVALID,
			"--restart is no, on-failure[:N], always or unless-stopped, not "
			"\"%.80s\"",
			text);
	if (remove && !str_eq(word, "no"))
		return error_refuse(
			err, ERROR_INVALID,
			"--rm and --restart %s exclude each other: what is removed when "
			"it has ended cannot be started again",
			word);
	aurae__runtime__v0__restart_policy__init(room);
	room->policy = (char *)(uintptr_t)word;
	room->max_retries = max;
	*field = room;
	return 0;
}
