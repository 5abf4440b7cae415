/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/networks/pod_network.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "network/wish.h"
#include "pod/networks/etc_wish.h"
#include "runtime/core/check.h"
#include "runtime/networks/pod_join.h"
#include "runtime/start/settings.h"
#include "wire/document/cni_config.h"

#define POD_NETWORK "pod_network"
#define FURTHER "further_networks"
#define PUBLISH_PORT_MAX 65535

static const char pod_network_host_chars[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

/* protobuf-c's strings are not const. */
static char *pod_network_str(const char *s)
{
	return (char *)(uintptr_t)s;
}

/* "cni:NAME", where NAME is that of a configuration of CNI. */
static bool pod_network_is_of_plugins(const char *field)
{
	return str_has_prefix(field, "cni:") && strlen(field) < NETWORK_NAME_SIZE &&
	       cni_name_is_valid(field + strlen("cni:"));
}

int pod_network_word(const char *field, const char **ret, struct error *err)
{
	static const char *const words[] = { "pod", "none", "host" };

	*ret = words[0];
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!str_eq(field, words[i]))
			continue;
		*ret = words[i];
		return 0;
	}
	if (str_empty(field) || (name_is_label(field) && !str_eq(field, "own")) ||
	    pod_network_is_of_plugins(field))
		return 0;
	if (pod_join_is(field)) {
		*ret = "none";
		return 0;
	}
	return error_field(err, ERROR_INVALID, "network",
			   "\"%.80s\" is neither \"none\", \"pod\", \"host\", \"cni\", "
			   "\"cni:NAME\" or \"container:POD\" nor a name that a network can have",
			   field);
}

int pod_network_cell_word(const char *field, const char **ret, struct error *err)
{
	*ret = str_eq(field, "host") ? "host" : "own";
	if (str_empty(field) ||
	    (name_is_label(field) && !str_eq(field, "pod") && !str_eq(field, "cni")))
		return 0;
	return error_field(err, ERROR_INVALID, "network",
			   "\"%.80s\" is neither \"own\" nor \"host\", nor a name that a network "
			   "of the node can have",
			   field);
}

static bool pod_network_is_named(const char *network)
{
	return !str_empty(network) && !str_eq(network, "pod") && !str_eq(network, "own") &&
	       !str_eq(network, "none") && !str_eq(network, "host") && !pod_join_is(network);
}

/* ---- addresses ---- */

static int address_take(const char *field, const char *text, int family, struct prefix *ret,
			struct error *err)
{
	*ret = (struct prefix){ .family = 0 };
	if (str_empty(text))
		return 0;
	if (!strchr(text, '/') && prefix_parse(text, ret) == 0 &&
	    (family == AF_UNSPEC || ret->family == family))
		return 0;
	return error_field(err, ERROR_INVALID, field, "\"%.64s\" is no address%s, as in %s", text,
			   family == AF_INET6  ? " of IPv6"
			   : family == AF_INET ? " of IPv4"
					       : "",
			   family == AF_INET6 ? "fd00::5" : "192.0.2.5");
}

static int mac_take(const char *field, const char *text, struct network_wish *wish,
		    struct error *err)
{
	static const uint8_t none[LINK_MAC_LEN] = { 0 };

	if (str_empty(text))
		return 0;
	wish->has_mac = true;
	if (link_parse_mac(text, wish->mac) == 0 && !(wish->mac[0] & 1U) &&
	    memcmp(wish->mac, none, sizeof(none)) != 0)
		return 0;
	return error_field(err, ERROR_INVALID, field,
			   "\"%.64s\" is no address of one Ethernet device, as in "
			   "02:00:00:00:00:05",
			   text);
}

static int rate_check(const char *field, uint64_t rate, struct error *err)
{
	if (rate == 0 || (rate >= POD_NETWORK_RATE_MIN && rate <= POD_NETWORK_RATE_MAX))
		return 0;
	return error_field(err, ERROR_INVALID, field,
			   "%" PRIu64 " bits per second; a limit is 8000 to 10^12", rate);
}

/* ---- published ports ---- */

static uint32_t publish_count(const Aurae__Runtime__V0__PublishedPort *m)
{
	return m->count ? m->count : 1;
}

