/* SPDX-License-Identifier: Apache-2.0 */
#include "net/filter/filter.h"

/* Before the kernel's headers, which leave out what libc has said. */
#include <arpa/inet.h>

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdlib.h>

#include "net/netlink/bed_test.h"
#include "net/netlink/nft.h"
#include "net/port/port.h"

/* The table and its elements as the kernel takes them, and whose it is. What the rules do to
 * packets is in filter_traffic_test.c. */

#define TABLE "nacre"
#define MANY 1000

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static void own_namespace(void)
{
	bed_enter();
}

static struct filter *made(void)
{
	struct filter *f = NULL;
	struct error err = ERROR_INIT;

	CHECK_INT(filter_new(&f, &err), 0);
	if (err.code)
		printf("# %s\n", error_text(&err));
	return f;
}

/* What somebody else does to the table: NFT_MSG_NEWTABLE or NFT_MSG_DELTABLE. */
static int somebody(int fd, unsigned verb, uint32_t flags)
{
	_cleanup_nft_batch_ struct nft_batch b = NFT_BATCH_INIT;

	nft_message(&b, verb, verb == NFT_MSG_NEWTABLE ? NLM_F_CREATE : 0, NFPROTO_INET);
	nft_put_str(&b, NFTA_TABLE_NAME, TABLE);
	if (verb == NFT_MSG_NEWTABLE)
		nft_put_u32(&b, NFTA_TABLE_FLAGS, flags);
	return nft_commit(&b, fd, "somebody", NULL);
}

static void nobody_else_changes_it(void)
{
	_cleanup_fd_ int fd = nft_socket(NULL);
	struct filter *f = made(), *second = NULL;
	struct error err = ERROR_INIT;

	CHECK(fd >= 0);
	if (!f)
		return;
	if (!filter_is_owned(f)) {
		(void)filter_free(f);
		SKIP("tables have no owner before Linux 5.12");
	}
	CHECK_INT(somebody(fd, NFT_MSG_DELTABLE, 0), -EPERM);
	CHECK(filter_new(&second, &err) < 0 && !second);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(error_text(&err), "belongs to the netlink socket "));
	(void)filter_free(f);
	/* The next one takes over what is left. */
	f = made();
	CHECK(f && filter_is_owned(f));
	(void)filter_free(f);
}

/* As of a set of rules that somebody has saved and loaded again. */
static void takes_what_is_nobodys(void)
{
	const struct filter_state none = { .networks = NULL };
	_cleanup_fd_ int fd = nft_socket(NULL);
	struct error err = ERROR_INIT;
	struct filter *f;

	CHECK(fd >= 0);
	(void)somebody(fd, NFT_MSG_DELTABLE, 0);
	CHECK_INT(somebody(fd, NFT_MSG_NEWTABLE, 0), 0);
	f = made();
	if (!f)
		return;
	CHECK(filter_is_owned(f));
	CHECK_INT(somebody(fd, NFT_MSG_DELTABLE, 0), -EPERM);
	CHECK_INT(filter_sync(f, &none, &err), 0);
	(void)filter_free(f);
}

static void an_owner_without_persistence(void)
{
	_cleanup_fd_ int fd = nft_socket(NULL);
	struct error err = ERROR_INIT;
	struct filter *f = NULL;

	CHECK(fd >= 0);
	(void)somebody(fd, NFT_MSG_DELTABLE, 0);
	CHECK_INT(somebody(fd, NFT_MSG_NEWTABLE, NFT_TABLE_F_OWNER), 0);
	CHECK(filter_new(&f, &err) < 0 && !f);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	fd = fd_close(fd);
	/* It went with its socket. */
	f = made();
	(void)filter_free(f);
}

