/* SPDX-License-Identifier: Apache-2.0 */
#include "init/system_net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/netlink/link.h"
#include "net/netlink/netlink.h"

#define NET_GROUPS (RTMGRP_LINK | RTMGRP_IPV4_IFADDR)
#define NET_READ_MAX 8192
#define NET_AGAIN_FIRST (500 * NSEC_PER_MSEC)
#define NET_AGAIN_MAX (30 * NSEC_PER_SEC)
#define NET_DEVICE_WORD "%i"
#define NET_CAP(c) (UINT64_C(1) << (c))

/* What Debian has, in the order in which it is looked for. */
static const char *const net_clients[][6] = {
	{ "/usr/sbin/dhclient", "-4", "-d", NET_DEVICE_WORD },
	{ "/sbin/dhclient", "-4", "-d", NET_DEVICE_WORD },
	{ "/usr/sbin/dhcpcd", "-4", "-B", NET_DEVICE_WORD },
	{ "/sbin/udhcpc", "-f", "-i", NET_DEVICE_WORD },
	{ "/usr/sbin/udhcpc", "-f", "-i", NET_DEVICE_WORD },
	{ "/bin/busybox", "udhcpc", "-f", "-i", NET_DEVICE_WORD },
};

/* A client reads a stranger's packets: devices and addresses, its files, and to become a user of
 * its own. */
static const uint64_t net_client_caps =
	NET_CAP(CAP_NET_ADMIN) | NET_CAP(CAP_NET_RAW) | NET_CAP(CAP_NET_BIND_SERVICE) |
	NET_CAP(CAP_SETUID) | NET_CAP(CAP_SETGID) | NET_CAP(CAP_SYS_CHROOT) | NET_CAP(CAP_KILL) |
	NET_CAP(CAP_CHOWN) | NET_CAP(CAP_FOWNER) | NET_CAP(CAP_DAC_OVERRIDE);

/* ---- the client of DHCP ---- */

static size_t net_client_words(const struct system_config *c, const char **words)
{
	const char *word = c->dhcp_client;
	size_t n = 0;

	for (; n < c->n_dhcp_client; word += strlen(word) + 1)
		words[n++] = word;
	for (size_t i = 0; n == 0 && i < ARRAY_SIZE(net_clients); i++)
		if (access(net_clients[i][0], X_OK) == 0)
			for (; net_clients[i][n]; n++)
				words[n] = net_clients[i][n];
	return n;
}

static int net_spawn_client(struct system_link *l, struct error *err)
{
	static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", NULL };
	const char *words[SYSTEM_CLIENT_WORDS_MAX + 1];
	size_t n = net_client_words(l->net->config, words);
	struct isolate_plan plan;
	int exit_status, r;

	if (n == 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "no client of DHCP is installed (name one in "
				    "system.dhcp_client)");
	for (size_t i = 1; i < n; i++)
		if (str_eq(words[i], NET_DEVICE_WORD))
			words[i] = l->wanted->name;
	words[n] = NULL;
	isolate_plan_init(&plan);
	plan.argv = (char *const *)(uintptr_t)words;
	plan.env = (char *const *)(uintptr_t)env;
	plan.caps = net_client_caps;
	plan.no_new_privs = true;
	plan.new_session = true;
	plan.stdio[1] = STDERR_FILENO;
	plan.stdio[2] = STDERR_FILENO;
	r = isolate_spawn(&plan, &l->client, err);
	if (r < 0)
		return r;
	l->running = true;
	r = isolate_child_report(&l->client, &exit_status, err);
	return r < 0 ? error_wrap(err, r, "%s", words[0]) : 0;
}

static void net_client_again(struct system_link *l)
{
	l->delay = l->delay ? MIN(2 * l->delay, NET_AGAIN_MAX) : NET_AGAIN_FIRST;
	loop_timer_set(&l->again, l->delay);
}

