/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/loopback.h"

#include <errno.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"

int loopback_up(struct error *err)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	_cleanup_fd_ int fd = -1;

	/* Any socket can be asked; this kind exists in every kernel. */
	fd = sysio_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "socket");
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return error_set(err, -errno, "set the flags of lo");
	return 0;
}
