/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/forward.h"

#include <errno.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/netlink/link.h"
#include "net/netlink/netlink.h"
#include "net/port/port.h"
#include "net/port/sysctl.h"

#define FORWARD_NAME_MAX 80
#define FORWARD_DATAGRAM 8192
#define FORWARD_LOOPBACK 1

/* ---- which links ---- */

static bool forward_is_own(const struct link *l)
{
	return l->index != FORWARD_LOOPBACK && (l->group & ~0xffffU) != PORT_GROUP;
}

static void forward_add_link(struct forward *f, uint32_t link)
{
	for (size_t i = 0; i < f->n_links; i++)
		if (f->links[i] == link)
			return;
	if (link && f->n_links < FORWARD_LINKS_MAX)
		f->links[f->n_links++] = link;
}

static int forward_find_links(struct forward *f, struct netlink *nl, struct error *err)
{
	struct route *routes = NULL;
	struct link l;
	size_t n = 0, kept = 0;
	int r;

	r = route_list(nl, &routes, &n, err);
	if (r < 0)
		return r;
	f->n_links = 0;
	/* Of a port there are routes to single addresses, and of its node's end an address of its
	 * own link. */
	for (size_t i = 0; i < n; i++)
		if (routes[i].to.length < prefix_size(&routes[i].to) * 8)
			forward_add_link(f, routes[i].link);
	free(routes);
	for (size_t i = 0; i < f->n_links; i++)
		if (link_get(nl, f->links[i], &l, NULL) == 0 && forward_is_own(&l))
			f->links[kept++] = f->links[i];
	f->n_links = kept;
	return 0;
}

/* ---- settings ---- */

/* Sets what is not so already; what this kernel does not have is passed over, and 0. */
static int forward_set(int proc_fd, const char *family, const char *link, const char *key,
		       long value, struct error *err)
{
	struct error none = ERROR_INIT;
	char name[FORWARD_NAME_MAX], text[16];
	long is = value;
	int r;

	(void)str_printf(name, sizeof(name), "%s/conf/%s/%s", family, link, key);
	r = sysctl_read(proc_fd, name, &is, &none);
	if (r == 0 && is != value) {
		(void)str_printf(text, sizeof(text), "%ld", value);
		r = sysctl_write(proc_fd, name, text, &none);
		return r < 0 && r != -ENOENT ? error_copy(err, &none) : 1;
	}
	return r < 0 && r != -ENOENT ? error_copy(err, &none) : 0;
}

static long forward_get(int proc_fd, const char *name)
{
	long value = -1;

	return sysctl_read(proc_fd, name, &value, NULL) < 0 ? -1 : value;
}

static void forward_note(uint32_t *list, size_t *n, uint32_t link)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i] == link)
			return;
	if (*n < FORWARD_LINKS_MAX)
		list[(*n)++] = link;
}

/* A kernel with one switch for all links. */
static int forward_all6(int proc_fd, struct forward *f, struct netlink *nl, struct error *err)
{
	char name[FORWARD_NAME_MAX];
	struct link l;
	int r = 0;

	if (forward_get(proc_fd, "ipv6/conf/all/forwarding") != 0)
		return 0;
	for (size_t i = 0; i < f->n_links && r >= 0; i++) {
		if (link_get(nl, f->links[i], &l, NULL) < 0)
			continue;
		(void)str_printf(name, sizeof(name), "ipv6/conf/%s/accept_ra", l.name);
		if (forward_get(proc_fd, name) == 1)
			r = forward_set(proc_fd, "ipv6", l.name, "accept_ra", 2, err);
	}
	if (r >= 0)
		r = forward_set(proc_fd, "ipv6", "all", "forwarding", 1, err);
	f->turned_all6 = f->turned_all6 || r > 0;
	if (r >= 0)
		r = forward_set(proc_fd, "ipv6", "default", "forwarding", 0, err);
	return r;
}

static int forward_links(int proc_fd, struct forward *f, struct netlink *nl, struct error *err)
{
	const bool each6 =
		!f->is_old6 && forward_get(proc_fd, "ipv6/conf/all/force_forwarding") >= 0;
	struct link l;
	int r = 0;

	for (size_t i = 0; i < f->n_links && r >= 0; i++) {
		if (link_get(nl, f->links[i], &l, NULL) < 0)
			continue;
		r = forward_set(proc_fd, "ipv4", l.name, "forwarding", 1, err);
		if (r > 0)
			forward_note(f->turned4, &f->n_turned4, l.index);
		if (r >= 0 && each6)
			r = forward_set(proc_fd, "ipv6", l.name, "force_forwarding", 1, err);
		if (r > 0 && each6)
			forward_note(f->turned6, &f->n_turned6, l.index);
	}
	return r >= 0 && !each6 ? forward_all6(proc_fd, f, nl, err) : r;
}

