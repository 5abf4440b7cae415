/* SPDX-License-Identifier: Apache-2.0 */
#include "network/networks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "io/unix.h"
#include "net/port/port.h"
#include "net/range/address_pool.h"
#include "net/range/subnets.h"
#include "network/attachment.h"
#include "network/driver.h"
#include "network/settle.h"
#include "network/state.h"
#include "store/root.h"

#define NETWORK_DEFAULT_NUMBER 1
#define NETWORK_DEFAULT_BITS 20
#define NETWORK_OTHER_BITS 24
#define NETWORK_MTU_MIN 1280
#define NETWORK_MTU_MAX 65535

static const struct prefix network_gateway6 = {
	.family = AF_INET6,
	.length = 64,
	.bytes = { 0xfe, 0x80, [15] = 1 },
};

const struct list *networks_list(const struct networks *all)
{
	return &all->list;
}

static struct network *networks_find_any(const struct networks *all, const char *name)
{
	struct network *n;

	list_for_each (n, &all->list, struct network, link)
		if (str_eq(n->name, name))
			return n;
	return NULL;
}

struct network *networks_find(const struct networks *all, const char *name)
{
	struct network *n = networks_find_any(all, name);

	return n && n->state != NETWORK_REMOVING ? n : NULL;
}

/* ---- one network ---- */

static void network_free(struct network *n)
{
	struct attachment *a;

	if (!n)
		return;
	/* No thread is left that works for one. */
	list_for_each (a, &n->attachments, struct attachment, link) {
		a->state = ATTACHMENT_PLUGGED;
		(void)attachment_free(a);
	}
	list_remove(&n->link);
	n->free4 = address_pool_free(n->free4);
	n->free6 = address_pool_free(n->free6);
	free(n);
}

/* Behind those with a lower number. */
static void network_join(struct networks *all, struct network *n)
{
	struct network *other;
	struct list *at = &all->list;

	list_for_each (other, &all->list, struct network, link)
		if (at == &all->list && other->number > n->number)
			at = &other->link;
	list_add_tail(at, &n->link);
}

/* From what it is to what it needs in memory: its pools, without the gateway. */
static int network_open(struct network *n, struct error *err)
{
	int r;

	r = address_pool_new(&n->free4, n->range4.family ? &n->range4 : &n->pool4);
	if (r == 0 && prefix_has(n->range4.family ? &n->range4 : &n->pool4, &n->gateway4))
		r = address_pool_take(n->free4, &n->gateway4, NULL);
	if (r == 0 && n->pool6.family)
		r = address_pool_new(&n->free6, &n->pool6);
	if (r == 0 && n->pool6.family && prefix_has(&n->pool6, &n->gateway6))
		r = address_pool_take(n->free6, &n->gateway6, NULL);
	return r < 0 ? error_set(err, r, "the addresses of the network %s", n->name) : 0;
}

static struct network *network_new(struct networks *all)
{
	struct network *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	list_init(&n->link);
	list_init(&n->attachments);
	n->all = all;
	return n;
}

/* ---- records ---- */

static void network_tell(struct network *n, struct network *told, const struct error *err)
{
	const network_fn done = TAKE_PTR(n->done);

	if (done)
		done(n->userdata, told, err);
}

static void network_on_recorded(void *userdata, const struct error *err)
{
	struct network *n = userdata;
	struct networks *all = n->all;

	if (err && (!list_empty(&n->attachments) || n->number == NETWORK_DEFAULT_NUMBER)) {
		log_warn("a network has no record, and is another one after a reboot",
			 LOG_STR("network", n->name), LOG_ERR(err));
		err = NULL;
	}
	if (!err)
		n->state = NETWORK_READY;
	network_tell(n, n, err);
	if (err) {
		network_free(n);
		networks_settle(all);
	}
}

static void network_on_dropped(void *userdata, const struct error *err)
{
	struct network *n = userdata;
	struct networks *all = n->all;

	if (err)
		n->state = NETWORK_READY;
	network_tell(n, NULL, err);
	if (!err)
		network_free(n);
	networks_settle(all);
}

