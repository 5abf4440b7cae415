/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/net_words.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"

#define NET_PORT_MAX 65535
#define NET_USER_DATA_MAX ((size_t)65536)

/* Keeps a word for the messages. */
static char *net_keep(struct net_words *n, char *word)
{
	n->words = xrealloc(n->words, n->n_words + 1, sizeof(*n->words));
	n->words[n->n_words++] = word;
	return word;
}

/* ---- ports ---- */

/* "80", or "80-82" for 3 of them. */
static int port_range(const char *text, uint32_t *ret_first, uint32_t *ret_count)
{
	const char *dash = strchr(text, '-');
	_cleanup_str_ char *first =
		xformat("%.*s", dash ? (int)(dash - text) : (int)strlen(text), text);
	uint64_t from, to;

	if (parse_u64(first, 1, NET_PORT_MAX, &from) < 0)
		return -EINVAL;
	to = from;
	if (dash && parse_u64(dash + 1, from, NET_PORT_MAX, &to) < 0)
		return -EINVAL;
	*ret_first = (uint32_t)from;
	*ret_count = (uint32_t)(to - from + 1);
	return 0;
}

/* What is in front of the ports: an address of IPv6 stands in brackets. */
static int port_address(char *text, Aurae__Runtime__V0__PublishedPort *p)
{
	size_t len = strlen(text);

	if (text[0] == '[') {
		if (len < 3 || text[len - 1] != ']')
			return -EINVAL;
		text[len - 1] = '\0';
		text++;
	} else if (strchr(text, ':')) {
		return -EINVAL;
	}
	p->host_ip = text;
	return 0;
}

/* "[IP:][HOST:]POD[/proto]", taken apart in place. */
static int port_parse(char *text, Aurae__Runtime__V0__PublishedPort *p)
{
	char *slash = strchr(text, '/'), *colon, *host = NULL;
	uint32_t count = 1;

	if (slash) {
		*slash = '\0';
		p->protocol = slash + 1;
	}
	colon = strrchr(text, ':');
	if (port_range(colon ? colon + 1 : text, &p->port, &p->count) < 0)
		return -EINVAL;
	if (!colon)
		return 0;
	*colon = '\0';
	host = strrchr(text, ':');
	/* The last ':' may be one of an address in brackets. */
	if (host && strchr(host, ']'))
		return -EINVAL;
	if (host)
		*host++ = '\0';
	else
		host = text;
	if (host != text && port_address(text, p) < 0)
		return -EINVAL;
	if (!*host)
		return host == text ? -EINVAL : 0;
	if (port_range(host, &p->host_port, &count) < 0)
		return -EINVAL;
	return count == p->count ? 0 : -EINVAL;
}

static int net_ports(struct net_words *n, const struct args *a, struct error *err)
{
	Aurae__Runtime__V0__PodNetwork *m = &n->message;
	size_t n_words;
	char **words = spec_values(a, "publish", &n_words);
	int r = 0;

	n->ports = xrealloc(NULL, n_words + 1, sizeof(*n->ports));
	m->publish = xrealloc(NULL, n_words + 1, sizeof(*m->publish));
	for (size_t i = 0; i < n_words && r == 0; i++) {
		aurae__runtime__v0__published_port__init(&n->ports[i]);
		m->publish[m->n_publish++] = &n->ports[i];
		if (port_parse(net_keep(n, xstrdup(words[i])), &n->ports[i]) < 0)
			r = error_refuse(
				err, ERROR_INVALID,
				"--publish: \"%s\" is no [IP:][HOST:]POD[/tcp|udp|sctp], "
				"such as 8080:80, 127.0.0.1:53:53/udp, [::1]:8000-8002:80-82",
				words[i]);
	}
	free(words);
	return r;
}

char *net_words_host(const Aurae__Runtime__V0__PublishedPort *p)
{
	if (strchr(p->host_ip, ':'))
		return xformat("[%s]:%" PRIu32, p->host_ip, p->host_port);
	return xformat("%s:%" PRIu32, *p->host_ip ? p->host_ip : "0.0.0.0", p->host_port);
}

static bool ports_are_row(const Aurae__Runtime__V0__PublishedPort *a,
			  const Aurae__Runtime__V0__PublishedPort *b, uint32_t distance)
{
	return b->port == a->port + distance && b->host_port == a->host_port + distance &&
	       str_eq(a->protocol, b->protocol) && str_eq(a->host_ip, b->host_ip);
}

