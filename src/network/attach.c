/* SPDX-License-Identifier: Apache-2.0 */
#include "network/attach.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "net/port/port.h"
#include "net/range/address_pool.h"
#include "network/driver.h"
#include "network/networks.h"
#include "network/plugin_part.h"
#include "network/plugins.h"
#include "network/publish.h"
#include "network/state.h"

#define ATTACHMENT_WORD_MAX 320

/* ---- addresses ---- */

static const struct attachment *network_who_has(const struct network *n,
						const struct prefix *address)
{
	const struct attachment *a;

	list_for_each (a, &n->attachments, struct attachment, link)
		if (prefix_same_address(&a->ip4, address) || prefix_same_address(&a->ip6, address))
			return a;
	return NULL;
}

/* That very one. */
static int attachment_take(struct network *n, struct address_pool *pool, const char *field,
			   const struct prefix *wish, struct prefix *ret, struct error *err)
{
	const struct prefix *own4 = n->range4.family ? &n->range4 : &n->pool4;
	const struct prefix *of = wish->family == AF_INET ? own4 : &n->pool6;
	const struct attachment *other = network_who_has(n, wish);
	char address[PREFIX_TEXT_MAX], subnet[PREFIX_TEXT_MAX];
	int r;

	prefix_print_address(wish, address);
	prefix_print(of, subnet);
	if (!pool)
		return error_field(err, ERROR_PRECONDITION, field,
				   "the network %s has no addresses of IPv6", n->name);
	if (other)
		return error_field(err, ERROR_EXISTS, field, "the address %s is that of %s",
				   address, other->owner);
	r = address_pool_take(pool, wish, NULL);
	if (r == -EEXIST)
		return error_field(err, ERROR_EXISTS, field,
				   "the address %s of the network %s is taken by its gateway",
				   address, n->name);
	if (r < 0)
		return error_field(err, ERROR_INVALID, field,
				   "%s is no address for pods of the network %s, which has those "
				   "of %s",
				   address, n->name, subnet);
	*ret = *wish;
	ret->length = wish->family == AF_INET ? n->pool4.length : n->pool6.length;
	return 0;
}

/* The address of IPv6 with the same number in its network, or the next one. */
static int attachment_take_twin(struct attachment *a, struct error *err)
{
	struct network *n = a->network;
	struct prefix twin = n->pool6;
	const uint8_t *low = a->ip4.bytes, *net = n->pool4.bytes;

	for (unsigned i = 0; i < 4; i++)
		twin.bytes[12 + i] = (uint8_t)(n->pool6.bytes[12 + i] | (low[i] & ~net[i]));
	if (address_pool_take(n->free6, &twin, NULL) < 0)
		return address_pool_get(n->free6, &a->ip6, err);
	a->ip6 = twin;
	return 0;
}

static int attachment_take_addresses(struct attachment *a, const struct prefix *ip4,
				     const struct prefix *ip6, struct error *err)
{
	struct network *n = a->network;
	int r;

	if (ip4->family)
		r = attachment_take(n, n->free4, "ip", ip4, &a->ip4, err);
	else
		r = address_pool_get(n->free4, &a->ip4, err);
	if (r < 0)
		return r;
	a->ip4.length = n->pool4.length;
	if (ip6->family)
		return attachment_take(n, n->free6, "ip6", ip6, &a->ip6, err);
	r = n->free6 ? attachment_take_twin(a, err) : 0;
	if (r == 0 && a->ip6.family)
		a->ip6.length = n->pool6.length;
	return r;
}

/* ---- ports of the host ---- */

/* Of ours, who has that port; NULL: somebody else. */
static const struct attachment *attachment_with_port(const struct networks *all,
						     const struct filter_publish *p)
{
	const struct attachment *a;
	const struct network *n;

	list_for_each (n, networks_list(all), struct network, link)
		list_for_each (a, &n->attachments, struct attachment, link)
			for (size_t i = 0; i < a->n_publish; i++)
				if (publish_collides(&a->publish[i], p))
					return a;
	return NULL;
}

