/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

#define FRAME_TIMEOUT_DIGITS 8
#define FRAME_TIMEOUT_MAX 99999999U

static const struct frame_unit {
	char letter;
	nsec_t length;
} frame_units[] = {
	{ 'n', 1 },
	{ 'u', NSEC_PER_USEC },
	{ 'm', NSEC_PER_MSEC },
	{ 'S', NSEC_PER_SEC },
	{ 'M', 60 * NSEC_PER_SEC },
	{ 'H', 3600 * NSEC_PER_SEC },
};

void frame_prefix_write(uint8_t to[FRAME_PREFIX], size_t len, bool compressed)
{
	to[0] = compressed;
	for (unsigned i = 0; i < 4; i++)
		to[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

bool frame_prefix_read(const uint8_t from[FRAME_PREFIX], size_t *ret_len, bool *ret_compressed)
{
	*ret_len = (size_t)from[1] << 24 | (size_t)from[2] << 16 | (size_t)from[3] << 8 | from[4];
	*ret_compressed = from[0] == 1;
	return from[0] <= 1;
}

bool frame_content_type(const char *value)
{
	static const char *const types[] = { "application/grpc+proto", "application/grpc" };
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		n = strlen(types[i]);
		if (strncmp(value, types[i], n) == 0 && (value[n] == '\0' || value[n] == ';'))
			return true;
	}
	return false;
}

bool frame_list_has(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (;;) {
		list += strspn(list, ", ");
		if (!*list)
			return false;
		if (strcspn(list, ", ") == n && strncmp(list, name, n) == 0)
			return true;
		list += strcspn(list, ", ");
	}
}

int frame_timeout_parse(const char *value, nsec_t *ret)
{
	nsec_t n = 0;
	size_t digits;

	for (digits = 0; value[digits] >= '0' && value[digits] <= '9'; digits++) {
		if (digits == FRAME_TIMEOUT_DIGITS)
			return -EINVAL;
		n = n * 10 + (nsec_t)(value[digits] - '0');
	}
	if (digits == 0 || value[digits] == '\0' || value[digits + 1] != '\0')
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(frame_units); i++) {
		if (frame_units[i].letter != value[digits])
			continue;
		if (__builtin_mul_overflow(n, frame_units[i].length, ret))
			*ret = NSEC_NEVER;
		return 0;
	}
	return -EINVAL;
}

void frame_timeout_format(char to[FRAME_TIMEOUT_SIZE], nsec_t timeout)
{
	const struct frame_unit *u = frame_units;
	nsec_t n = timeout;

	while (n > FRAME_TIMEOUT_MAX && u < frame_units + ARRAY_SIZE(frame_units) - 1) {
		u++;
		n = timeout / u->length + (timeout % u->length ? 1 : 0);
	}
	(void)snprintf(to, FRAME_TIMEOUT_SIZE, "%u%c", (unsigned)MIN(n, (nsec_t)FRAME_TIMEOUT_MAX),
		       u->letter);
}

void frame_message_encode(char *to, size_t size, const char *message)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (; *message; message++) {
		unsigned char c = (unsigned char)*message;
		bool plain = c >= 0x20 && c <= 0x7e && c != '%';

		if (n + (plain ? 1 : 3) >= size)
			break;
		if (plain) {
			to[n++] = (char)c;
			continue;
		}
		to[n++] = '%';
		to[n++] = digits[c >> 4];
		to[n++] = digits[c & 15];
	}
	to[n] = '\0';
}

static int frame_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

void frame_message_decode(char *to, size_t size, const char *value)
{
	size_t n = 0;

	while (*value && n + 1 < size) {
		int high = value[0] == '%' ? frame_hex(value[1]) : -1;
		int low = high >= 0 ? frame_hex(value[2]) : -1;

		/* An escaped NUL would cut the text. */
		if (low >= 0 && (high || low)) {
			to[n++] = (char)(high << 4 | low);
			value += 3;
		} else {
			to[n++] = *value++;
		}
	}
	to[n] = '\0';
}
