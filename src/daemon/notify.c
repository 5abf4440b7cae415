/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"

static int notify_failed(const char *state, int code)
{
	log_warn("cannot tell the service manager", LOG_STR("state", state),
		 LOG_STR("err", strerror(code)));
	return code == ENOMEM || code == ENOBUFS || code == EMFILE || code == ENFILE ||
			       code == EAGAIN
		       ? -EAGAIN
		       : 0;
}

int notify_send(const char *state)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	_cleanup_fd_ int fd = -1;

	if (str_empty(path) || (path[0] != '/' && path[0] != '@') ||
	    str_copy(to.sun_path, sizeof(to.sun_path), path) < 0)
		return 0;
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = sysio_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return notify_failed(state, errno);
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))) < 0)
		return notify_failed(state, errno);
	return 0;
}