char *net_words_ports(Aurae__Runtime__V0__PublishedPort *const *ports, size_t n)
{
	char *all = xstrdup("");

	for (size_t i = 0, k; i < n; i = k) {
		const Aurae__Runtime__V0__PublishedPort *p = ports[i];
		_cleanup_str_ char *before = all, *address = NULL, *to = NULL, *from = NULL;

		for (k = i + 1; k < n && ports_are_row(p, ports[k], (uint32_t)(k - i));)
			k++;
		address = strchr(p->host_ip, ':') ? xformat("[%s]:", p->host_ip)
			  : *p->host_ip           ? xformat("%s:", p->host_ip)
						  : xstrdup("");
		from = k > i + 1 ? xformat("-%" PRIu32, ports[k - 1]->host_port) : xstrdup("");
		to = k > i + 1 ? xformat("-%" PRIu32, ports[k - 1]->port) : xstrdup("");
		all = xformat("%s%s%s%" PRIu32 "%s->%" PRIu32 "%s/%s", before, *before ? ", " : "",
			      address, p->host_port, from, p->port, to, p->protocol);
	}
	return all;
}

/* ---- the others ---- */

/* "NAME:ADDRESS", of which the address may have colons. */
static int net_hosts(struct net_words *n, const struct args *a, struct error *err)
{
	Aurae__Runtime__V0__PodNetwork *m = &n->message;
	size_t n_words;
	char **words = spec_values(a, "add-host", &n_words);
	int r = 0;

	n->hosts = xrealloc(NULL, n_words + 1, sizeof(*n->hosts));
	m->hosts = xrealloc(NULL, n_words + 1, sizeof(*m->hosts));
	for (size_t i = 0; i < n_words && r == 0; i++) {
		char *name = net_keep(n, xstrdup(words[i]));
		char *colon = strpbrk(name, ":=");
		size_t len;

		if (!colon) {
			r = error_refuse(err, ERROR_INVALID,
					 "--add-host: \"%s\" is no NAME:ADDRESS", words[i]);
			break;
		}
		*colon++ = '\0';
		len = strlen(colon);
		if (colon[0] == '[' && colon[len - 1] == ']') {
			colon[len - 1] = '\0';
			colon++;
		}
		aurae__runtime__v0__host_name__init(&n->hosts[i]);
		n->hosts[i].name = name;
		n->hosts[i].address = colon;
		m->hosts[m->n_hosts++] = &n->hosts[i];
	}
	free(words);
	return r;
}

/* "100m": bits, by thousands. */
static int net_rate(const char *text, uint64_t *ret)
{
	static const char units[] = "kmg";
	size_t len = strlen(text);
	const char *unit = len > 1 ? strchr(units, text[len - 1] | 0x20) : NULL;
	_cleanup_str_ char *number = xformat("%.*s", (int)(len - (unit ? 1 : 0)), text);
	uint64_t factor = 1;

	for (const char *u = units; unit && u <= unit; u++)
		factor *= 1000;
	if (parse_u64(number, 1, UINT64_MAX / factor, ret) < 0)
		return -EINVAL;
	*ret *= factor;
	return 0;
}

static int net_bandwidth(struct net_words *n, const struct args *a, struct error *err)
{
	const char *text = args_value(a, "bandwidth");
	char *to, *from;

	if (!text)
		return 0;
	to = net_keep(n, xstrdup(text));
	from = strchr(to, ':');
	if (from)
		*from++ = '\0';
	if (net_rate(to, &n->message.rate_to_pod) == 0 &&
	    net_rate(from ? from : to, &n->message.rate_from_pod) == 0)
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "--bandwidth: \"%s\" is no rate in bits per second, such as 100m or "
			    "1g:50m",
			    text);
}

/* The node says how much is too much. */
static int net_metadata(struct net_words *n, const struct args *a, struct error *err)
{
	const char *path = args_value(a, "user-data");
	Aurae__Runtime__V0__Metadata *m = &n->metadata;
	int r = path ? fd_read_file(AT_FDCWD, path, NET_USER_DATA_MAX, &n->user_data) : 0;

	if (r < 0)
		return error_set(err, r, "--user-data: read %s", path);
	aurae__runtime__v0__metadata__init(m);
	m->identity = args_flag(a, "metadata-identity");
	m->user_data = (ProtobufCBinaryData){ n->user_data.len,
					      (uint8_t *)(uintptr_t)buf_data(&n->user_data) };
	if (path || m->identity || args_flag(a, "metadata"))
		n->message.metadata = m;
	return 0;
}

