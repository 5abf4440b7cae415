/* SPDX-License-Identifier: Apache-2.0 */

/* One interface with one address, by the calls that every kernel has had for it. */

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "init/guest_self.h"

#define NET_APPEARS_WITHIN (10 * NSEC_PER_SEC)
#define NET_PAUSE (2 * NSEC_PER_MSEC)
#define NET_BACKLOG 64

static void net_set_address(struct sockaddr *to, const uint8_t address[4])
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	memcpy(&sin.sin_addr, address, sizeof(sin.sin_addr));
	memcpy(to, &sin, sizeof(sin));
}

static bool net_has_mac(int fd, const char *name, const uint8_t mac[6])
{
	struct ifreq ifr = { .ifr_name = "" };

	return str_copy(ifr.ifr_name, sizeof(ifr.ifr_name), name) == 0 &&
	       ioctl(fd, SIOCGIFHWADDR, &ifr) == 0 && ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER &&
	       memcmp(ifr.ifr_hwaddr.sa_data, mac, 6) == 0;
}

static bool net_find(int fd, const uint8_t mac[6], char ret_name[IF_NAMESIZE])
{
	struct if_nameindex *all = if_nameindex();
	bool found = false;

	for (size_t i = 0; all && all[i].if_index != 0 && !found; i++) {
		found = net_has_mac(fd, all[i].if_name, mac);
		if (found)
			(void)str_copy(ret_name, IF_NAMESIZE, all[i].if_name);
	}
	if_freenameindex(all);
	return found;
}

/* A device comes up on its own time, behind its driver. */
static int net_wait_for(int fd, const uint8_t mac[6], char ret_name[IF_NAMESIZE], struct error *err)
{
	const struct timespec pause = { .tv_nsec = (long)NET_PAUSE };
	nsec_t began = clock_mono();

	while (!net_find(fd, mac, ret_name)) {
		if (clock_mono() - began > NET_APPEARS_WITHIN)
			return error_set(err, -ENODEV,
					 "find the interface %02x:%02x:%02x:%02x:%02x:%02x", mac[0],
					 mac[1], mac[2], mac[3], mac[4], mac[5]);
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int net_up(int fd, const char *name, struct error *err)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP };

	(void)str_copy(ifr.ifr_name, sizeof(ifr.ifr_name), name);
	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return error_set(err, -errno, "bring up %s", name);
	return 0;
}

static int net_configure(int fd, const char *name, const struct bootmsg_boot *boot,
			 struct error *err)
{
	uint32_t mask = htonl(UINT32_MAX << (32 - boot->prefix));
	uint8_t mask_bytes[4];
	struct ifreq ifr = { .ifr_mtu = (int)boot->mtu };

	memcpy(mask_bytes, &mask, sizeof(mask_bytes));
	(void)str_copy(ifr.ifr_name, sizeof(ifr.ifr_name), name);
	if (ioctl(fd, SIOCSIFMTU, &ifr) < 0)
		return error_set(err, -errno, "set the MTU of %s to %u", name, boot->mtu);
	net_set_address(&ifr.ifr_addr, boot->address);
	if (ioctl(fd, SIOCSIFADDR, &ifr) < 0)
		return error_set(err, -errno, "set the address of %s", name);
	net_set_address(&ifr.ifr_netmask, mask_bytes);
	if (ioctl(fd, SIOCSIFNETMASK, &ifr) < 0)
		return error_set(err, -errno, "set the netmask of %s", name);
	return net_up(fd, name, err);
}

static int net_route(int fd, char *name, const struct bootmsg_boot *boot, struct error *err)
{
	static const uint8_t any[4] = { 0 };
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY, .rt_dev = name };

	net_set_address(&route.rt_dst, any);
	net_set_address(&route.rt_genmask, any);
	net_set_address(&route.rt_gateway, boot->gateway);
	if (ioctl(fd, SIOCADDRT, &route) < 0 && errno != EEXIST)
		return error_set(err, -errno, "add the default route over %s", name);
	return 0;
}

int guest_net_up(const struct bootmsg_boot *boot, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char name[IF_NAMESIZE];
	int r;

	fd = sysio_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "make a socket");
	r = net_up(fd, "lo", err);
	if (r < 0)
		return r;
	r = net_wait_for(fd, boot->mac, name, err);
	if (r < 0)
		return r;
	r = net_configure(fd, name, boot, err);
	if (r < 0)
		return r;
	return net_route(fd, name, boot, err);
}

int guest_net_listen(const struct bootmsg_boot *boot, uint16_t port, struct error *err)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	_cleanup_fd_ int fd = -1;

	memcpy(&sin.sin_addr, boot->address, sizeof(sin.sin_addr));
	fd = sysio_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, -errno, "make a socket");
	if (bind(fd, (const struct sockaddr *)&sin, sizeof(sin)) < 0 || listen(fd, NET_BACKLOG) < 0)
		return error_set(err, -errno, "listen on port %u", port);
	return TAKE_FD(fd);
}
