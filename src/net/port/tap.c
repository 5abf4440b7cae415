/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "net/netlink/link.h"
#include "net/port/inside.h"

#define TAP_DEVICE "/dev/net/tun"
/* Documentation/admin-guide/devices.txt of the kernel. */
#define TAP_MAJOR 10
#define TAP_MINOR 200
/* Of struct virtio_net_hdr. */
#define TAP_HEADER 10
#define TAP_AWAITED (2 * NSEC_PER_SEC)
#define TAP_PAUSE (10 * NSEC_PER_MSEC)

void tap_await(void)
{
	const struct timespec pause = { .tv_nsec = (long)TAP_PAUSE };
	nsec_t began = clock_mono();

	for (;;) {
		_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, TAP_DEVICE, O_PATH | O_CLOEXEC, 0);

		if (fd >= 0 || clock_mono() - began > TAP_AWAITED)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

static int tap_open_device(struct error *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	fd = sysio_openat(AT_FDCWD, TAP_DEVICE, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open " TAP_DEVICE);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at " TAP_DEVICE);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(TAP_MAJOR, TAP_MINOR))
		return error_set(err, -ENODEV, TAP_DEVICE " is something else");
	return TAKE_FD(fd);
}

int tap_open(const char *name, struct error *err)
{
	struct ifreq request = { .ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR |
						      IFF_TUN_EXCL) };
	_cleanup_fd_ int fd = -1;
	const int header = TAP_HEADER;

	if (!link_name_is_fine(name))
		return error_set(err, -EINVAL, "name a TAP device so");
	(void)str_copy(request.ifr_name, sizeof(request.ifr_name), name);
	fd = tap_open_device(err);
	if (fd < 0)
		return fd;
	if (ioctl(fd, TUNSETIFF, &request) < 0)
		return error_set(err, -errno, "make the TAP device %s", name);
	if (ioctl(fd, TUNSETVNETHDRSZ, &header) < 0)
		return error_set(err, -errno, "set the header of the TAP device %s", name);
	if (ioctl(fd, TUNSETOFFLOAD, 0UL) < 0)
		return error_set(err, -errno, "set the offloads of the TAP device %s", name);
	return TAKE_FD(fd);
}

static int tap_open_there(void *arg, struct error *err)
{
	return tap_open(arg, err);
}

int tap_open_in(int ns_fd, const char *name, struct error *err)
{
	char copy[IF_NAMESIZE];

	if (str_copy(copy, sizeof(copy), name) < 0)
		return error_set(err, -EINVAL, "name a TAP device so");
	return inside_run(ns_fd, tap_open_there, copy, err);
}