static void many_ports(void)
{
	static struct filter_port ports[MANY];
	static struct filter_publish publish[MANY];
	/* Neighbours, in no order, and the last that there are. */
	struct filter_network networks[] = {
		{ .number = 3 }, { .number = 1 }, { .number = 2 }, { .number = 255 }
	};
	struct filter_state s = { .networks = networks,
				  .n_networks = 4,
				  .ports = ports,
				  .n_ports = MANY,
				  .drop_transit4 = true,
				  .drop_transit6 = true };
	struct filter *f = made();
	struct error err = ERROR_INIT;

	networks[0].pool4 = of("10.171.32.0/20");
	networks[0].pool6 = of("fd02:0:0:3::/64");
	networks[1].pool4 = of("10.171.0.0/20");
	networks[1].pool6 = of("fd02:0:0:1::/64");
	networks[2].pool4 = of("10.171.16.0/20");
	networks[2].pool6 = of("fd02:0:0:2::/64");
	networks[3].pool4 = of("255.255.255.0/24");
	networks[3].internal = networks[3].node_open = true;
	for (size_t i = 0; i < MANY; i++) {
		const uint16_t number = htons((uint16_t)(i + 2));

		publish[i] = (struct filter_publish){ .protocol = IPPROTO_TCP,
						      .host_port = (uint16_t)(i + 1024),
						      .pod_port = 80 };
		if (i % 2)
			publish[i].host = of("192.0.2.1");
		ports[i] = (struct filter_port){ .link = (uint32_t)i + 10,
						 .network = 1,
						 .ip4 = of("10.171.0.0"),
						 .ip6 = of("fd02:0:0:1::"),
						 .publish = &publish[i],
						 .n_publish = 1 };
		memcpy(ports[i].ip4.bytes + 2, &number, 2);
		memcpy(ports[i].ip6.bytes + 14, &number, 2);
	}
	if (!f)
		return;
	CHECK_INT(filter_sync(f, &s, &err), 0);
	/* Again, which changes nothing, and with what is there already. */
	CHECK_INT(filter_sync(f, &s, &err), 0);
	CHECK_INT(filter_add_port(f, &ports[7], &err), 0);
	CHECK_INT(err.code, 0);
	/* All of them are there to be removed, once. */
	for (size_t i = 0; i < MANY; i++)
		CHECK_INT(filter_remove_port(f, &ports[i], &err), 0);
	CHECK_INT(filter_remove_port(f, &ports[0], &err), -ENOENT);
	/* A port of the host leads to one pod. */
	CHECK_INT(filter_add_port(f, &ports[0], NULL), 0);
	ports[2].publish = ports[0].publish;
	CHECK_INT(filter_add_port(f, &ports[2], &err), -EEXIST);
	/* None of it was done: its addresses are free. */
	ports[2].n_publish = 0;
	CHECK_INT(filter_remove_port(f, &ports[2], &err), -ENOENT);
	(void)filter_free(f);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void its_loss_is_seen(void)
{
	_cleanup_fd_ int watch = -1, fd = nft_socket(NULL);
	struct error err = ERROR_INIT;
	struct filter *f = made();

	(void)filter_free(f);
	watch = filter_watch_open(&err);
	CHECK(watch >= 0 && fd >= 0);
	CHECK(!is_readable(watch));
	CHECK(!filter_watch_read(watch));
	CHECK_INT(somebody(fd, NFT_MSG_DELTABLE, 0), 0);
	CHECK(is_readable(watch));
	CHECK(filter_watch_read(watch));
	CHECK(!filter_watch_read(watch));
	CHECK_INT(somebody(fd, NFT_MSG_NEWTABLE, 0), 0);
	CHECK(is_readable(watch));
	CHECK(!filter_watch_read(watch));
}

static void end(void)
{
	netlink_done(&bed_nl);
}

UNIT_MAIN({ "own namespace", own_namespace, true },
	  { "nobody else changes it", nobody_else_changes_it },
	  { "takes what is nobody's", takes_what_is_nobodys },
	  { "an owner without persistence", an_owner_without_persistence },
	  { "many ports", many_ports }, { "its loss is seen", its_loss_is_seen },
	  { "end", end, true })