static int attachment_port_taken(const struct networks *all, const struct filter_publish *p,
				 const char *field, struct error *err)
{
	const struct attachment *other = attachment_with_port(all, p);
	char who[PUBLISH_OWNER_MAX];

	if (other)
		return error_field(err, ERROR_EXISTS, field,
				   "port %u/%s of this host is published by %s", p->host_port,
				   publish_protocol_word(p->protocol), other->owner);
	publish_owner(p, who);
	return error_field(err, ERROR_EXISTS, field, "port %u/%s of this host is used by %s",
			   p->host_port, publish_protocol_word(p->protocol), who);
}

static int attachment_reserve_port(struct attachment *a, size_t i, struct error *err)
{
	struct filter_publish *p = &a->publish[i];
	char field[32];
	int fd;

	(void)str_printf(field, sizeof(field), "publish[%zu]", i);
	if (a->network->internal)
		return error_field(err, ERROR_PRECONDITION, field,
				   "the network %s is internal, and nothing in it can be published",
				   a->network->name);
	if (p->host_port && attachment_with_port(a->network->all, p))
		return attachment_port_taken(a->network->all, p, field, err);
	fd = publish_reserve(p, a->ip6.family != 0);
	if (fd == -EADDRINUSE)
		return attachment_port_taken(a->network->all, p, field, err);
	if (fd == -EADDRNOTAVAIL)
		return error_field(err, ERROR_PRECONDITION, field,
				   "this host has no such address; leave it out for all of them");
	/* A kernel that has no sockets of this protocol cannot collide either. */
	if (fd < 0 && !(p->host_port && (fd == -EPROTONOSUPPORT || fd == -ESOCKTNOSUPPORT)))
		return error_set(err, fd, "reserve port %u/%s of this host", p->host_port,
				 publish_protocol_word(p->protocol));
	a->sockets[i] = fd < 0 ? -1 : fd;
	return 0;
}

static void attachment_choose_mac(struct attachment *a, const struct network_wish *wish)
{
	struct lan_home parent = a->home;

	if (wish->has_mac)
		memcpy(a->mac, wish->mac, sizeof(a->mac));
	else if (a->network->driver == NETWORK_IPVLAN || a->network->driver == NETWORK_DEVICE)
		/* Not there: zeroes, and it cannot be plugged in either. */
		(void)(lan_look_home(a->network->parent, &parent, NULL) == 0 &&
		       memcpy(a->mac, parent.mac, sizeof(a->mac)));
	else
		port_mac(&a->ip4, a->mac);
}

static void attachment_join(struct attachment *a)
{
	if (network_passes_node(a->network))
		port_name(&a->ip4, a->device);
	list_add_tail(&a->network->attachments, &a->link);
	a->network->n_attached++;
}

int network_attach(struct networks *all, const struct network_wish *wish, const char *owner,
		   struct attachment **ret, struct error *err)
{
	_cleanup_(attachment_freep) struct attachment *a = NULL;
	struct network *n;
	int r;

	if (plugin_part_is_meant(wish->network))
		return plugins_attach(all->config.plugins, wish, owner, ret, err);
	/* Nothing of the host is touched for a name that was mistyped. */
	if (!str_eq(wish->network, NETWORK_DEFAULT) && !networks_find(all, wish->network))
		return error_field(err, ERROR_NOT_FOUND, "network",
				   "this node has no network %.63s (nacre network ls lists those "
				   "that it has, nacre network create makes one)",
				   wish->network);
	r = networks_begin(all, err);
	if (r < 0)
		return error_wrap_field(err, r, "network");
	n = networks_find(all, wish->network);
	assert(n);
	a = attachment_new(n, owner, wish->n_publish);
	if (!a)
		return error_set(err, -ENOMEM, "put %s on the network %s", owner, n->name);
	r = driver_take_wish(a, wish, err);
	if (r < 0)
		return r;
	r = attachment_take_addresses(a, &wish->ip4, &wish->ip6, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < wish->n_publish; i++) {
		a->publish[i] = wish->publish[i];
		r = attachment_reserve_port(a, i, err);
		if (r < 0)
			return r;
		a->n_publish++;
	}
	a->rate_to_pod = wish->rate_to_pod;
	a->rate_from_pod = wish->rate_from_pod;
	attachment_choose_mac(a, wish);
	attachment_join(a);
	*ret = TAKE_PTR(a);
	return 0;
}

