/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/resize.h"

#include <stdlib.h>
#include <string.h>

/* The number behind "name":, up to 65535. */
static bool resize_number(const char *text, const char *name, uint16_t *ret)
{
	const char *at = strstr(text, name);
	unsigned long n;
	char *end;

	if (!at)
		return false;
	at += strlen(name);
	at += strspn(at, " \t\r\n");
	if (*at++ != ':')
		return false;
	at += strspn(at, " \t\r\n");
	if (*at < '0' || *at > '9')
		return false;
	n = strtoul(at, &end, 10);
	if (n > UINT16_MAX || !*end || !strchr(",} \t\r\n", *end))
		return false;
	*ret = (uint16_t)n;
	return true;
}

bool resize_take(struct resize *r, const uint8_t *data, size_t len, size_t *used, uint16_t *width,
		 uint16_t *height)
{
	while (*used < len) {
		char c = (char)data[(*used)++];

		if (c == '{')
			r->len = 0;
		/* A NUL would hide what is behind it; the last byte is the end of the text. */
		if (c == '\0' || r->len + 1 >= sizeof(r->text)) {
			r->len = 0;
			continue;
		}
		r->text[r->len++] = c;
		if (c != '}')
			continue;
		r->text[r->len] = '\0';
		r->len = 0;
		if (r->text[0] == '{' && resize_number(r->text, "\"Width\"", width) &&
		    resize_number(r->text, "\"Height\"", height))
			return true;
	}
	return false;
}
