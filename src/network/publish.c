/* SPDX-License-Identifier: Apache-2.0 */
#include "network/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"

bool publish_collides(const struct filter_publish *a, const struct filter_publish *b)
{
	return a->protocol == b->protocol && a->host_port == b->host_port &&
	       (!a->host.family || !b->host.family || prefix_same_address(&a->host, &b->host));
}

/* ---- holding one ---- */

union publish_address {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static socklen_t publish_address(const struct filter_publish *p, bool with_ipv6,
				 union publish_address *ret)
{
	bool is_6 = p->host.family == AF_INET6 || (!p->host.family && with_ipv6);

	*ret = (union publish_address){ .any = { .sa_family = AF_UNSPEC } };
	if (is_6) {
		ret->in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						  .sin6_port = htons(p->host_port) };
		if (p->host.family)
			memcpy(&ret->in6.sin6_addr, p->host.bytes, sizeof(ret->in6.sin6_addr));
		return sizeof(ret->in6);
	}
	ret->in4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(p->host_port) };
	if (p->host.family)
		memcpy(&ret->in4.sin_addr, p->host.bytes, sizeof(ret->in4.sin_addr));
	return sizeof(ret->in4);
}

int publish_reserve(struct filter_publish *p, bool with_ipv6)
{
	static const int types[] = { [IPPROTO_TCP] = SOCK_STREAM,
				     [IPPROTO_UDP] = SOCK_DGRAM,
				     [IPPROTO_SCTP] = SOCK_STREAM };
	_cleanup_fd_ int fd = -1;
	union publish_address address;
	socklen_t len = publish_address(p, with_ipv6, &address);

	fd = socket(address.any.sa_family, types[p->protocol] | SOCK_CLOEXEC, p->protocol);
	if (fd < 0 && errno == EAFNOSUPPORT && !p->host.family) {
		len = publish_address(p, false, &address);
		fd = socket(AF_INET, types[p->protocol] | SOCK_CLOEXEC, p->protocol);
	}
	if (fd < 0)
		return -errno;
	if (address.any.sa_family == AF_INET6) {
		const int only = p->host.family == AF_INET6;

		if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)) < 0)
			return -errno;
	}
	if (bind(fd, &address.any, len) < 0)
		return -errno;
	if (p->host_port == 0) {
		if (getsockname(fd, &address.any, &len) < 0)
			return -errno;
		p->host_port = ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
								       : address.in4.sin_port);
	}
	return TAKE_FD(fd);
}

/* ---- who has it: /proc/net tells the inode of a socket, /proc/PID/fd whose that is ---- */

#define PUBLISH_TABLE_MAX ((size_t)4 << 20)
#define PUBLISH_COMM_MAX 32

/* The n-th word from 0 on of a line, up to the end of the text. */
static const char *publish_word(const char *line, unsigned n)
{
	line += strspn(line, " ");
	while (n-- > 0) {
		line += strcspn(line, " \n");
		line += strspn(line, " ");
	}
	return line;
}

/* In a table of /proc/net, the inode of a socket with that port; 0: there is none. */
static unsigned long publish_inode_in(const char *table, uint16_t port)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const char *line;

	if (fd_read_file(AT_FDCWD, table, PUBLISH_TABLE_MAX, &b) < 0 || buf_add(&b, "", 1) < 0)
		return 0;
	line = strchr((const char *)buf_data(&b), '\n');
	for (; line && line[1]; line = strchr(line + 1, '\n')) {
		/* Words: number, local address:port, then the inode as the tenth. */
		const char *local = publish_word(line + 1, 1), *inode = publish_word(line + 1, 9);

		local = strchr(local, ':');
		if (local && strtoul(local + 1, NULL, 16) == port && strtoul(inode, NULL, 10))
			return strtoul(inode, NULL, 10);
	}
	return 0;
}

static unsigned long publish_inode(const struct filter_publish *p)
{
	static const char *const tables[][2] = {
		{ "/proc/net/tcp", "/proc/net/tcp6" },
		{ "/proc/net/udp", "/proc/net/udp6" },
	};
	const size_t which = p->protocol == IPPROTO_UDP;
	unsigned long inode = publish_inode_in(tables[which][0], p->host_port);

	return inode ? inode : publish_inode_in(tables[which][1], p->host_port);
}

static bool publish_has_socket(int proc_fd, const char *pid, const char *link)
{
	_cleanup_strv_ char **fds = NULL;
	_cleanup_fd_ int dir_fd = -1;
	char path[64], target[64];
	ssize_t n;

	if (str_printf(path, sizeof(path), "%s/fd", pid) < 0)
		return false;
	dir_fd = sysio_openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd < 0 || fd_list_dir(dir_fd, &fds) < 0)
		return false;
	for (size_t i = 0; fds && fds[i]; i++) {
		n = readlinkat(dir_fd, fds[i], target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (str_eq(target, link))
			return true;
	}
	return false;
}

void publish_owner(const struct filter_publish *p, char ret[PUBLISH_OWNER_MAX])
{
	_cleanup_fd_ int proc_fd =
		sysio_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	unsigned long inode = p->protocol == IPPROTO_SCTP ? 0 : publish_inode(p);
	_cleanup_strv_ char **pids = NULL;
	char link[64], path[64];
	uint32_t pid;

	(void)str_copy(ret, PUBLISH_OWNER_MAX, "another program");
	(void)str_printf(link, sizeof(link), "socket:[%lu]", inode);
	if (!inode || proc_fd < 0 || fd_list_dir(proc_fd, &pids) < 0)
		return;
	for (size_t i = 0; pids && pids[i]; i++) {
		_cleanup_(buf_done) struct buf comm = BUF_INIT;

		if (parse_u32(pids[i], &pid) < 0 || !publish_has_socket(proc_fd, pids[i], link))
			continue;
		(void)str_printf(path, sizeof(path), "%u/comm", pid);
		if (fd_read_file(proc_fd, path, PUBLISH_COMM_MAX, &comm) < 0 ||
		    buf_add(&comm, "", 1) < 0)
			return;
		(void)str_printf(ret, PUBLISH_OWNER_MAX, "%.*s (pid %u)",
				 (int)strcspn((const char *)buf_data(&comm), "\n"),
				 (const char *)buf_data(&comm), pid);
		return;
	}
}
