/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/pem.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"

#define PEM_LINE 48 /* bytes */

static void pem_four(char *to, const uint8_t *p, size_t n)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) |
			(n > 2 ? (uint32_t)p[2] : 0);

	to[0] = letters[bits >> 18];
	to[1] = letters[bits >> 12 & 63];
	to[2] = n > 1 ? letters[bits >> 6 & 63] : '=';
	to[3] = n > 2 ? letters[bits & 63] : '=';
}

char *pem_text(const char *label, const uint8_t *data, size_t len)
{
	char *body = xrealloc(NULL, len / 3 * 4 + len / PEM_LINE + 8, 1), *to = body, *text;

	for (size_t i = 0; i < len; i += 3, to += 4) {
		if (i > 0 && i % PEM_LINE == 0)
			*to++ = '\n';
		pem_four(to, data + i, len - i < 3 ? len - i : 3);
	}
	*to = '\0';
	text = xformat("-----BEGIN %s-----\n%s\n-----END %s-----\n", label, body, label);
	free(body);
	return text;
}

/* The length of the sequence at the front, its head included; all of it where it says nothing that
 * fits. */
static size_t pem_der_length(const uint8_t *der, size_t len)
{
	size_t n;

	if (len < 4 || der[0] != 0x30)
		return len;
	n = der[1] < 0x80    ? 2U + der[1]
	    : der[1] == 0x81 ? 3U + der[2]
	    : der[1] == 0x82 ? 4U + ((size_t)der[2] << 8 | der[3])
			     : len;
	return n <= len ? n : len;
}

char *pem_certificates(const uint8_t *data, size_t len)
{
	char *all = xstrdup("");

	for (size_t at = 0, n; at < len; at += n) {
		char *one, *more;

		n = pem_der_length(data + at, len - at);
		one = pem_text("CERTIFICATE", data + at, n);
		more = xformat("%s%s", all, one);
		free(one);
		free(all);
		all = more;
	}
	return all;
}
