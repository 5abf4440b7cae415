/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/dhcp.h"

#include <arpa/inet.h>
#include <string.h>

#define IP_SIZE 20
#define UDP_SIZE 8
#define HEAD_SIZE 240 /* of DHCP, up to its options, with the cookie */
#define PROTOCOL_UDP 17
#define PORT_SERVER 67
#define PORT_CLIENT 68
#define BROADCAST_FLAG 0x80

enum dhcp_option {
	OPTION_PAD = 0,
	OPTION_MASK = 1,
	OPTION_ROUTER = 3,
	OPTION_MTU = 26,
	OPTION_ADDRESS = 50,
	OPTION_TYPE = 53,
	OPTION_SERVER = 54,
	OPTION_WANTED = 55,
	OPTION_END = 255,
};

/* Offsets in the head. */
enum dhcp_place {
	AT_OP = 0,
	AT_HARDWARE = 1,
	AT_HARDWARE_LEN = 2,
	AT_NUMBER = 4,
	AT_FLAGS = 10,
	AT_ADDRESS = 16,
	AT_MAC = 28,
	AT_COOKIE = 236,
};

static const uint8_t dhcp_cookie[4] = { 99, 130, 83, 99 };

static void put16(uint8_t *to, unsigned value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static unsigned get16(const uint8_t *from)
{
	return (unsigned)from[0] << 8 | from[1];
}

static unsigned ip_checksum(const uint8_t *head, size_t len)
{
	unsigned sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += get16(head + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* From nobody to everybody. A checksum of UDP over IPv4 may be left out. */
static void dhcp_put_heads(uint8_t packet[DHCP_PACKET_SIZE])
{
	uint8_t *ip = packet, *udp = packet + IP_SIZE;

	ip[0] = 0x45;
	put16(ip + 2, DHCP_PACKET_SIZE);
	ip[8] = 64;
	ip[9] = PROTOCOL_UDP;
	memset(ip + 16, 0xff, 4);
	put16(ip + 10, ip_checksum(ip, IP_SIZE));
	put16(udp, PORT_CLIENT);
	put16(udp + 2, PORT_SERVER);
	put16(udp + 4, DHCP_PACKET_SIZE - IP_SIZE);
}

static uint8_t *put_option(uint8_t *at, enum dhcp_option option, const uint8_t *data, uint8_t len)
{
	*at++ = (uint8_t)option;
	*at++ = len;
	memcpy(at, data, len);
	return at + len;
}

void dhcp_encode(const struct dhcp_ask *ask, uint8_t packet[DHCP_PACKET_SIZE])
{
	static const uint8_t wanted[] = { OPTION_MASK, OPTION_ROUTER, OPTION_MTU };
	uint8_t *d = packet + IP_SIZE + UDP_SIZE, *at = d + HEAD_SIZE;
	const uint8_t type = (uint8_t)ask->type;

	memset(packet, 0, DHCP_PACKET_SIZE);
	dhcp_put_heads(packet);
	d[AT_OP] = 1;
	d[AT_HARDWARE] = 1;
	d[AT_HARDWARE_LEN] = sizeof(ask->mac);
	put16(d + AT_NUMBER, ask->number >> 16);
	put16(d + AT_NUMBER + 2, ask->number & 0xffff);
	d[AT_FLAGS] = BROADCAST_FLAG;
	memcpy(d + AT_MAC, ask->mac, sizeof(ask->mac));
	memcpy(d + AT_COOKIE, dhcp_cookie, sizeof(dhcp_cookie));
	at = put_option(at, OPTION_TYPE, &type, 1);
	at = put_option(at, OPTION_WANTED, wanted, sizeof(wanted));
	if (ask->type == DHCP_REQUEST) {
		at = put_option(at, OPTION_ADDRESS, ask->address, sizeof(ask->address));
		at = put_option(at, OPTION_SERVER, ask->server, sizeof(ask->server));
	}
	*at = OPTION_END;
}

/* The DHCP in a packet to a client; NULL: there is none. */
static const uint8_t *dhcp_find(const uint8_t *packet, size_t len, size_t *ret_len)
{
	size_t ip = len > 0 ? (size_t)(packet[0] & 0xf) * 4 : 0, whole;
	const uint8_t *udp;

	if (len < IP_SIZE || packet[0] >> 4 != 4 || ip < IP_SIZE)
		return NULL;
	whole = get16(packet + 2);
	/* A short frame is filled up behind the packet; fragments are nobody's answer. */
	if (whole > len || whole < ip + UDP_SIZE + HEAD_SIZE || packet[9] != PROTOCOL_UDP ||
	    (get16(packet + 6) & 0x3fff) != 0)
		return NULL;
	udp = packet + ip;
	if (get16(udp) != PORT_SERVER || get16(udp + 2) != PORT_CLIENT ||
	    get16(udp + 4) > whole - ip || get16(udp + 4) < UDP_SIZE + HEAD_SIZE)
		return NULL;
	*ret_len = get16(udp + 4) - UDP_SIZE;
	return udp + UDP_SIZE;
}

static bool dhcp_mask(const uint8_t mask[4], uint32_t *ret)
{
	uint32_t bits = (uint32_t)get16(mask) << 16 | get16(mask + 2);

	/* Ones in front of zeroes. */
	if (bits == 0 || (~bits & (~bits + 1)) != 0)
		return false;
	*ret = (uint32_t)__builtin_popcount(bits);
	return true;
}

static bool dhcp_take(struct dhcp_answer *a, unsigned option, const uint8_t *data, size_t len)
{
	switch (option) {
	case OPTION_TYPE:
		a->type = (enum dhcp_type)data[0];
		return len == 1;
	case OPTION_SERVER:
		if (len == sizeof(a->server))
			memcpy(a->server, data, sizeof(a->server));
		return len == sizeof(a->server);
	case OPTION_MASK:
		return len == 4 && dhcp_mask(data, &a->prefix);
	case OPTION_ROUTER:
		if (len >= sizeof(a->gateway))
			memcpy(a->gateway, data, sizeof(a->gateway));
		return len >= sizeof(a->gateway) && len % 4 == 0;
	case OPTION_MTU:
		if (len == 2)
			a->mtu = get16(data);
		return len == 2 && a->mtu >= 576;
	default:
		return true;
	}
}

static bool dhcp_options(struct dhcp_answer *a, const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at != OPTION_END) {
		unsigned option = *at++;
		size_t len;

		if (option == OPTION_PAD)
			continue;
		if (at == end)
			return false;
		len = *at++;
		if (len == 0 || len > (size_t)(end - at) || !dhcp_take(a, option, at, len))
			return false;
		at += len;
	}
	return true;
}

bool dhcp_decode(struct dhcp_answer *ret, const struct dhcp_ask *ask, const uint8_t *packet,
		 size_t len)
{
	static const uint8_t none[4];
	struct dhcp_answer a = { .mtu = 0 };
	const uint8_t *d;
	size_t n = 0;

	d = dhcp_find(packet, len, &n);
	if (!d || d[AT_OP] != 2 || d[AT_HARDWARE] != 1 || d[AT_HARDWARE_LEN] != sizeof(ask->mac) ||
	    memcmp(d + AT_MAC, ask->mac, sizeof(ask->mac)) != 0 ||
	    memcmp(d + AT_COOKIE, dhcp_cookie, sizeof(dhcp_cookie)) != 0 ||
	    ((uint32_t)get16(d + AT_NUMBER) << 16 | get16(d + AT_NUMBER + 2)) != ask->number)
		return false;
	if (!dhcp_options(&a, d + HEAD_SIZE, d + n))
		return false;
	memcpy(a.address, d + AT_ADDRESS, sizeof(a.address));
	if (a.type != DHCP_NAK && (memcmp(a.address, none, sizeof(none)) == 0 || a.prefix == 0 ||
				   memcmp(a.server, none, sizeof(none)) == 0))
		return false;
	*ret = a;
	return ask->type == DHCP_DISCOVER ? a.type == DHCP_OFFER
					  : a.type == DHCP_ACK || a.type == DHCP_NAK;
}