static void net_start_client(struct system_link *l)
{
	struct error err = ERROR_INIT;
	int r = net_spawn_client(l, &err);

	if (r < 0)
		log_error("no client of DHCP can be started; it is tried again",
			  LOG_STR("device", l->wanted->name), LOG_ERR(&err));
	/* One whose program did not begin is a child that is reaped as any other. */
	if (!l->running)
		net_client_again(l);
	else
		loop_timer_set(&l->patience, l->net->config->dhcp_patience);
}

static bool net_has_address(const struct system_link *l)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct address *list = NULL;
	bool found = false;
	size_t n = 0;

	if (netlink_open(&nl, NULL) == 0 && address_list(&nl, &list, &n, NULL) == 0)
		for (size_t i = 0; i < n; i++)
			found |= list[i].link == l->index && list[i].prefix.family == AF_INET;
	free(list);
	return found;
}

static void net_on_again(struct loop_timer *t)
{
	struct system_link *l = container_of(t, struct system_link, again);

	if (!l->net->ending && !l->running)
		net_start_client(l);
}

/* Also later: a lease may end while its client hangs. */
static void net_on_patience(struct loop_timer *t)
{
	struct system_link *l = container_of(t, struct system_link, patience);

	if (!l->running || l->net->ending)
		return;
	if (net_has_address(l)) {
		l->delay = 0;
		loop_timer_set(&l->patience, l->net->config->dhcp_patience);
		return;
	}
	log_warn("the client of DHCP has brought no address, and is started again",
		 LOG_STR("device", l->wanted->name));
	(void)pidfd_kill(l->client.pidfd, SIGKILL);
}

bool system_net_reaped(struct system_net *n, pid_t pid)
{
	for (size_t i = 0; i < n->n_links; i++) {
		struct system_link *l = &n->links[i];

		if (!l->running || l->client.pid != pid)
			continue;
		isolate_child_done(&l->client);
		l->client = (struct isolate_child)ISOLATE_CHILD_INIT;
		l->running = false;
		loop_timer_stop(&l->patience);
		if (!n->ending) {
			log_warn("the client of DHCP has ended, and is started again",
				 LOG_STR("device", l->wanted->name));
			net_client_again(l);
		}
		return true;
	}
	return false;
}

/* ---- the device ---- */

static int net_sysctl(const char *device, const char *name, const char *value, struct error *err)
{
	char path[96];
	int r = str_printf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s", device, name);

	if (r >= 0)
		r = fd_write_file(AT_FDCWD, path, value);
	/* A kernel without IPv6. */
	return r < 0 && r != -ENOENT ? error_set(err, r, "set %s of %s", name, device) : 0;
}

/* Forwarding, which networks of pods need, makes a host deaf to routers, but for 2. */
static int net_autoconf(const struct system_interface *w, struct error *err)
{
	int r = w->autoconf ? net_sysctl(w->name, "disable_ipv6", "0", err) : 0;

	if (r == 0 && w->autoconf)
		r = net_sysctl(w->name, "autoconf", "1", err);
	return r < 0 ? r : net_sysctl(w->name, "accept_ra", w->autoconf ? "2" : "0", err);
}

static int net_there(int r)
{
	return r == -EEXIST ? 0 : r;
}

static int net_set(struct netlink *nl, const struct link *link, const struct system_interface *w,
		   struct error *err)
{
	const struct link_change change = { .mtu = w->mtu, .power = LINK_UP };
	struct error told = ERROR_INIT;
	int r;

	/* Where /proc/sys is read-only, as in most containers, the rest is done. */
	if (net_autoconf(w, &told) < 0)
		log_warn("IPv6 is configured as the kernel has it", LOG_ERR(&told));
	r = link_set(nl, link->index, &change, err);
	for (size_t i = 0; i < w->n_addresses && r == 0; i++)
		r = net_there(address_add(nl, link->index, &w->addresses[i], err));
	for (size_t i = 0; i < w->n_gateways && r == 0; i++)
		r = net_there(route_add_default(nl, &w->gateways[i], err));
	return r;
}

