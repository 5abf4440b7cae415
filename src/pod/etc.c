/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/etc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/rootfd.h"
#include "base/str.h"

#define ETC_HOSTS "etc/hosts"

/* Whether the image says something there. */
static bool etc_has_hosts(int root_fd)
{
	_cleanup_fd_ int fd = rootfd_open(root_fd, ETC_HOSTS, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	if (fd < 0)
		return fd != -ENOENT;
	return fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > 0;
}

int etc_fill(int root_fd, const char *hostname, struct error *err)
{
	_cleanup_fd_ int dir_fd = -1, fd = -1;
	char hosts[256];
	int n, r;

	if (etc_has_hosts(root_fd))
		return 0;
	dir_fd = rootfd_make_dir(root_fd, "etc");
	if (dir_fd == -ENOTDIR || dir_fd == -ELOOP)
		return 0;
	if (dir_fd < 0)
		return error_set(err, dir_fd, "make /etc of a container");
	fd = rootfd_open(root_fd, ETC_HOSTS, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return error_set(err, fd, "make /etc/hosts of a container");
	n = str_printf(hosts, sizeof(hosts),
		       "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		       hostname);
	if (n < 0)
		return error_set(err, n, "name the hosts of a container");
	r = fd_write_full(fd, hosts, (size_t)n);
	return r < 0 ? error_set(err, r, "write /etc/hosts of a container") : 0;
}