static int network_record(struct network *n, network_fn done, void *userdata, struct error *err)
{
	char pool4[PREFIX_TEXT_MAX], pool6[PREFIX_TEXT_MAX] = "", gateway4[PREFIX_TEXT_MAX];
	char range4[PREFIX_TEXT_MAX] = "", gateway6[PREFIX_TEXT_MAX] = "";
	struct root_network record = {
		.name = n->name,
		.number = n->number,
		.pool4 = pool4,
		.pool6 = pool6,
		.gateway4 = gateway4,
		.mtu = n->asked_mtu ? n->mtu : 0,
		.internal = n->internal,
		.node_open = n->node_open,
		.created_at = n->created_at,
		.driver = network_driver_word(n->driver),
		.parent = n->parent,
		.mode = network_mode_word(n),
		.range4 = range4,
		.gateway6 = gateway6,
	};
	int r;

	n->done = done;
	n->userdata = userdata;
	prefix_print(&n->pool4, pool4);
	if (n->pool6.family)
		prefix_print(&n->pool6, pool6);
	prefix_print(&n->gateway4, gateway4);
	if (n->range4.family)
		prefix_print(&n->range4, range4);
	if (n->gateway6.family)
		prefix_print(&n->gateway6, gateway6);
	r = FAILPOINT("network.record");
	if (r < 0)
		return error_set(err, r, "record the network %s", n->name);
	return root_store_put_network(n->all->config.store, &record, network_on_recorded, n, err);
}

/* The parts of a record that are texts: 0 or -EBADMSG. */
static int network_read(struct network *n, const struct root_network *record)
{
	if (n->number == 0 || n->number > NETWORKS_MAX || !name_is_label(record->name) ||
	    str_copy(n->name, sizeof(n->name), record->name) < 0 ||
	    prefix_parse(record->pool4, &n->pool4) < 0 || n->pool4.family != AF_INET ||
	    (*record->pool6 && prefix_parse(record->pool6, &n->pool6) < 0) ||
	    prefix_parse(record->gateway4, &n->gateway4) < 0 ||
	    (*record->range4 && prefix_parse(record->range4, &n->range4) < 0) ||
	    (*record->gateway6 && prefix_parse(record->gateway6, &n->gateway6) < 0))
		return -EBADMSG;
	/* Of a record that is older than this column. */
	if (n->pool6.family && !n->gateway6.family)
		n->gateway6 = network_gateway6;
	return driver_take_record(n, record->driver, record->parent, record->mode);
}

static int networks_load_one(void *data, const struct root_network *record)
{
	struct networks *all = data;
	struct network *n = network_new(all);
	struct error err = ERROR_INIT;

	if (!n)
		return -ENOMEM;
	n->number = record->number;
	n->internal = record->internal;
	n->node_open = record->node_open;
	n->created_at = record->created_at;
	n->mtu = record->mtu;
	n->asked_mtu = record->mtu != 0;
	n->state = NETWORK_READY;
	if (network_read(n, record) < 0) {
		log_error("the record of a network makes no sense, and is passed over",
			  LOG_STR("network", record->name));
		network_free(n);
		return 0;
	}
	if (network_open(n, &err) < 0) {
		log_error("a network cannot be taken up", LOG_STR("network", n->name),
			  LOG_ERR(&err));
		network_free(n);
		return err.code == -ENOMEM ? -ENOMEM : 0;
	}
	network_join(all, n);
	return 0;
}

/* ---- beginning ---- */

/* An abstract name belongs to the network namespace, and goes with the process. */
static int networks_claim(struct networks *all, struct error *err)
{
	int fd, pid;

	if (all->claim_fd >= 0)
		return 0;
	fd = unix_claim("nacre/networks", &pid, err);
	if (fd >= 0) {
		all->claim_fd = fd;
		return 0;
	}
	if (fd != -EADDRINUSE)
		return error_wrap(err, fd, "claim the networks of this host");
	return error_refuse(err, ERROR_PRECONDITION,
			    "another daemon (pid %d) has the networks of this host; stop it, or "
			    "run this one in a network namespace of its own",
			    pid);
}

