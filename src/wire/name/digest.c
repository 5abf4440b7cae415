/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/digest.h"

#include <assert.h>
#include <string.h>

#include "base/text/str.h"

static const char prefix[] = "sha256:";

bool digest_is_hex(const char *s)
{
	return strspn(s, "0123456789abcdef") == DIGEST_HEX_LEN && s[DIGEST_HEX_LEN] == '\0';
}

bool digest_is_valid(const char *s)
{
	return str_has_prefix(s, prefix) && digest_is_hex(s + sizeof(prefix) - 1);
}

const char *digest_hex(const char *digest)
{
	assert(digest_is_valid(digest));
	return digest + sizeof(prefix) - 1;
}

void digest_format(char ret[DIGEST_SIZE], const uint8_t sha256[32])
{
	static const char digits[] = "0123456789abcdef";
	char *to = ret + sizeof(prefix) - 1;

	memcpy(ret, prefix, sizeof(prefix) - 1);
	for (int i = 0; i < 32; i++) {
		*to++ = digits[sha256[i] >> 4];
		*to++ = digits[sha256[i] & 15];
	}
	*to = '\0';
}