/* ---- from text ---- */

/* A value of the text on its way into an attachment: 0 or -EBADMSG. */
struct attachment_read {
	char network[NETWORK_NAME_SIZE];
	struct prefix ip4, ip6;
	uint8_t mac[LINK_MAC_LEN];
	uint64_t to, from, eth, home_mtu, home_up;
	struct lan_home home;
	bool is_half, is_shared;
	size_t n_publish;
	struct filter_publish *publish; /* NULL: they are only counted */
	struct plugin_part part;
};

static int attachment_read_number(const char *word, uint64_t max, uint64_t *ret)
{
	return parse_u64(word, 0, max, ret) < 0 ? -EBADMSG : 0;
}

static int attachment_read_publish(struct attachment_read *t, char *value)
{
	struct filter_publish p = { .protocol = 0 };
	uint64_t host_port = 0, pod_port = 0;
	char *words[4];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		words[i] = strsep(&value, ",");
		if (!words[i])
			return -EBADMSG;
	}
	p.protocol = publish_protocol_of(words[0]);
	if (value || !p.protocol || (*words[1] && prefix_parse(words[1], &p.host) < 0) ||
	    attachment_read_number(words[2], UINT16_MAX, &host_port) < 0 ||
	    attachment_read_number(words[3], UINT16_MAX, &pod_port) < 0)
		return -EBADMSG;
	p.host_port = (uint16_t)host_port;
	p.pod_port = (uint16_t)pod_port;
	if (t->publish)
		t->publish[t->n_publish] = p;
	t->n_publish++;
	return t->n_publish > NETWORK_PUBLISH_MAX ? -EBADMSG : 0;
}

static int attachment_read_word(struct attachment_read *t, char *word)
{
	char *value = word;
	const char *key = strsep(&value, "=");

	if (!value)
		return -EBADMSG;
	if (str_eq(key, "network"))
		return str_copy(t->network, sizeof(t->network), value) < 0 ? -EBADMSG : 0;
	if (str_eq(key, "ip"))
		return prefix_parse(value, &t->ip4) < 0 || t->ip4.family != AF_INET ? -EBADMSG : 0;
	if (str_eq(key, "ip6"))
		return prefix_parse(value, &t->ip6) < 0 || t->ip6.family != AF_INET6 ? -EBADMSG : 0;
	if (str_eq(key, "mac"))
		return link_parse_mac(value, t->mac) < 0 ? -EBADMSG : 0;
	if (str_eq(key, "to"))
		return attachment_read_number(value, UINT64_MAX, &t->to);
	if (str_eq(key, "from"))
		return attachment_read_number(value, UINT64_MAX, &t->from);
	if (str_eq(key, "eth"))
		return attachment_read_number(value, NETWORK_OF_ONE_MAX - 1, &t->eth);
	if (str_eq(key, "home_mac"))
		return link_parse_mac(value, t->home.mac) < 0 ? -EBADMSG : 0;
	if (str_eq(key, "home_kind"))
		return str_copy(t->home.kind, sizeof(t->home.kind), value) < 0 ? -EBADMSG : 0;
	if (str_eq(key, "home_mtu"))
		return attachment_read_number(value, UINT32_MAX, &t->home_mtu);
	if (str_eq(key, "home_up"))
		return attachment_read_number(value, 1, &t->home_up);
	if (str_eq(key, "shared")) {
		t->is_shared = str_eq(value, "yes");
		return t->is_shared ? 0 : -EBADMSG;
	}
	if (str_eq(key, "half")) {
		t->is_half = str_eq(value, "yes");
		return t->is_half ? 0 : -EBADMSG;
	}
	if (str_eq(key, "publish"))
		return attachment_read_publish(t, value);
	return plugin_part_read(&t->part, key, value) == 1 ? 0 : -EBADMSG;
}