static int publish_protocol(const char *word)
{
	static const struct {
		const char *word;
		int protocol;
	} words[] = {
		{ "", IPPROTO_TCP },
		{ "tcp", IPPROTO_TCP },
		{ "udp", IPPROTO_UDP },
		{ "sctp", IPPROTO_SCTP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i].word, word))
			return words[i].protocol;
	return -EINVAL;
}

/* In place of a field below publish[i]. */
#define PUBLISH_FIELD(name)                                                                        \
	(str_printf(field, sizeof(field), POD_NETWORK ".publish[%zu]" name, i) < 0 ? "" : field)

static int publish_check(const Aurae__Runtime__V0__PublishedPort *m, size_t i, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	struct prefix host;
	int r;

	r = address_take(PUBLISH_FIELD(".host_ip"), m->host_ip, AF_UNSPEC, &host, err);
	if (r < 0)
		return r;
	if (host.family &&
	    memcmp(host.bytes, (uint8_t[PREFIX_BYTES_MAX]){ 0 }, sizeof(host.bytes)) == 0)
		return error_field(err, ERROR_INVALID, field,
				   "%s is no address of the host; leave it out for all of them",
				   m->host_ip);
	if (publish_protocol(m->protocol) < 0)
		return error_field(err, ERROR_INVALID, PUBLISH_FIELD(".protocol"),
				   "\"%.16s\" is none of \"tcp\", \"udp\", \"sctp\"", m->protocol);
	if (publish_count(m) > NETWORK_PUBLISH_MAX)
		return error_field(err, ERROR_INVALID, PUBLISH_FIELD(".count"),
				   "%" PRIu32 " ports are more than the limit of %d", m->count,
				   NETWORK_PUBLISH_MAX);
	if (m->port == 0 || m->port > PUBLISH_PORT_MAX - publish_count(m) + 1)
		return error_field(err, ERROR_INVALID, PUBLISH_FIELD(".port"),
				   "%" PRIu32 " to %" PRIu64 "; ports are 1 to 65535", m->port,
				   (uint64_t)m->port + publish_count(m) - 1);
	if (m->host_port > PUBLISH_PORT_MAX - publish_count(m) + 1)
		return error_field(err, ERROR_INVALID, PUBLISH_FIELD(".host_port"),
				   "%" PRIu32 " to %" PRIu64 "; ports are 1 to 65535", m->host_port,
				   (uint64_t)m->host_port + publish_count(m) - 1);
	return 0;
}

/* Whether two of a request want the same port. */
static bool publish_overlaps(const Aurae__Runtime__V0__PublishedPort *a,
			     const Aurae__Runtime__V0__PublishedPort *b)
{
	struct prefix x, y;

	if (!a->host_port || !b->host_port ||
	    publish_protocol(a->protocol) != publish_protocol(b->protocol) ||
	    a->host_port >= b->host_port + publish_count(b) ||
	    b->host_port >= a->host_port + publish_count(a))
		return false;
	return address_take("", a->host_ip, AF_UNSPEC, &x, NULL) == 0 &&
	       address_take("", b->host_ip, AF_UNSPEC, &y, NULL) == 0 &&
	       (!x.family || !y.family || prefix_same_address(&x, &y));
}

static int publish_check_all(const Aurae__Runtime__V0__PodNetwork *m, size_t *ret_n,
			     struct error *err)
{
	char field[ERROR_FIELD_MAX];
	size_t n = 0;

	for (size_t i = 0; i < m->n_publish; i++) {
		int r = i < NETWORK_PUBLISH_MAX ? publish_check(m->publish[i], i, err) : 0;

		if (r < 0)
			return r;
		n += publish_count(m->publish[i]);
		if (n > NETWORK_PUBLISH_MAX)
			return error_field(err, ERROR_INVALID, POD_NETWORK ".publish",
					   "more ports than the limit of %d", NETWORK_PUBLISH_MAX);
		for (size_t k = 0; k < i; k++)
			if (publish_overlaps(m->publish[i], m->publish[k]))
				return error_field(err, ERROR_INVALID, PUBLISH_FIELD(".host_port"),
						   "a port of publish[%zu] once more", k);
	}
	*ret_n = n;
	return 0;
}

static int publish_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
			struct network_wish *wish, struct error *err)
{
	struct filter_publish *list;
	size_t n = 0;
	int r;

