/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"

int stream_address_read(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len,
			char host[STREAM_HOST_SIZE])
{
	const char *colon = strrchr(text, ':');
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	char name[STREAM_HOST_SIZE];
	uint64_t port;

	*ret = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	if (!colon || (size_t)(colon - text) >= sizeof(name) ||
	    parse_u64(colon + 1, 0, UINT16_MAX, &port) < 0)
		return -EINVAL;
	(void)str_printf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	(void)str_copy(host, STREAM_HOST_SIZE, name);
	if (inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*ret_len = sizeof(*v4);
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET ? 0 : -EINVAL;
	}
	if (name[0] != '[' || name[strlen(name) - 1] != ']')
		return -EINVAL;
	name[strlen(name) - 1] = '\0';
	if (inet_pton(AF_INET6, name + 1, &v6->sin6_addr) != 1)
		return -EINVAL;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	*ret_len = sizeof(*v6);
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ? 0 : -EINVAL;
}
