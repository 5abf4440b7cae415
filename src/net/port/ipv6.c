/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/ipv6.h"

#include <errno.h>

#include "base/file/fd.h"
#include "net/port/sysctl.h"

#define IPV6_SWITCH "ipv6/conf/all/disable_ipv6"

int ipv6_off(struct error *err)
{
	_cleanup_fd_ int proc_fd = sysctl_open(err);
	long is = 0;
	int r;

	if (proc_fd < 0)
		return proc_fd;
	r = sysctl_write(proc_fd, IPV6_SWITCH, "1", err);
	if (r == -ENOENT) {
		if (err)
			*err = (struct error)ERROR_INIT;
		return 0;
	}
	if (r == 0)
		r = sysctl_read(proc_fd, IPV6_SWITCH, &is, err);
	if (r == 0 && is != 1)
		r = error_set(err, -EIO, "turn IPv6 off");
	return r;
}

int ipv6_of_later(struct error *err)
{
	_cleanup_fd_ int proc_fd = sysctl_open(err);
	struct error none = ERROR_INIT;
	int r;

	if (proc_fd < 0)
		return proc_fd;
	r = sysctl_write(proc_fd, "ipv6/conf/default/disable_ipv6", "0", &none);
	return r < 0 && r != -ENOENT ? error_copy(err, &none) : 0;
}