int net_words_init(struct net_words *n, const struct args *a,
		   Aurae__Runtime__V0__PodNetwork **ret_message, struct error *err)
{
	static const char *const options[] = { "publish",     "ip",       "ip6",
					       "mac-address", "dns",      "dns-search",
					       "dns-option",  "add-host", "hostname",
					       "bandwidth" };
	Aurae__Runtime__V0__PodNetwork *m = &n->message;
	int r;

	*n = (struct net_words){ .message = AURAE__RUNTIME__V0__POD_NETWORK__INIT,
				 .user_data = BUF_INIT };
	spec_set(&m->ip, args_value(a, "ip"));
	spec_set(&m->ip6, args_value(a, "ip6"));
	spec_set(&m->mac, args_value(a, "mac-address"));
	spec_set(&m->hostname, args_value(a, "hostname"));
	m->dns = spec_values(a, "dns", &m->n_dns);
	m->dns_search = spec_values(a, "dns-search", &m->n_dns_search);
	m->dns_option = spec_values(a, "dns-option", &m->n_dns_option);
	r = net_ports(n, a, err);
	if (r == 0)
		r = net_hosts(n, a, err);
	if (r == 0)
		r = net_bandwidth(n, a, err);
	if (r == 0)
		r = net_metadata(n, a, err);
	if (m->metadata)
		*ret_message = m;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (args_value(a, options[i]))
			*ret_message = m;
	return r;
}

/* "NAME[:ip=ADDRESS,…]", taken apart in place. A network of CNI has a ':' in its name, and what
 * names another pod. */
static int net_network(char *text, const char *word, Aurae__Runtime__V0__FurtherNetwork *m,
		       struct error *err)
{
	bool whole = str_has_prefix(text, "cni:") || str_has_prefix(text, "container:");
	char *options = whole ? NULL : strchr(text, ':');

	aurae__runtime__v0__further_network__init(m);
	m->network = text;
	if (options)
		*options++ = '\0';
	while (options) {
		char *value = strsep(&options, ",");
		const char *key = strsep(&value, "=");

		if (value && *value && str_eq(key, "ip") && !strchr(value, ':'))
			m->ip = value;
		else if (value && *value && (str_eq(key, "ip") || str_eq(key, "ip6")))
			m->ip6 = value;
		else if (value && *value && str_eq(key, "mac"))
			m->mac = value;
		else
			return error_refuse(err, ERROR_INVALID,
					    "--network: \"%s\" is no NAME[:ip=ADDRESS,ip6=ADDRESS,"
					    "mac=MAC]",
					    word);
	}
	return 0;
}

/* The option of its own and the one behind the name of the first network mean the same. */
static int net_one_of(const char *option, char **field, char *value, struct error *err)
{
	if (!*value)
		return 0;
	if (**field)
		return error_refuse(err, ERROR_INVALID,
				    "--%s: given twice, once behind the name of --network", option);
	*field = value;
	return 0;
}

static int net_first(struct net_words *n, Aurae__Runtime__V0__RunPodRequest *q, struct error *err)
{
	const Aurae__Runtime__V0__FurtherNetwork *first = &n->networks[0];
	int r = net_one_of("ip", &n->message.ip, first->ip, err);

	if (r == 0)
		r = net_one_of("ip6", &n->message.ip6, first->ip6, err);
	if (r == 0)
		r = net_one_of("mac-address", &n->message.mac, first->mac, err);
	q->network = first->network;
	if (*first->ip || *first->ip6 || *first->mac)
		q->pod_network = &n->message;
	return r;
}

int net_words_networks(struct net_words *n, const struct args *a,
		       Aurae__Runtime__V0__RunPodRequest *q, struct error *err)
{
	size_t n_words;
	char **words = spec_values(a, "network", &n_words);
	int r = 0;

	n->networks = xrealloc(NULL, n_words + 1, sizeof(*n->networks));
	n->further = xrealloc(NULL, n_words + 1, sizeof(*n->further));
	for (size_t i = 0; i < n_words && r == 0; i++) {
		r = net_network(net_keep(n, xstrdup(words[i])), words[i], &n->networks[i], err);
		if (r == 0 && i == 0)
			r = net_first(n, q, err);
		else if (r == 0)
			n->further[q->n_further_networks++] = &n->networks[i];
	}
	q->further_networks = n->further;
	free(words);
	return r;
}

void net_words_done(struct net_words *n)
{
	free(n->networks);
	free(n->further);
	buf_done(&n->user_data);
	free(n->message.dns);
	free(n->message.dns_search);
	free(n->message.dns_option);
	free(n->message.publish);
	free(n->message.hosts);
	free(n->ports);
	free(n->hosts);
	for (size_t i = 0; i < n->n_words; i++)
		free(n->words[i]);
	free(n->words);
	*n = (struct net_words){ .words = NULL };
}
