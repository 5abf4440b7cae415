/* SPDX-License-Identifier: Apache-2.0 */
#include "bare_network.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "net/filter/filter.h"
#include "net/netlink/netlink.h"
#include "net/port/inside.h"
#include "net/port/port.h"

#define NETWORK 1

static struct filter *bare_filter;
static struct filter_port bare_port;
static unsigned bare_number; /* of the next address */

static void bare_check(int r, const struct error *err)
{
	if (r >= 0)
		return;
	(void)fprintf(stderr, "bare: %s\n", error_text(err));
	exit(EXIT_FAILURE);
}

static struct prefix bare_prefix(const char *text, unsigned number)
{
	struct prefix p = { .family = 0 };
	size_t last;

	if (prefix_parse(text, &p) < 0)
		exit(EXIT_FAILURE);
	last = prefix_size(&p) - 1;
	p.bytes[last] = (uint8_t)number;
	p.bytes[last - 1] = (uint8_t)(p.bytes[last - 1] | number >> 8);
	return p;
}

/* Another address each time, as a network gives them out. */
static void bare_make_port(int ns_fd)
{
	const unsigned number = 2 + bare_number++ % 4000;
	struct port_plan plan = { .pod_name = "eth0",
				  .alias = "bare",
				  .group = PORT_GROUP + NETWORK,
				  .ip4 = bare_prefix("10.171.0.0/20", number),
				  .ip6 = bare_prefix("fd99::/64", number),
				  .gateway4 = bare_prefix("10.171.0.0/20", 1),
				  .is_default = true,
				  .pool4 = bare_prefix("10.171.0.0/20", 0),
				  .pool6 = bare_prefix("fd99::/64", 0) };
	struct error err = ERROR_INIT;

	port_name(&plan.ip4, plan.name);
	port_mac(&plan.ip4, plan.mac);
	bare_port = (struct filter_port){ .network = NETWORK, .ip4 = plan.ip4, .ip6 = plan.ip6 };
	bare_check(port_make(&plan, ns_fd, &bare_port.link, &err), &err);
	bare_check(filter_add_port(bare_filter, &bare_port, &err), &err);
}

static int bare_stand(void *arg, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r = netlink_open(&nl, err);

	(void)arg;
	return r < 0 ? r : inside_of_socket(nl.fd, err);
}

void bare_network_prepare(unsigned ports)
{
	const struct filter_network network = { .number = NETWORK,
						.pool4 = bare_prefix("10.171.0.0/20", 0),
						.pool6 = bare_prefix("fd99::/64", 0) };
	const struct filter_state state = { .networks = &network, .n_networks = 1 };
	struct error err = ERROR_INIT;

	if (unshare(CLONE_NEWNET) < 0) {
		perror("bare: unshare");
		exit(EXIT_FAILURE);
	}
	bare_check(filter_new(&bare_filter, &err), &err);
	bare_check(filter_sync(bare_filter, &state, &err), &err);
	/* Their namespaces are there as long as this program. */
	for (unsigned i = 0; i < ports; i++) {
		int fd = inside_run(INSIDE_NEW, bare_stand, NULL, &err);

		bare_check(fd, &err);
		bare_make_port(fd);
	}
}

void bare_network_plug(pid_t pid)
{
	char path[48];
	int fd;

	(void)str_printf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror("bare: open a network namespace");
		exit(EXIT_FAILURE);
	}
	bare_make_port(fd);
	(void)fd_close(fd);
}

void bare_network_unplug(void)
{
	struct error err = ERROR_INIT;

	bare_check(filter_remove_port(bare_filter, &bare_port, &err), &err);
}
