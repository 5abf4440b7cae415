/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/cable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/netlink/bed_test.h"
#include "net/port/inside.h"

static int own_ns_fd = -1;

static void own_namespace(void)
{
	bed_enter();
	own_ns_fd = inside_of_socket(bed_nl.fd, NULL);
	CHECK(own_ns_fd >= 0);
}

static int stand(void *arg, struct error *err)
{
	struct netlink *nl = arg;
	int r = netlink_open(nl, err);

	return r < 0 ? r : inside_of_socket(nl->fd, err);
}

/* A namespace and a conversation with it; -1 where there is no memory for the thread. */
static int another(struct netlink *nl)
{
	struct error err = ERROR_INIT;
	int fd = inside_run(INSIDE_NEW, stand, nl, &err);

	CHECK(fd >= 0 || (failmalloc_has_failed && failmalloc_has_failed()));
	return fd;
}

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static int datagram_socket(void *arg, struct error *err)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* From one to the other, and by no other way. */
static void speak(int from_fd, int to_fd, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { inet_addr(address) } };
	struct pollfd ready = { .fd = to_fd, .events = POLLIN };
	socklen_t len = sizeof(to);
	char text[8] = "";

	CHECK(bind(to_fd, (const struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK(getsockname(to_fd, (struct sockaddr *)&to, &len) == 0);
	CHECK_INT(sendto(from_fd, "hello", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
	CHECK_INT(poll(&ready, 1, UNIT_PATIENCE * 1000), 1);
	CHECK_INT(recv(to_fd, text, sizeof(text) - 1, MSG_DONTWAIT), 5);
	CHECK_STR(text, "hello");
}

static void between_two(void)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int ns_fd = another(&nl);
	_cleanup_fd_ int from_fd = -1;
	_cleanup_fd_ int to_fd = -1;
	struct prefix here = of("10.20.0.1/24"), there = of("10.20.0.2/24");
	const struct cable_end ends[2] = {
		{ .ns_fd = ns_fd, .name = "eth1", .address = &there },
		{ .ns_fd = own_ns_fd, .name = "cell1", .address = &here },
	};
	struct error err = ERROR_INIT;
	struct link link = { 0 };
	int r;

	if (ns_fd < 0)
		return;
	r = cable_lay(ends, 1300, &err);
	CHECK(r == 0 || (failmalloc_has_failed && failmalloc_has_failed()));
	if (r == 0) {
		CHECK_INT(link_find(&nl, "eth1", &link, &err), 0);
		CHECK(link.up && link.running && link.mtu == 1300);
		CHECK_INT(bed_link_number("cell1", "carrier"), 1);
		CHECK_INT(bed_link_number("cell1", "mtu"), 1300);
		from_fd = datagram_socket(NULL, &err);
		to_fd = inside_run(ns_fd, datagram_socket, NULL, &err);
		if (to_fd >= 0)
			speak(from_fd, to_fd, "10.20.0.2");
		CHECK_INT(link_delete(&nl, link.index, &err), 0);
	}
	CHECK(!bed_has_link("cell1"));
}

/* Whatever end it is that fails. */
static void nothing_is_left(void)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int ns_fd = another(&nl);
	struct prefix none = { .family = 0 };
	struct cable_end ends[2] = { { .ns_fd = ns_fd, .name = "eth1" },
				     { .ns_fd = own_ns_fd, .name = "cell1" } };
	int descriptors = bed_descriptors();
	struct error err = ERROR_INIT;
	struct link link;

	if (ns_fd < 0)
		return;
	for (int broken = 0; broken < 6; broken++) {
		struct cable_end tried[2] = { ends[0], ends[1] };

		if (broken < 2)
			tried[broken].bridge = "none";
		else if (broken < 4)
			tried[broken - 2].address = &none;
		else
			tried[broken - 4].name = "lo";
		CHECK(cable_lay(tried, 0, &err) < 0);
		CHECK(!bed_has_link("cell1"));
		CHECK_INT(link_find(&nl, "eth1", &link, &err), -ENODEV);
	}
	CHECK_INT(bed_descriptors(), descriptors);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "between_two", between_two },
	  { "nothing_is_left", nothing_is_left })
