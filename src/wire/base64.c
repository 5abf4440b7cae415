/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/base64.h"

#include <string.h>

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

char *base64_decode(struct arena *a, const char *text)
{
	size_t n = strlen(text), out = 0;
	char *to = arena_alloc(a, n + 1);
	unsigned bits = 0, n_bits = 0;

	while (n > 0 && text[n - 1] == '=')
		n--;
	for (size_t i = 0; to && i < n; i++) {
		int digit = base64_digit(text[i]);

		if (digit < 0)
			return NULL;
		bits = (bits << 6 | (unsigned)digit) & 0xffffff;
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		to[out] = (char)(bits >> n_bits & 0xff);
		if (!to[out++])
			return NULL;
	}
	if (to)
		to[out] = '\0';
	return to;
}