	r = publish_check_all(m, &n, err);
	if (r < 0)
		return r;
	list = arena_zalloc(a, n + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "published ports");
	wish->publish = list;
	for (size_t i = 0; i < m->n_publish; i++) {
		const Aurae__Runtime__V0__PublishedPort *p = m->publish[i];

		for (uint32_t k = 0; k < publish_count(p); k++, list++) {
			list->protocol = (uint8_t)publish_protocol(p->protocol);
			(void)address_take("", p->host_ip, AF_UNSPEC, &list->host, NULL);
			list->host_port = (uint16_t)(p->host_port ? p->host_port + k : 0);
			list->pod_port = (uint16_t)(p->port + k);
		}
	}
	wish->n_publish = n;
	return 0;
}

/* ---- names ---- */

/* A list that ends with NULL. */
static char **list_new(struct arena *a, size_t n)
{
	return arena_zalloc(a, n + 1, sizeof(char *));
}

static int list_check_count(const char *field, size_t n, size_t n_max, struct error *err)
{
	return n <= n_max ? 0
			  : error_field(err, ERROR_INVALID, field,
					"%zu are more than the limit of %zu", n, n_max);
}

/* A name as it stands in a file that a resolver reads. */
static bool name_is_host(const char *name, size_t n_max)
{
	size_t n = strlen(name);

	return n > 0 && n <= n_max && strspn(name, pod_network_host_chars) == n && name[0] != '.' &&
	       name[0] != '-' && !strstr(name, "..");
}

static int servers_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
			struct etc_wish *etc, struct error *err)
{
	char field[ERROR_FIELD_MAX], text[PREFIX_TEXT_MAX];
	int r = list_check_count(POD_NETWORK ".dns", m->n_dns, ETC_SERVERS_MAX, err);

	etc->servers = list_new(a, m->n_dns);
	for (size_t i = 0; i < m->n_dns && r == 0 && etc->servers; i++) {
		struct prefix address;

		(void)str_printf(field, sizeof(field), POD_NETWORK ".dns[%zu]", i);
		r = str_empty(m->dns[i]) ? error_field(err, ERROR_INVALID, field, "required")
					 : address_take(field, m->dns[i], AF_UNSPEC, &address, err);
		if (r < 0)
			return r;
		prefix_print_address(&address, text);
		etc->servers[i] = arena_strdup(a, text);
		if (!etc->servers[i])
			etc->servers = NULL;
	}
	return r < 0 || etc->servers ? r : error_set(err, -ENOMEM, "name servers");
}

static int search_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
		       struct etc_wish *etc, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	size_t bytes = 0;
	int r = list_check_count(POD_NETWORK ".dns_search", m->n_dns_search, POD_NETWORK_SEARCH_MAX,
				 err);

	if (r < 0)
		return r;
	etc->search = list_new(a, m->n_dns_search);
	for (size_t i = 0; i < m->n_dns_search && etc->search; i++) {
		const char *name = m->dns_search[i];

		bytes += strlen(name) + 1;
		(void)str_printf(field, sizeof(field), POD_NETWORK ".dns_search[%zu]", i);
		if (!name_is_host(name, 253) && (!str_eq(name, ".") || m->n_dns_search > 1))
			return error_field(err, ERROR_INVALID, field, "\"%.80s\" is no domain",
					   name);
		if (bytes > POD_NETWORK_SEARCH_BYTES_MAX)
			return error_field(err, ERROR_INVALID, field,
					   "with those before it more than the limit of %d bytes",
					   POD_NETWORK_SEARCH_BYTES_MAX);
		etc->search[i] = pod_network_str(name);
	}
	return etc->search ? 0 : error_set(err, -ENOMEM, "search domains");
}

static int options_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
			struct etc_wish *etc, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	static const char option_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-_:";
	int r = list_check_count(POD_NETWORK ".dns_option", m->n_dns_option,
				 POD_NETWORK_OPTIONS_MAX, err);

	if (r < 0)
		return r;
	etc->options = list_new(a, m->n_dns_option);
	for (size_t i = 0; i < m->n_dns_option && etc->options; i++) {
		const char *word = m->dns_option[i];
		size_t n = strlen(word);

		(void)str_printf(field, sizeof(field), POD_NETWORK ".dns_option[%zu]", i);
		if (n == 0 || n > POD_NETWORK_OPTION_MAX || strspn(word, option_chars) != n)
			return error_field(err, ERROR_INVALID, field,
					   "\"%.80s\" is no option, as in ndots:2 or rotate", word);
		etc->options[i] = pod_network_str(word);
	}
	return etc->options ? 0 : error_set(err, -ENOMEM, "options of the resolver");
}