/* Once to count the ports, and once more with room for them. */
static int attachment_read(struct attachment_read *t, const char *text)
{
	char word[ATTACHMENT_WORD_MAX];
	int r = 0;

	t->n_publish = 0;
	while (*text && r == 0) {
		size_t len = strcspn(text, " ");

		if (len >= sizeof(word))
			return -EBADMSG;
		memcpy(word, text, len);
		word[len] = '\0';
		r = attachment_read_word(t, word);
		text += len;
		text += *text == ' ';
	}
	if (r < 0)
		return r;
	return plugin_part_is_meant(t->network) ? (t->part.id[0] ? 0 : -EBADMSG)
	       : t->network[0] && t->ip4.family ? 0
						: -EBADMSG;
}

static void attachment_hold_ports(struct attachment *a)
{
	for (size_t i = 0; i < a->n_publish; i++) {
		int fd = publish_reserve(&a->publish[i], a->ip6.family != 0);

		a->sockets[i] = fd < 0 ? -1 : fd;
		if (fd == -EADDRINUSE)
			log_warn("a port that a pod has published is used by another program",
				 LOG_STR("workload", a->owner),
				 LOG_INT("port", a->publish[i].host_port));
	}
}

/* The rest of its text. */
static void attachment_fill(struct attachment *a, struct attachment_read *t, const char *text)
{
	t->publish = a->publish;
	(void)attachment_read(t, text);
	a->n_publish = t->n_publish;
	memcpy(a->mac, t->mac, sizeof(a->mac));
	a->rate_to_pod = t->to;
	a->rate_from_pod = t->from;
	a->eth = (unsigned)t->eth;
	a->home = t->home;
	a->home.mtu = (uint32_t)t->home_mtu;
	a->home.up = t->home_up != 0;
	a->is_half = t->is_half;
	a->is_shared = t->is_shared;
}

static int network_adopt_plugins(struct networks *all, struct attachment_read *t, const char *text,
				 const char *owner, struct attachment **ret, struct error *err)
{
	static const uint8_t none[LINK_MAC_LEN] = { 0 };
	const struct network_wish wish = { .network = t->network,
					   .n_publish = t->n_publish,
					   .id = t->part.id,
					   .has_mac = memcmp(t->mac, none, sizeof(none)) != 0,
					   .pod = t->part.pod,
					   .pod_namespace = t->part.pod_namespace,
					   .uid = t->part.uid };
	_cleanup_(attachment_freep) struct attachment *a = NULL;
	int r;

	if (!all->config.plugins && !t->ip4.family && !t->ip6.family)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"this node runs no plugins of CNI any more (network.cni.conf_dir)");
	r = plugins_new_attachment(all->config.plugins, &wish, owner, &a, err);

	if (r < 0)
		return r;
	attachment_fill(a, t, text);
	a->ip4 = t->ip4;
	a->ip6 = t->ip6;
	plugins_adopt(all->config.plugins, a);
	*ret = TAKE_PTR(a);
	return 0;
}

int network_adopt(struct networks *all, const char *text, const char *owner,
		  struct attachment **ret, struct error *err)
{
	_cleanup_(attachment_freep) struct attachment *a = NULL;
	struct attachment_read t = { .n_publish = 0 };
	struct network *n;
	int r;

	r = attachment_read(&t, text);
	if (r < 0)
		return error_set(err, r, "the record of the network of %s", owner);
	if (plugin_part_is_meant(t.network))
		return network_adopt_plugins(all, &t, text, owner, ret, err);
	r = networks_begin(all, err);
	if (r < 0)
		return r;
	n = networks_find(all, t.network);
	if (!n)
		return error_refuse(err, ERROR_NOT_FOUND, "the network %s of %s is gone", t.network,
				    owner);
	a = attachment_new(n, owner, t.n_publish);
	if (!a)
		return error_set(err, -ENOMEM, "the network of %s", owner);
	attachment_fill(a, &t, text);
	if (!t.ip6.family)
		r = attachment_take(n, n->free4, "ip", &t.ip4, &a->ip4, err);
	else
		r = attachment_take_addresses(a, &t.ip4, &t.ip6, err);
	if (r < 0)
		return r;
	a->state = ATTACHMENT_PLUGGED;
	attachment_hold_ports(a);
	attachment_join(a);
	*ret = TAKE_PTR(a);
	return 0;
}
