/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/base64.h"

#include <string.h>

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
	const char *at = c ? strchr(base64_digits, c) : NULL;

	return at ? (int)(at - base64_digits) : -1;
}

bool base64_decode_lines(const char *text, uint8_t *to, size_t *ret_len)
{
	size_t n = strlen(text), out = 0;
	unsigned bits = 0, n_bits = 0;

	while (n > 0 && strchr("=\r\n \t", text[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++) {
		int digit = base64_digit(text[i]);

		if (strchr("\r\n \t", text[i]))
			continue;
		if (digit < 0)
			return false;
		bits = (bits << 6 | (unsigned)digit) & 0xffffff;
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		to[out++] = (uint8_t)(bits >> n_bits & 0xff);
	}
	*ret_len = out;
	return true;
}

char *base64_decode(struct arena *a, const char *text)
{
	char *to = arena_alloc(a, strlen(text) + 1);
	size_t len;

	if (!to || strpbrk(text, "\r\n \t") || !base64_decode_lines(text, (uint8_t *)to, &len) ||
	    memchr(to, '\0', len))
		return NULL;
	to[len] = '\0';
	return to;
}

char *base64_encode(struct arena *a, const uint8_t *data, size_t len)
{
	char *to = arena_alloc(a, (len + 2) / 3 * 4 + 1), *at = to;

	for (size_t i = 0; to && i < len; i += 3) {
		size_t n = MIN(len - i, (size_t)3);
		unsigned bits = (unsigned)data[i] << 16;

		bits |= n > 1 ? (unsigned)data[i + 1] << 8 : 0;
		bits |= n > 2 ? data[i + 2] : 0;
		*at++ = base64_digits[bits >> 18];
		*at++ = base64_digits[bits >> 12 & 63];
		*at++ = '=';
		*at++ = '=';
		if (n > 1)
			at[-2] = base64_digits[bits >> 6 & 63];
		if (n > 2)
			at[-1] = base64_digits[bits & 63];
	}
	if (to)
		*at = '\0';
	return to;
}