static int hosts_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
		      struct etc_wish *etc, struct error *err)
{
	char field[ERROR_FIELD_MAX], text[PREFIX_TEXT_MAX];
	int r = list_check_count(POD_NETWORK ".hosts", m->n_hosts, POD_NETWORK_HOSTS_MAX, err);

	etc->hosts = list_new(a, m->n_hosts);
	for (size_t i = 0; i < m->n_hosts && r == 0 && etc->hosts; i++) {
		const Aurae__Runtime__V0__HostName *h = m->hosts[i];
		struct prefix address;

		(void)str_printf(field, sizeof(field), POD_NETWORK ".hosts[%zu].name", i);
		if (!name_is_host(h->name, 253))
			return error_field(err, ERROR_INVALID, field, "\"%.80s\" is no host name",
					   h->name);
		(void)str_printf(field, sizeof(field), POD_NETWORK ".hosts[%zu].address", i);
		r = str_empty(h->address)
			    ? error_field(err, ERROR_INVALID, field, "required")
			    : address_take(field, h->address, AF_UNSPEC, &address, err);
		if (r < 0)
			return r;
		prefix_print_address(&address, text);
		etc->hosts[i] = arena_printf(a, "%s\t%s", text, h->name);
		if (!etc->hosts[i])
			etc->hosts = NULL;
	}
	return r < 0 || etc->hosts ? r : error_set(err, -ENOMEM, "host names");
}

static int names_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
		      struct workload_spec *spec, struct error *err)
{
	struct etc_wish *etc = arena_zalloc(a, 1, sizeof(*etc));
	int r;

	if (!etc)
		return error_set(err, -ENOMEM, "names of a pod");
	if (!str_empty(m->hostname)) {
		if (!name_is_host(m->hostname, POD_NETWORK_HOSTNAME_MAX))
			return error_field(err, ERROR_INVALID, POD_NETWORK ".hostname",
					   "\"%.80s\" is no host name of 1 to %d bytes",
					   m->hostname, POD_NETWORK_HOSTNAME_MAX);
		etc->hostname = m->hostname;
	}
	r = servers_take(a, m, etc, err);
	if (r == 0)
		r = search_take(a, m, etc, err);
	if (r == 0)
		r = options_take(a, m, etc, err);
	if (r == 0)
		r = hosts_take(a, m, etc, err);
	spec->etc = etc;
	return r;
}

/* ---- the network ---- */

/* The first field that only one on a network of the node can have; NULL: none of them is set. */
static const char *pod_network_needs(const Aurae__Runtime__V0__PodNetwork *m)
{
	const struct {
		const char *field;
		bool set;
	} fields[] = {
		{ POD_NETWORK ".ip", !str_empty(m->ip) },
		{ POD_NETWORK ".ip6", !str_empty(m->ip6) },
		{ POD_NETWORK ".mac", !str_empty(m->mac) },
		{ POD_NETWORK ".publish", m->n_publish > 0 },
		{ POD_NETWORK ".rate_to_pod", m->rate_to_pod > 0 },
		{ POD_NETWORK ".rate_from_pod", m->rate_from_pod > 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].set)
			return fields[i].field;
	return NULL;
}

static int wish_take(struct arena *a, const Aurae__Runtime__V0__PodNetwork *m,
		     struct network_wish *wish, struct error *err)
{
	int r;

	r = address_take(POD_NETWORK ".ip", m->ip, AF_INET, &wish->ip4, err);
	if (r == 0)
		r = address_take(POD_NETWORK ".ip6", m->ip6, AF_INET6, &wish->ip6, err);
	if (r == 0)
		r = mac_take(POD_NETWORK ".mac", m->mac, wish, err);
	if (r == 0)
		r = publish_take(a, m, wish, err);
	if (r == 0)
		r = rate_check(POD_NETWORK ".rate_to_pod", m->rate_to_pod, err);
	if (r == 0)
		r = rate_check(POD_NETWORK ".rate_from_pod", m->rate_from_pod, err);
	wish->rate_to_pod = m->rate_to_pod;
	wish->rate_from_pod = m->rate_from_pod;
	return r;
}

