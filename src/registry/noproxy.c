/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/noproxy.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "registry/header.h"

#define NOPROXY_ENTRY_MAX 300 /* a longer one is no host */
#define NOPROXY_BETWEEN ", \t"

/* An address as its bytes: 4, 16, or 0 where it is none. */
static size_t noproxy_address(const char *text, uint8_t ret[16])
{
	if (inet_pton(AF_INET, text, ret) == 1)
		return 4;
	return inet_pton(AF_INET6, text, ret) == 1 ? 16 : 0;
}

static bool noproxy_same_bits(const uint8_t *a, const uint8_t *b, size_t n)
{
	unsigned rest = n % 8;
	uint8_t mask = (uint8_t)(0xff00U >> rest);

	return memcmp(a, b, n / 8) == 0 && (rest == 0 || ((a[n / 8] ^ b[n / 8]) & mask) == 0);
}

/* entry: an address, or one with the length of a network behind it. */
static bool noproxy_network(char *entry, const char *host)
{
	uint8_t ours[16], theirs[16];
	char *slash = strchr(entry, '/');
	uint64_t bits;
	size_t len;

	if (slash)
		*slash = '\0';
	len = noproxy_address(entry, theirs);
	if (len == 0 || noproxy_address(host, ours) != len)
		return false;
	bits = len * 8;
	if (slash && !header_number(slash + 1, len * 8, &bits))
		return false;
	return noproxy_same_bits(ours, theirs, bits);
}

static bool noproxy_name(const char *entry, const char *host)
{
	size_t n = strlen(host), m;

	entry += *entry == '.';
	m = strlen(entry);
	if (m == 0 || m > n || !header_is(entry, host + n - m))
		return false;
	return m == n || host[n - m - 1] == '.';
}

/* Takes the port off, and the brackets. False: the port is another one, or none. */
static bool noproxy_port(char **entry, uint16_t port)
{
	char *colon = strrchr(*entry, ':');
	uint64_t n = port;

	if (**entry == '[') {
		char *close = strchr(*entry, ']');

		if (!close)
			return false;
		colon = close[1] == ':' ? close + 1 : NULL;
		if (!colon && close[1])
			return false;
		*close = '\0';
		(*entry)++;
	} else if (colon && strchr(*entry, ':') != colon) {
		/* More than one: an address of IPv6. */
		return true;
	}
	if (!colon)
		return true;
	*colon = '\0';
	return header_number(colon + 1, UINT16_MAX, &n) && n == port;
}

static bool noproxy_entry(char *entry, const struct url *u)
{
	uint8_t bytes[16];

	if (str_eq(entry, "*"))
		return true;
	if (!noproxy_port(&entry, u->port))
		return false;
	if (noproxy_address(u->host, bytes))
		return noproxy_network(entry, u->host);
	return noproxy_name(entry, u->host);
}

bool noproxy_has(const char *list, const struct url *u)
{
	char entry[NOPROXY_ENTRY_MAX];

	for (list = list ?: ""; *list;) {
		size_t len = strcspn(list, NOPROXY_BETWEEN);

		if (len > 0 && len < sizeof(entry)) {
			memcpy(entry, list, len);
			entry[len] = '\0';
			if (noproxy_entry(entry, u))
				return true;
		}
		list += len;
		list += strspn(list, NOPROXY_BETWEEN);
	}
	return false;
}
