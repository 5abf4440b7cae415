/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/networks/nics.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text/str.h"
#include "net/netlink/link.h"
#include "net/range/prefix.h"

#define NIC_FIELD "nics[0]"

/* A word that was not given is "". */
static const char *nic_word(const char *word)
{
	return word ? word : "";
}

static int nic_take_address(const Aurae__Runtime__V0__Nic *m, struct instance_nic *ret,
			    struct error *err)
{
	struct prefix address = { .family = 0 }, gateway = { .family = 0 };
	const char *word = nic_word(m->address), *way = nic_word(m->gateway);

	if (*word &&
	    (!strchr(word, '/') || prefix_parse(word, &address) < 0 || address.family != AF_INET))
		return error_field(
			err, ERROR_INVALID, NIC_FIELD ".address",
			"\"%.64s\" is no address of IPv4 with the length of its network, as in "
			"192.0.2.5/24",
			word);
	if (*way && (strchr(way, '/') || prefix_parse(way, &gateway) < 0))
		return error_field(err, ERROR_INVALID, NIC_FIELD ".gateway",
				   "\"%.64s\" is no address", way);
	if (*way &&
	    (!*word || !prefix_has(&address, &gateway) || prefix_same_address(&address, &gateway)))
		return error_field(err, ERROR_INVALID, NIC_FIELD ".gateway",
				   "%s is no neighbour by the address \"%.64s\"", way, word);
	(void)str_copy(ret->address, sizeof(ret->address), word);
	(void)str_copy(ret->gateway, sizeof(ret->gateway), way);
	return 0;
}

static int nic_take_mac(const char *word, struct instance_nic *ret, struct error *err)
{
	static const uint8_t none[LINK_MAC_LEN] = { 0 };

	if (!*word)
		return 0;
	if (link_parse_mac(word, ret->mac) < 0 || ret->mac[0] & 1U ||
	    memcmp(ret->mac, none, sizeof(none)) == 0)
		return error_field(err, ERROR_INVALID, NIC_FIELD ".mac",
				   "\"%.64s\" is no address of one Ethernet device, as in "
				   "02:00:00:00:00:05",
				   word);
	return 0;
}

/* Early, for a clear answer: it may still go before it is used. */
static int nic_find_bridge(const char *name, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link link;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	r = link_find(&nl, name, &link, err);
	if (r == -ENODEV)
		return error_field(err, ERROR_PRECONDITION, NIC_FIELD ".bridge",
				   "this node has no bridge %s", name);
	if (r == 0 && !str_eq(link.kind, "bridge"))
		return error_field(err, ERROR_PRECONDITION, NIC_FIELD ".bridge", "%s is no bridge",
				   name);
	return r;
}

int nics_take(const char *network, Aurae__Runtime__V0__Nic *const *nics, size_t n,
	      const struct instance *parent, const struct instance_choice *choice,
	      struct instance_nic *ret, struct error *err)
{
	const bool takes_nics = instance_kind_can(choice->kind, INSTANCE_TAKES_NICS);
	int r;

	*ret = (struct instance_nic){ .bridge = "" };
	if (!instance_kind_can(choice->kind, INSTANCE_LOCAL_PROCESS) && str_eq(network, "host"))
		return error_field(err, ERROR_PRECONDITION, "network",
				   "an instance of kind \"%s\" has a kernel of its own, and no "
				   "part in another one's network%s",
				   instance_kind_word(choice->kind),
				   takes_nics ? " but a device (nics)" : "");
	if (n == 0)
		return 0;
	if (n > 1)
		return error_field(err, ERROR_INVALID, "nics", "%zu are more than the limit of 1",
				   n);
	if (!takes_nics || (parent && !instance_is_node(parent)))
		return error_field(err, ERROR_PRECONDITION, "nics",
				   "only an instance of kind \"vm\" of the node itself takes a "
				   "network device");
	if (!link_name_is_fine(nic_word(nics[0]->bridge)))
		return error_field(err, ERROR_INVALID, NIC_FIELD ".bridge",
				   "\"%.64s\" is no name of a bridge", nic_word(nics[0]->bridge));
	r = nic_take_address(nics[0], ret, err);
	if (r == 0)
		r = nic_take_mac(nic_word(nics[0]->mac), ret, err);
	if (r == 0)
		r = nic_find_bridge(nics[0]->bridge, err);
	if (r == 0)
		(void)str_copy(ret->bridge, sizeof(ret->bridge), nics[0]->bridge);
	return r;
}
