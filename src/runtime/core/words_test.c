/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/words.h"

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

/* The words joined by '|', or the text of the error. */
static char *split(const char *line)
{
	_cleanup_strv_ char **words = NULL;
	struct error err = ERROR_INIT;
	struct buf b = BUF_INIT;

	if (words_split(line, &words, &err) < 0) {
		CHECK_INT(err.kind, ERROR_INVALID);
		return strdup(err.text);
	}
	for (size_t i = 0; words && words[i]; i++)
		CHECK_INT(buf_addf(&b, "%s%s", i ? "|" : "", words[i]), 0);
	return buf_take_str(&b);
}

static void splits(void)
{
	static const struct {
		const char *line, *words;
	} rows[] = {
		{ "", "" },
		{ "  \t ", "" },
		{ "echo", "echo" },
		{ "echo  hello\tworld ", "echo|hello|world" },
		{ "echo 'a b' \"c d\"", "echo|a b|c d" },
		{ "echo ''", "echo|" },
		{ "a'b'\"c\"d", "abcd" },
		{ "a\\ b", "a b" },
		{ "'a\\b'", "a\\b" },
		{ "\"a\\\"b\"", "a\"b" },
		{ "$HOME *", "$HOME|*" },
		{ "echo 'open", "a ' is not closed" },
		{ "echo \"open", "a \" is not closed" },
		{ "echo \\", "it ends in a single '\\'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_str_ char *got = split(rows[i].line);

		CHECK_STR(got, rows[i].words);
	}
}

UNIT_MAIN({ "splits", splits })
