/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/words.h"

#include <errno.h>

#include "base/memory/buf.h"
#include "base/text/str.h"

/* One word from *at on; *at is left behind it. 0 or a negative errno. */
static int words_next(const char **at, struct buf *word, struct error *err)
{
	const char *p = *at;
	char quote = '\0';
	int r = 0;

	for (; *p && (quote || !strchr(" \t\n", *p)) && r == 0; p++) {
		if (quote && *p == quote) {
			quote = '\0';
		} else if (!quote && (*p == '\'' || *p == '"')) {
			quote = *p;
		} else if (*p == '\\' && quote != '\'') {
			p++;
			if (!*p)
				return error_refuse(err, ERROR_INVALID, "it ends in a single '\\'");
			r = buf_add(word, p, 1);
		} else {
			r = buf_add(word, p, 1);
		}
	}
	if (quote)
		return error_refuse(err, ERROR_INVALID, "a %c is not closed", quote);
	*at = p;
	return r < 0 ? error_set(err, r, "split a command") : 0;
}

int words_split(const char *line, char ***ret, struct error *err)
{
	_cleanup_strv_ char **words = NULL;

	for (;;) {
		_cleanup_(buf_done) struct buf word = BUF_INIT;
		_cleanup_str_ char *text = NULL;
		int r;

		line += strspn(line, " \t\n");
		if (!*line)
			break;
		r = words_next(&line, &word, err);
		if (r < 0)
			return r;
		text = buf_take_str(&word);
		if (!text || strv_add(&words, text) < 0)
			return error_set(err, -ENOMEM, "split a command");
	}
	*ret = TAKE_PTR(words);
	return 0;
}