int forward_settle(struct forward *f, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int proc_fd = -1;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	proc_fd = sysctl_open(err);
	if (proc_fd < 0)
		return proc_fd;
	r = forward_find_links(f, &nl, err);
	if (r == 0)
		r = forward_links(proc_fd, f, &nl, err);
	if (r < 0)
		return r;
	f->drop_transit4 = forward_get(proc_fd, "ipv4/conf/all/forwarding") == 0;
	f->drop_transit6 = forward_get(proc_fd, "ipv6/conf/all/forwarding") == 0 ||
			   forward_get(proc_fd, "ipv6/conf/default/forwarding") == 0;
	return 0;
}

/* Those that still have an index are off then. */
static void forward_undo_links(int proc_fd, struct netlink *nl, const char *family, const char *key,
			       const uint32_t *links, size_t n)
{
	struct link l;

	for (size_t i = 0; i < n; i++)
		if (link_get(nl, links[i], &l, NULL) == 0)
			(void)forward_set(proc_fd, family, l.name, key, 0, NULL);
}

bool forward_undo(struct forward *f)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int proc_fd = sysctl_open(NULL);
	char name[FORWARD_NAME_MAX];
	bool all_off = true;
	struct link l;

	if (proc_fd < 0 || netlink_open(&nl, NULL) < 0)
		return false;
	forward_undo_links(proc_fd, &nl, "ipv4", "forwarding", f->turned4, f->n_turned4);
	forward_undo_links(proc_fd, &nl, "ipv6", "force_forwarding", f->turned6, f->n_turned6);
	if (f->turned_all6)
		(void)forward_set(proc_fd, "ipv6", "all", "forwarding", 0, NULL);
	/* A router by the administrator's will forwards, and that is as it was. */
	for (size_t i = 0; i < f->n_links && (f->drop_transit4 || f->drop_transit6); i++) {
		if (link_get(&nl, f->links[i], &l, NULL) < 0)
			continue;
		(void)str_printf(name, sizeof(name), "ipv4/conf/%s/forwarding", l.name);
		all_off = all_off && !(f->drop_transit4 && forward_get(proc_fd, name) == 1);
		(void)str_printf(name, sizeof(name), "ipv6/conf/%s/force_forwarding", l.name);
		all_off = all_off && !(f->drop_transit6 && forward_get(proc_fd, name) == 1);
	}
	return all_off;
}

/* ---- what others change ---- */

int forward_watch_open(struct error *err)
{
	static const int groups[] = { RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF,
				      RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE };
	const struct sockaddr_nl at = { .nl_family = AF_NETLINK };
	_cleanup_fd_ int fd =
		sysio_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return error_set(err, -errno, "watch routes and settings");
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i],
			       sizeof(groups[i])) < 0)
			return error_set(err, -errno, "watch routes and settings");
	return TAKE_FD(fd);
}

static bool forward_has(const struct forward *f, uint32_t link)
{
	for (size_t i = 0; i < f->n_links; i++)
		if (f->links[i] == link)
			return true;
	return false;
}

/* Of all links, or of one of the node's own. */
static bool forward_minds_setting(const struct netmsg_head *head, const struct forward *f)
{
	struct netmsg_bytes rest = head->body;
	struct netconfmsg info;
	struct netattr a;
	uint32_t link;

	if (netmsg_take(&rest, &info, sizeof(info)) < 0)
		return false;
	while (netattr_next(&rest, &a) > 0)
		if (a.type == NETCONFA_IFINDEX && netattr_u32(&a, &link) == 0)
			return link == (uint32_t)NETCONFA_IFINDEX_ALL || forward_has(f, link);
	/* That of force_forwarding is empty. */
	return true;
}

/* One that makes a link the node's own; those of ports lead to single addresses. */
static bool forward_minds_route(const struct netmsg_head *head, const struct forward *f)
{
	struct route route;

	return route_read(head, &route) > 0 && route.to.length < prefix_size(&route.to) * 8 &&
	       !(route.to.family == AF_INET6 && route.to.bytes[0] == 0xfe) &&
	       !forward_has(f, route.link);
}

static bool forward_minds(struct netmsg_bytes rest, const struct forward *f)
{
	struct netmsg_head head;

	while (netmsg_next(&rest, &head) > 0) {
		if (head.type == RTM_NEWNETCONF && forward_minds_setting(&head, f))
			return true;
		if (head.type == RTM_NEWROUTE && forward_minds_route(&head, f))
			return true;
	}
	return false;
}

bool forward_watch_read(int fd, const struct forward *f)
{
	_Alignas(4) uint8_t data[FORWARD_DATAGRAM];
	bool due = false;
	ssize_t n;

	for (;;) {
		n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		/* Some were lost. */
		if (n < 0 && errno == ENOBUFS) {
			due = true;
			continue;
		}
		if (n < 0)
			return due;
		due = due || forward_minds((struct netmsg_bytes){ data, (size_t)n }, f);
	}
}
