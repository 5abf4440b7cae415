/* SPDX-License-Identifier: Apache-2.0 */
#include "net/range/prefix.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"

static_assert(INET6_ADDRSTRLEN + sizeof("/128") - 1 <= PREFIX_TEXT_MAX, "the longest text");

size_t prefix_size(const struct prefix *p)
{
	return p->family == AF_INET ? 4 : p->family == AF_INET6 ? 16 : 0;
}

int prefix_parse(const char *text, struct prefix *ret)
{
	struct prefix p = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	size_t bits = prefix_size(&p) * 8, len = strcspn(text, "/");
	char address[INET6_ADDRSTRLEN];
	uint64_t length = bits;

	if (len >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = '\0';
	if (inet_pton(p.family, address, p.bytes) != 1)
		return -EINVAL;
	if (text[len] == '/' && parse_u64(text + len + 1, 0, bits, &length) < 0)
		return -EINVAL;
	p.length = (uint8_t)length;
	*ret = p;
	return 0;
}

void prefix_print_address(const struct prefix *p, char ret[PREFIX_TEXT_MAX])
{
	if (prefix_size(p) == 0 || !inet_ntop(p->family, p->bytes, ret, PREFIX_TEXT_MAX))
		(void)str_copy(ret, PREFIX_TEXT_MAX, "none");
}

void prefix_print(const struct prefix *p, char ret[PREFIX_TEXT_MAX])
{
	size_t len;

	prefix_print_address(p, ret);
	len = strlen(ret);
	if (prefix_size(p) > 0)
		(void)str_printf(ret + len, PREFIX_TEXT_MAX - len, "/%u", p->length);
}

bool prefix_eq(const struct prefix *a, const struct prefix *b)
{
	return a->length == b->length && prefix_same_address(a, b);
}

bool prefix_same_address(const struct prefix *a, const struct prefix *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, prefix_size(a)) == 0;
}

bool prefix_has(const struct prefix *p, const struct prefix *a)
{
	struct prefix of = *a, network = prefix_network(p);

	of.length = p->length;
	of = prefix_network(&of);
	return prefix_same_address(&of, &network);
}

struct prefix prefix_network(const struct prefix *p)
{
	struct prefix n = *p;

	for (size_t i = 0; i < prefix_size(p); i++) {
		size_t before = i * 8;
		size_t kept = p->length <= before ? 0 : MIN(p->length - before, (size_t)8);

		n.bytes[i] &= (uint8_t)(0xff00U >> kept);
	}
	return n;
}