/* Returns whether it is up now and was not before. */
static bool net_try(struct system_link *l)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct link link;
	int r = netlink_open(&nl, &err);

	if (r == 0)
		r = link_find(&nl, l->wanted->name, &link, &err);
	if (r == -ENODEV) {
		if (!l->told)
			log_warn("a network device is not there; it is waited for",
				 LOG_STR("device", l->wanted->name));
		l->told = true;
		return false;
	}
	if (r == 0)
		r = net_set(&nl, &link, l->wanted, &err);
	if (r < 0) {
		if (l->state != SYSTEM_LINK_FAILED)
			log_error("a network device cannot be set up",
				  LOG_STR("device", l->wanted->name), LOG_ERR(&err));
		l->state = SYSTEM_LINK_FAILED;
		return false;
	}
	l->index = link.index;
	l->state = SYSTEM_LINK_UP;
	log_info("a network device is up", LOG_STR("device", l->wanted->name));
	return true;
}

static bool net_is_ready(const struct system_net *n)
{
	for (size_t i = 0; i < n->n_links; i++)
		if (n->links[i].state != SYSTEM_LINK_UP ||
		    (n->links[i].wanted->dhcp && !net_has_address(&n->links[i])))
			return false;
	return true;
}

static void net_look(struct system_net *n)
{
	for (size_t i = 0; i < n->n_links; i++) {
		struct system_link *l = &n->links[i];

		if (l->state != SYSTEM_LINK_UP && net_try(l) && l->wanted->dhcp)
			net_start_client(l);
	}
	if (n->ready || !n->config || !net_is_ready(n))
		return;
	n->ready = true;
	n->on_ready(n->userdata);
}

/* What has changed does not matter: all of it is looked at. */
static void net_on_change(struct loop_fd *source, unsigned events)
{
	struct system_net *n = container_of(source, struct system_net, source);
	uint8_t room[NET_READ_MAX];

	while (recv(n->fd, room, sizeof(room), MSG_DONTWAIT) > 0)
		;
	if (!n->ending)
		net_look(n);
}

static int net_listen(void)
{
	const struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = NET_GROUPS };
	_cleanup_fd_ int fd =
		sysio_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void net_bring_up_lo(void)
{
	const struct link_change up = { .power = LINK_UP };
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct link lo;
	int r = netlink_open(&nl, &err);

	if (r == 0)
		r = link_find(&nl, "lo", &lo, &err);
	if (r == 0 && !lo.up)
		r = link_set(&nl, lo.index, &up, &err);
	if (r < 0)
		log_warn("loopback is not up", LOG_ERR(&err));
}

void system_net_init(struct system_net *n, struct loop *l, void (*on_ready)(void *userdata),
		     void *userdata)
{
	*n = (struct system_net){ .loop = l, .fd = -1, .on_ready = on_ready, .userdata = userdata };
	net_bring_up_lo();
	n->fd = net_listen();
	if (n->fd < 0)
		log_warn("network devices that come later are not seen",
			 LOG_STR("err", strerror(-n->fd)));
	else
		loop_fd_init(&n->source, l, n->fd, LOOP_READ, net_on_change);
}

void system_net_begin(struct system_net *n, const struct system_config *config)
{
	n->config = config;
	for (n->n_links = 0; n->n_links < config->n_interfaces; n->n_links++) {
		struct system_link *l = &n->links[n->n_links];

		*l = (struct system_link){ .net = n,
					   .wanted = &config->interfaces[n->n_links],
					   .client = ISOLATE_CHILD_INIT };
		loop_timer_init(&l->again, n->loop, net_on_again);
		loop_timer_init(&l->patience, n->loop, net_on_patience);
	}
	net_look(n);
}

void system_net_end(struct system_net *n)
{
	n->ending = true;
}