/* The subnets that are taken already; the caller frees *ret. */
static int networks_subnets(const struct networks *all, struct prefix **ret, size_t *ret_n)
{
	struct prefix *list = calloc(2 * NETWORKS_MAX, sizeof(*list));
	const struct network *n;

	if (!list)
		return -ENOMEM;
	*ret_n = 0;
	list_for_each (n, &all->list, struct network, link) {
		list[(*ret_n)++] = n->pool4;
		if (n->pool6.family)
			list[(*ret_n)++] = n->pool6;
	}
	*ret = list;
	return 0;
}

/* That of IPv6 lies in the node's own /48, which is that of the default network. */
static int network_choose6(struct network *n, struct error *err)
{
	const struct network *first = networks_find_any(n->all, NETWORK_DEFAULT);
	struct prefix site;
	int r;

	if (first && first->pool6.family) {
		site = first->pool6;
		site.length = 48;
		site = prefix_network(&site);
	} else {
		r = subnets_draw_site(&site, err);
		if (r < 0)
			return r;
	}
	n->pool6 = subnets_of_site(&site, (uint16_t)n->number);
	return 0;
}

/* The host has a route to where the parent of a network leads. */
static int network_check_subnet(const struct network *n, const struct prefix *subnet,
				const struct prefix *used, size_t n_used, struct error *err)
{
	return network_passes_node(n) ? subnets_check(subnet, used, n_used, err)
				      : subnets_check_others(subnet, used, n_used, err);
}

static int network_choose(struct network *n, const struct network_spec *spec, struct error *err)
{
	struct prefix *used = NULL;
	size_t n_used = 0;
	int r;

	r = networks_subnets(n->all, &used, &n_used);
	if (r < 0)
		return error_set(err, r, "choose the subnets of the network %s", n->name);
	if (spec->subnet4.family)
		r = network_check_subnet(n, &spec->subnet4, used, n_used, err);
	else
		r = subnets_choose(n->number == NETWORK_DEFAULT_NUMBER ? NETWORK_DEFAULT_BITS
								       : NETWORK_OTHER_BITS,
				   used, n_used, &n->pool4, err);
	if (r == 0 && spec->subnet4.family)
		n->pool4 = prefix_network(&spec->subnet4);
	if (r == 0 && spec->subnet6.family) {
		r = network_check_subnet(n, &spec->subnet6, used, n_used, err);
		n->pool6 = prefix_network(&spec->subnet6);
	} else if (r == 0 && n->all->has_ipv6 && !spec->no_ipv6 && network_passes_node(n)) {
		r = network_choose6(n, err);
	}
	free(used);
	return r;
}

static uint32_t network_usual_mtu(const struct network *n)
{
	return network_passes_node(n) ? n->all->host_mtu : driver_mtu(n);
}

static void network_first_address(const struct prefix *network, struct prefix *ret)
{
	*ret = *network;
	ret->bytes[prefix_size(ret) - 1] |= 1;
}

static void network_set_gateways(struct network *n, const struct network_spec *spec)
{
	n->gateway4 = spec->gateway4;
	if (!n->gateway4.family)
		network_first_address(&n->pool4, &n->gateway4);
	n->gateway4.length = n->pool4.length;
	if (!n->pool6.family)
		return;
	n->gateway6 = network_passes_node(n) ? network_gateway6 : spec->gateway6;
	if (!n->gateway6.family)
		network_first_address(&n->pool6, &n->gateway6);
	n->gateway6.length = n->pool6.length;
}

/* A network that nobody knows yet, with everything that it needs. */
static int network_make(struct networks *all, const struct network_spec *spec, uint32_t number,
			struct network **ret, struct error *err)
{
	struct network *n = network_new(all);
	int r;

