/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/request.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/str.h"

bool request_id_is(const char *id)
{
	static const char bytes[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t n = strspn(id, bytes);

	return n > 0 && n <= REQUEST_ID_MAX && !id[n];
}

void request_key(char ret[REQUEST_KEY_SIZE], const char *id, uint64_t hash)
{
	(void)str_printf(ret, REQUEST_KEY_SIZE, "%s %016" PRIx64, id, hash);
}

bool request_same_id(const char *a, const char *b)
{
	size_t n = strcspn(a, " ");

	return n > 0 && strncmp(a, b, n) == 0 && b[n] == ' ';
}
