/* SPDX-License-Identifier: Apache-2.0 */
#include "network/attachment.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "net/range/address_pool.h"
#include "network/model.h"
#include "network/plugin_part.h"

static const struct {
	const char *word;
	uint8_t protocol;
} publish_protocols[] = {
	{ "tcp", IPPROTO_TCP },
	{ "udp", IPPROTO_UDP },
	{ "sctp", IPPROTO_SCTP },
};

const char *publish_protocol_word(uint8_t protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(publish_protocols); i++)
		if (publish_protocols[i].protocol == protocol)
			return publish_protocols[i].word;
	return "";
}

uint8_t publish_protocol_of(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(publish_protocols); i++)
		if (str_eq(publish_protocols[i].word, word))
			return publish_protocols[i].protocol;
	return 0;
}

/* ---- making and undoing ---- */

struct attachment *attachment_new(struct network *n, const char *owner, size_t n_publish)
{
	struct attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	list_init(&a->link);
	a->network = n;
	a->home_fd = -1;
	a->owner = strdup(owner);
	a->publish = calloc(n_publish + 1, sizeof(*a->publish));
	a->sockets = calloc(n_publish + 1, sizeof(*a->sockets));
	if (!a->owner || !a->publish || !a->sockets) {
		free(a->owner);
		free(a->publish);
		free(a->sockets);
		free(a);
		return NULL;
	}
	for (size_t i = 0; i < n_publish; i++)
		a->sockets[i] = -1;
	return a;
}

void attachment_append(struct attachment **first, struct attachment *a)
{
	while (*first)
		first = &(*first)->next;
	a->at = first;
	*first = a;
}

static void attachment_take_out(struct attachment *a)
{
	if (!a->at)
		return;
	*a->at = a->next;
	if (a->next)
		a->next->at = a->at;
	a->next = NULL;
	a->at = NULL;
}

bool attachment_is_lent(const struct attachment *a)
{
	return a->network->driver == NETWORK_DEVICE;
}

bool attachment_holds_netns(const struct attachment *a)
{
	const enum network_driver driver = a->network->driver;

	return attachment_is_lent(a) ||
	       (a->of_machine && driver != NETWORK_ROUTED && driver != NETWORK_BRIDGE);
}

bool attachment_ends_with_netns(const struct attachment *a)
{
	const enum network_driver driver = a->network->driver;

	return a->part || (driver != NETWORK_ROUTED && driver != NETWORK_BRIDGE);
}

struct attachment *attachment_on(struct attachment *first, const char *network)
{
	struct attachment *a = first;

	while (a && !str_eq(a->network->name, network))
		a = a->next;
	return a;
}

struct attachment *attachment_free(struct attachment *a)
{
	if (!a)
		return NULL;
	attachment_take_out(a);
	if (a->state == ATTACHMENT_PLUGGING || a->state == ATTACHMENT_UNPLUGGING) {
		a->abandoned = true;
		return NULL;
	}
	if (!list_empty(&a->link))
		a->network->n_attached--;
	list_remove(&a->link);
	if (a->network->free4 && a->ip4.family)
		(void)address_pool_put(a->network->free4, &a->ip4, NULL);
	if (a->network->free6 && a->ip6.family)
		(void)address_pool_put(a->network->free6, &a->ip6, NULL);
	for (size_t i = 0; i < a->n_publish; i++)
		(void)fd_close(a->sockets[i]);
	(void)fd_close(a->home_fd);
	/* One that plugins make is its only attachment's. */
	if (plugin_part_is_meant(a->network->name))
		free(a->network);
	a->part = plugin_part_free(a->part);
	free(a->owner);
	free(a->sockets);
	free(a->publish);
	free(a);
	return NULL;
}

static bool attachment_has_addresses(const struct attachment *a)
{
	return !a->part || a->state == ATTACHMENT_PLUGGED || a->state == ATTACHMENT_UNPLUGGING;
}

/* What a lent device is to be again. */
static int attachment_print_home(const struct lan_home *home, struct buf *b)
{
	char mac[LINK_MAC_TEXT];
	int r;

	link_print_mac(home->mac, mac);
	r = buf_addf(b, " home_mac=%s home_mtu=%u home_up=%u", mac, home->mtu, home->up);
	return r < 0 || !*home->kind ? r : buf_addf(b, " home_kind=%s", home->kind);
}

int attachment_print(const struct attachment *a, struct buf *b)
{
	char ip4[PREFIX_TEXT_MAX], ip6[PREFIX_TEXT_MAX], mac[LINK_MAC_TEXT];
	int r;

	prefix_print_address(&a->ip4, ip4);
	prefix_print_address(&a->ip6, ip6);
	link_print_mac(a->mac, mac);
	r = buf_addf(b, "network=%s", a->network->name);
	/* What is asked of plugins is no address yet. */
	if (a->part && r == 0)
		r = plugin_part_print(a->part, b);
	if (r == 0 && a->ip4.family && attachment_has_addresses(a))
		r = buf_addf(b, " ip=%s", ip4);
	if (r == 0 && a->ip6.family && attachment_has_addresses(a))
		r = buf_addf(b, " ip6=%s", ip6);
	if (r == 0)
		r = buf_addf(b, " mac=%s to=%llu from=%llu", mac,
			     (unsigned long long)a->rate_to_pod,
			     (unsigned long long)a->rate_from_pod);
	if (r == 0 && a->eth > 0)
		r = buf_addf(b, " eth=%u", a->eth);
	if (r == 0 && a->network->driver == NETWORK_DEVICE)
		r = attachment_print_home(&a->home, b);
	if (r == 0 && a->is_half)
		r = buf_add_str(b, " half=yes");
	if (r == 0 && a->is_shared)
		r = buf_add_str(b, " shared=yes");
	for (size_t i = 0; i < a->n_publish && r == 0; i++) {
		const struct filter_publish *p = &a->publish[i];
		char host[PREFIX_TEXT_MAX] = "";

		if (p->host.family)
			prefix_print_address(&p->host, host);
		r = buf_addf(b, " publish=%s,%s,%u,%u", publish_protocol_word(p->protocol), host,
			     p->host_port, p->pod_port);
	}
	return r;
}