	if (!n)
		return error_set(err, -ENOMEM, "make the network %s", spec->name);
	(void)str_copy(n->name, sizeof(n->name), spec->name);
	n->number = number;
	n->internal = spec->internal;
	n->node_open = spec->node_open;
	n->asked_mtu = spec->mtu != 0;
	n->range4 = spec->range4;
	n->created_at = clock_real();
	r = driver_take_spec(n, spec, err);
	if (r == 0)
		r = network_choose(n, spec, err);
	if (r == 0) {
		n->mtu = spec->mtu ? spec->mtu : network_usual_mtu(n);
		network_set_gateways(n, spec);
		r = network_open(n, err);
	}
	if (r < 0) {
		network_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

static int networks_make_default(struct networks *all, struct error *err)
{
	const struct network_spec spec = { .name = NETWORK_DEFAULT };
	struct error own = ERROR_INIT;
	struct network *n = NULL;
	int r;

	if (networks_find_any(all, NETWORK_DEFAULT))
		return 0;
	r = network_make(all, &spec, NETWORK_DEFAULT_NUMBER, &n, err);
	if (r < 0)
		return r;
	network_join(all, n);
	/* It serves without a record too, and has other addresses after a reboot then. */
	if (network_record(n, NULL, NULL, &own) < 0) {
		log_warn("the default network has no record", LOG_ERR(&own));
		n->state = NETWORK_READY;
	}
	return 0;
}

int networks_begin(struct networks *all, struct error *err)
{
	struct network *n;
	int r;

	if (all->begun)
		return 0;
	r = networks_claim(all, err);
	if (r == 0 && !all->filter)
		r = filter_new(&all->filter, err);
	if (r < 0)
		return r;
	all->has_ipv6 = port_has_ipv6();
	all->host_mtu = MAX(subnets_default_mtu(), (uint32_t)NETWORK_MTU_MIN);
	list_for_each (n, &all->list, struct network, link)
		if (!n->asked_mtu)
			n->mtu = network_usual_mtu(n);
	r = networks_make_default(all, err);
	if (r == 0)
		r = networks_load_forward(all, err);
	if (r < 0)
		return r;
	all->begun = true;
	networks_watch(all);
	networks_settle_soon(all);
	return 0;
}

/* ---- made and removed by name ---- */

static uint32_t networks_free_number(const struct networks *all)
{
	uint32_t number = NETWORK_DEFAULT_NUMBER + 1;
	const struct network *n;

	list_for_each (n, &all->list, struct network, link)
		number += n->number == number;
	return number;
}

static int network_check_gateway(const struct network_spec *spec, struct error *err)
{
	if (!spec->gateway4.family)
		return 0;
	if (!spec->subnet4.family)
		return error_field(err, ERROR_INVALID, "gateway",
				   "only a network whose subnet is named has a gateway of choice");
	if (spec->gateway4.family != AF_INET || !prefix_has(&spec->subnet4, &spec->gateway4))
		return error_field(err, ERROR_INVALID, "gateway",
				   "must be an address of the subnet of IPv4");
	return 0;
}

static int network_check_parts(const struct network_spec *spec, struct error *err)
{
	if (spec->range4.family &&
	    (!spec->subnet4.family || spec->range4.family != AF_INET || spec->range4.length > 30 ||
	     spec->range4.length < spec->subnet4.length ||
	     !prefix_has(&spec->subnet4, &spec->range4)))
		return error_field(err, ERROR_INVALID, "ip_range",
				   "must be a part of the subnet of IPv4 that is named, of a "
				   "length of at most 30");
	if (spec->gateway6.family &&
	    (!spec->subnet6.family || !prefix_has(&spec->subnet6, &spec->gateway6)))
		return error_field(err, ERROR_INVALID, "gateway6",
				   "must be an address of the subnet of IPv6 that is named");
	return driver_check_spec(spec, err);
}

static int network_check_spec(const struct network_spec *spec, struct error *err)
{
	int r;

	if (!name_is_label(spec->name) || str_eq(spec->name, "none") ||
	    str_eq(spec->name, "host") || str_eq(spec->name, "pod") || str_eq(spec->name, "cni"))
		return error_field(err, ERROR_INVALID, "name",
				   "must be 1 to %d characters of a-z, 0-9 and '-', begin and end "
				   "with a letter or digit, and be none of cni, host, none and pod",
				   NAME_LABEL_MAX);
	if (spec->subnet4.family && (spec->subnet4.length < 8 || spec->subnet4.length > 30))
		return error_field(err, ERROR_INVALID, "subnets",
				   "a subnet of IPv4 must have a length of 8 to 30, as in "
				   "10.5.0.0/24");
	if (spec->subnet6.family && (spec->subnet6.length < 48 || spec->subnet6.length > 112))
		return error_field(err, ERROR_INVALID, "subnets",
				   "a subnet of IPv6 must have a length of 48 to 112, as in "
				   "fd12:3456::/64");
	if (spec->mtu && (spec->mtu < NETWORK_MTU_MIN || spec->mtu > NETWORK_MTU_MAX))
		return error_field(err, ERROR_INVALID, "mtu", "must be %d to %d", NETWORK_MTU_MIN,
				   NETWORK_MTU_MAX);
	r = network_check_gateway(spec, err);
	return r < 0 ? r : network_check_parts(spec, err);
}

int networks_create(struct networks *all, const struct network_spec *spec, network_fn done,
		    void *userdata, struct error *err)
{
	struct network *n = NULL;
	uint32_t number;
	int r;

	r = network_check_spec(spec, err);
	if (r == 0)
		r = networks_begin(all, err);
	if (r < 0)
		return r;
	if (networks_find_any(all, spec->name))
		return error_field(err, ERROR_EXISTS, "name", "there is a network %s already",
				   spec->name);
	number = networks_free_number(all);
	if (number > NETWORKS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "this node has %d networks already, its limit", NETWORKS_MAX);
	r = network_make(all, spec, number, &n, err);
	if (r < 0)
		return r;
	network_join(all, n);
	r = network_record(n, done, userdata, err);
	if (r < 0) {
		network_free(n);
		return r;
	}
	networks_settle(all);
	return 0;
}

int networks_remove(struct networks *all, const char *name, network_fn done, void *userdata,
		    struct error *err)
{
	struct network *n = networks_find(all, name);
	int r;

	if (!n)
		return error_refuse(err, ERROR_NOT_FOUND, "this node has no network %.63s", name);
	if (n->number == NETWORK_DEFAULT_NUMBER)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the network %s is the one of every pod that names none, and "
				    "cannot be removed",
				    name);
	if (n->state == NETWORK_MAKING)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "the network %s is still being made; try again", name);
	if (!list_empty(&n->attachments))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the network %s is used by %s%s; stop what is on it first",
				    name,
				    list_first(&n->attachments, struct attachment, link)->owner,
				    n->n_attached > 1 ? " and others" : "");
	n->done = done;
	n->userdata = userdata;
	r = root_store_drop_network(all->config.store, name, network_on_dropped, n, err);
	if (r < 0)
		return r;
	n->state = NETWORK_REMOVING;
	return 0;
}

