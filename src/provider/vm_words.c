/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"

#define WORDS_LINE_MAX 256
#define WORDS_BETWEEN " | "

/* The length of the control of a terminal that begins at data[0], an ESC. */
static size_t words_escape(const uint8_t *data, size_t len)
{
	size_t n = 2;

	if (len < 2 || data[1] != '[')
		return n < len ? n : len;
	while (n < len && (data[n] < 0x40 || data[n] > 0x7e))
		n++;
	return n < len ? n + 1 : len;
}

/* What can be read of a line; its end where it is long. */
static size_t words_line(const uint8_t *data, size_t len, char ret[WORDS_LINE_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		if (data[i] == 0x1b) {
			i += words_escape(data + i, len - i);
			continue;
		}
		if (n == WORDS_LINE_MAX - 1)
			memmove(ret, ret + 1, --n);
		if (data[i] >= ' ' && data[i] < 0x7f)
			ret[n++] = (char)data[i];
		else if (data[i] == '\t')
			ret[n++] = ' ';
		i++;
	}
	while (n > 0 && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
	return n;
}

/* Puts a line in front of what is there. False: it does not fit. */
static bool words_put(const char *line, size_t n, char *ret, size_t size)
{
	size_t there = strlen(ret), between = there ? strlen(WORDS_BETWEEN) : 0;

	if (n + between + there >= size)
		return false;
	memmove(ret + n + between, ret, there + 1);
	memcpy(ret, line, n);
	memcpy(ret + n, WORDS_BETWEEN, between);
	return true;
}

void vm_words(const uint8_t *console, size_t len, char *ret, size_t size)
{
	char line[WORDS_LINE_MAX];

	ret[0] = '\0';
	while (len > 0) {
		size_t begin = len, n;

		while (begin > 0 && console[begin - 1] != '\n')
			begin--;
		n = words_line(console + begin, len - begin, line);
		len = begin > 0 ? begin - 1 : 0;
		if (n == 0 || words_put(line, n, ret, size))
			continue;
		if (!ret[0] && size > 1)
			(void)str_copy(ret, size, line + n - (size - 1));
		return;
	}
}