/* Why a pod can be on no network yet; NULL: it can. */
static const char *pod_network_lack(const struct workload_spec *spec)
{
	/* The namespace of that network belongs to the node, and what runs in another user
	 * namespace could not be joined in it. */
	if (spec->kind == WORKLOAD_CELL && spec->users)
		return "a cell in a user namespace can be on no network of the node: run a pod";
	if (spec->kind == WORKLOAD_CELL)
		return spec->parent && instance_is_remote(spec->parent)
			       ? "a cell in an instance of kind \"vm\" can be on no network of the "
				 "node yet"
			       : NULL;
	if (!instance_kind_can(spec->choice.kind, INSTANCE_NODE_NETWORKS))
		return "a pod of kind \"ec2\", \"gce\" or \"vsphere\" is on the network of its "
		       "cloud, and on "
		       "none of the node";
	if (!instance_kind_can(spec->choice.kind, INSTANCE_LOCAL_PROCESS) && spec->parent &&
	    !instance_is_node(spec->parent))
		return "a pod of kind \"vm\" in an instance can be on no network of the node yet";
	if (spec->nic && spec->nic->bridge[0])
		return "a pod of kind \"vm\" with a device of a bridge (nics) is on no network of "
		       "the node beside it";
	if (spec->parent && instance_is_remote(spec->parent))
		return "a pod in an instance of kind \"vm\" can be on no network of the node yet";
	return NULL;
}

static int pod_network_refuse(const char *network, const char *lack, const char *field,
			      struct error *err)
{
	if (!str_empty(network))
		return error_field(err, ERROR_INVALID, field,
				   "not with the network \"%s\": name a network of the node",
				   network);
	if (lack)
		return error_field(err, ERROR_UNSUPPORTED, field, "%s", lack);
	return error_field(err, ERROR_PRECONDITION, field,
			   "the pod is on no network, as the configuration of this node has it "
			   "(network.default); name one");
}

static int pod_network_keep(struct arena *a, const Aurae__Runtime__V0__PodNetwork *asked,
			    struct workload_spec *spec, struct error *err)
{
	Nacre__V1__WorkloadNetwork kept = NACRE__V1__WORKLOAD_NETWORK__INIT;

	if (!spec->attach && !asked)
		return 0;
	if (spec->attach)
		kept.name = pod_network_str(spec->attach->network);
	kept.asked = (Aurae__Runtime__V0__PodNetwork *)(uintptr_t)asked;
	spec->settings = settings_with_network(a, spec->settings, &kept);
	return spec->settings ? 0 : error_set(err, -ENOMEM, "the network of a pod");
}

int pod_network_take(struct arena *a, const char *network,
		     const Aurae__Runtime__V0__PodNetwork *asked, bool by_default,
		     struct workload_spec *spec, struct error *err)
{
	const Aurae__Runtime__V0__PodNetwork none = AURAE__RUNTIME__V0__POD_NETWORK__INIT;
	const Aurae__Runtime__V0__PodNetwork *m = asked ? asked : &none;
	const char *lack = pod_network_lack(spec), *needs = pod_network_needs(m);
	struct network_wish *wish = arena_zalloc(a, 1, sizeof(*wish));
	bool named = pod_network_is_named(network);
	int r;

	if (!wish)
		return error_set(err, -ENOMEM, "the network of a pod");
	/* What is wrong whatever the state comes first. */
	r = wish_take(a, m, wish, err);
	if (r == 0 && asked)
		r = names_take(a, m, spec, err);
	if (r < 0)
		return r;
	if (named && lack)
		return error_field(err, ERROR_UNSUPPORTED, "network", "%s", lack);
	if (named || (str_empty(network) && by_default && !lack)) {
		wish->network = named ? network : NETWORK_DEFAULT;
		spec->attach = wish;
	} else if (needs) {
		return pod_network_refuse(network, lack, needs, err);
	}
	return pod_network_keep(a, asked, spec, err);
}

/* In place of a name below a field; "" stands for none. */
#define BELOW(name)                                                                                \
	(str_printf(below, sizeof(below), "%s%s" name, field, *field ? "." : "") < 0 ? "" : below)

int pod_network_take_one(const Aurae__Runtime__V0__FurtherNetwork *m, const char *field,
			 struct network_wish *ret, struct error *err)
{
	char below[ERROR_FIELD_MAX];
	int r;

