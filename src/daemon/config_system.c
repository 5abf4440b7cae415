/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config_system.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "net/netlink/link.h"

#define SYSTEM_LINE_MAX 512
#define SYSTEM_MTU_MIN 68
#define SYSTEM_MTU_MAX 65535
#define SYSTEM_PATIENCE_MIN NSEC_PER_SEC
#define SYSTEM_TIME_MAX (3600 * NSEC_PER_SEC)

void config_system_init(struct system_config *s)
{
	*s = (struct system_config){ .log_level = LOG_INFO,
				     .network_within = 10 * NSEC_PER_SEC,
				     .dhcp_patience = 60 * NSEC_PER_SEC,
				     .stop_within = 60 * NSEC_PER_SEC };
}

int config_system_hostname(struct system_config *s, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-.") != n ||
	    value[0] == '-' || value[0] == '.' || value[n - 1] == '-' || value[n - 1] == '.')
		return -EINVAL;
	return str_copy(s->hostname, sizeof(s->hostname), value);
}

/* ---- a device ---- */

static int interface_address(struct system_interface *i, const char *word)
{
	if (i->n_addresses == ARRAY_SIZE(i->addresses) || !strchr(word, '/') ||
	    prefix_parse(word, &i->addresses[i->n_addresses]) < 0)
		return -EINVAL;
	i->n_addresses++;
	return 0;
}

/* One of each family. */
static int interface_gateway(struct system_interface *i, const char *word)
{
	struct prefix p;

	if (!word || strchr(word, '/') || prefix_parse(word, &p) < 0 ||
	    i->n_gateways == ARRAY_SIZE(i->gateways) ||
	    (i->n_gateways > 0 && i->gateways[0].family == p.family))
		return -EINVAL;
	i->gateways[i->n_gateways++] = p;
	return 0;
}

static int interface_mtu(struct system_interface *i, const char *word)
{
	uint64_t mtu;

	if (!word || parse_u64(word, SYSTEM_MTU_MIN, SYSTEM_MTU_MAX, &mtu) < 0)
		return -EINVAL;
	i->mtu = (uint32_t)mtu;
	return 0;
}

static int interface_word(struct system_interface *i, const char *word, char **rest)
{
	if (str_eq(word, "dhcp"))
		i->dhcp = true;
	else if (str_eq(word, "auto"))
		i->autoconf = true;
	else if (str_eq(word, "via"))
		return interface_gateway(i, strtok_r(NULL, " \t", rest));
	else if (str_eq(word, "mtu"))
		return interface_mtu(i, strtok_r(NULL, " \t", rest));
	else
		return interface_address(i, word);
	return 0;
}

int config_system_interface(struct system_config *s, const char *value)
{
	struct system_interface i = { .name = "" };
	char line[SYSTEM_LINE_MAX], *rest = NULL;
	const char *word;

	if (s->n_interfaces == ARRAY_SIZE(s->interfaces) || str_copy(line, sizeof(line), value) < 0)
		return -EINVAL;
	word = strtok_r(line, " \t", &rest);
	if (!word || !link_name_is_fine(word) || str_copy(i.name, sizeof(i.name), word) < 0)
		return -EINVAL;
	for (size_t k = 0; k < s->n_interfaces; k++)
		if (str_eq(s->interfaces[k].name, i.name))
			return -EINVAL;
	for (word = strtok_r(NULL, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		if (interface_word(&i, word, &rest) < 0)
			return -EINVAL;
	s->interfaces[s->n_interfaces++] = i;
	return 0;
}

/* ---- the rest ---- */

int config_system_dhcp_client(struct system_config *s, const char *value)
{
	size_t at = s->dhcp_client_len, n = s->n_dhcp_client;

	if (!value[0] || n == SYSTEM_CLIENT_WORDS_MAX || (n == 0 && value[0] != '/') ||
	    str_copy(s->dhcp_client + at, sizeof(s->dhcp_client) - at, value) < 0)
		return -EINVAL;
	s->dhcp_client_len += strlen(value) + 1;
	s->n_dhcp_client++;
	return 0;
}

int config_system_network_within(struct system_config *s, const char *value)
{
	nsec_t t;

	if (parse_duration(value, &t) < 0 || t == 0 || t > SYSTEM_TIME_MAX)
		return -EINVAL;
	s->network_within = t;
	return 0;
}

int config_system_dhcp_patience(struct system_config *s, const char *value)
{
	nsec_t t;

	if (parse_duration(value, &t) < 0 || t < SYSTEM_PATIENCE_MIN || t > SYSTEM_TIME_MAX)
		return -EINVAL;
	s->dhcp_patience = t;
	return 0;
}

int config_system_stop_within(struct system_config *s, const char *value)
{
	nsec_t t;

	if (parse_duration(value, &t) < 0 || t == 0 || t > SYSTEM_TIME_MAX)
		return -EINVAL;
	s->stop_within = t;
	return 0;
}