/* ---- all of them ---- */

int networks_new(struct networks **ret, const struct networks_config *config, struct error *err)
{
	struct networks *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return error_set(err, -ENOMEM, "the networks");
	all->config = *config;
	list_init(&all->list);
	list_init(&all->jobs);
	all->claim_fd = -1;
	(void)pthread_mutex_init(&all->filter_lock, NULL);
	networks_init_settle(all);
	r = root_store_each_network(config->store, networks_load_one, all, err);
	if (r < 0) {
		if (err && !err->code)
			(void)error_set(err, r, "read the networks");
		(void)networks_free(all);
		return r;
	}
	*ret = all;
	return 0;
}

void networks_stop(struct networks *all)
{
	const struct network *n;

	if (!all)
		return;
	all->stopped = true;
	list_for_each (n, &all->list, struct network, link)
		all->was_used = all->was_used || !list_empty(&n->attachments);
}

struct networks *networks_free(struct networks *all)
{
	if (!all)
		return NULL;
	networks_leave(all);
	networks_done_settle(all);
	while (!list_empty(&all->list))
		network_free(list_first(&all->list, struct network, link));
	all->filter = filter_free(all->filter);
	(void)pthread_mutex_destroy(&all->filter_lock);
	(void)fd_close(all->claim_fd);
	free(all);
	return NULL;
}