	*ret = (struct network_wish){ .network = m->network };
	r = address_take(BELOW("ip"), m->ip, AF_INET, &ret->ip4, err);
	if (r == 0)
		r = address_take(BELOW("ip6"), m->ip6, AF_INET6, &ret->ip6, err);
	return r < 0 ? r : mac_take(BELOW("mac"), m->mac, ret, err);
}

static int further_check(const char *network, const char *field, struct error *err)
{
	char below[ERROR_FIELD_MAX];

	if (str_empty(network))
		return error_field(err, ERROR_INVALID, BELOW("network"), "required");
	if (!name_is_label(network) || !pod_network_is_named(network) || str_eq(network, "own") ||
	    str_eq(network, "cni"))
		return error_field(err, ERROR_INVALID, BELOW("network"),
				   "\"%.80s\" is no name that a network of the node can have",
				   network);
	return 0;
}

static int further_keep(struct arena *a, Aurae__Runtime__V0__FurtherNetwork *const *further,
			struct workload_spec *spec, struct error *err)
{
	Nacre__V1__WorkloadNetwork *kept = settings_network(a, spec->settings);

	if (kept) {
		kept->further = (Aurae__Runtime__V0__FurtherNetwork **)(uintptr_t)further;
		kept->n_further = spec->n_further;
		spec->settings = settings_with_network(a, spec->settings, kept);
	}
	return kept && spec->settings ? 0 : error_set(err, -ENOMEM, "the networks of a pod");
}

int pod_network_take_further(struct arena *a, Aurae__Runtime__V0__FurtherNetwork *const *further,
			     size_t n_further, const char *network, struct workload_spec *spec,
			     struct error *err)
{
	struct network_wish *list;
	char field[ERROR_FIELD_MAX];
	int r;

	if (n_further > NETWORK_OF_ONE_MAX - 1)
		return error_field(err, ERROR_INVALID, FURTHER, "%zu are more than the limit of %d",
				   n_further, NETWORK_OF_ONE_MAX - 1);
	list = arena_zalloc(a, n_further + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "the networks of a pod");
	for (size_t i = 0; i < n_further; i++) {
		(void)str_printf(field, sizeof(field), FURTHER "[%zu]", i);
		r = further_check(further[i]->network, field, err);
		if (r == 0)
			r = pod_network_take_one(further[i], field, &list[i], err);
		if (r < 0)
			return r;
	}
	if (n_further == 0)
		return 0;
	if (!spec->attach)
		return pod_network_refuse(pod_network_is_named(network) ? "" : network,
					  pod_network_lack(spec), FURTHER, err);
	if (!name_is_label(spec->attach->network) || str_eq(spec->attach->network, "cni"))
		return error_field(err, ERROR_INVALID, FURTHER,
				   "not with the network \"%s\", whose plugins make all that a pod "
				   "has",
				   spec->attach->network);
	spec->further = list;
	spec->n_further = n_further;
	return further_keep(a, further, spec, err);
}

/* "publish[5]" counts each port of a row. */
static size_t pod_network_row(const Aurae__Runtime__V0__PodNetwork *m, size_t port)
{
	size_t i = 0;

	for (; i + 1 < m->n_publish && port >= publish_count(m->publish[i]); i++)
		port -= publish_count(m->publish[i]);
	return i;
}

void pod_network_blame(const Aurae__Runtime__V0__PodNetwork *asked, struct error *err)
{
	static const char *const parts[] = { "ip", "ip6", "mac", "publish" };
	size_t n = strcspn(err->field, "[");
	struct error was = *err;
	const char *text = was.text + strlen(was.field);
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && asked; i++)
		found = found || (n == strlen(parts[i]) && strncmp(was.field, parts[i], n) == 0);
	if (!found || !str_has_prefix(text, ": "))
		return;
	if (was.field[n])
		(void)str_printf(err->field, sizeof(err->field), POD_NETWORK ".publish[%zu]",
				 pod_network_row(asked, strtoul(was.field + n + 1, NULL, 10)));
	else
		(void)str_printf(err->field, sizeof(err->field), POD_NETWORK ".%.20s", was.field);
	if (str_printf(err->text, sizeof(err->text), "%s%s", err->field, text) < 0)
		*err = was;
}
