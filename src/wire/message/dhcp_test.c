/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/dhcp.h"

#include <string.h>

#include "base/macros.h"
#include "unit.h"

#define HEADS 28
#define OPTIONS (HEADS + 240)

static const struct dhcp_ask ask = { .type = DHCP_DISCOVER,
				     .number = 0x01020304,
				     .mac = { 2, 1, 2, 3, 4, 5 } };

static unsigned get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* As a server answers: what was asked, turned round. The length of the packet. */
static size_t answer(uint8_t packet[512], const uint8_t *options, size_t n)
{
	memset(packet, 0, 512);
	dhcp_encode(&ask, packet);
	memset(packet + OPTIONS, 0, DHCP_PACKET_SIZE - OPTIONS);
	packet[20] = 0;
	packet[21] = 67;
	packet[22] = 0;
	packet[23] = 68;
	packet[HEADS] = 2;
	memcpy(packet + HEADS + 16, (const uint8_t[]){ 10, 0, 2, 15 }, 4);
	memcpy(packet + OPTIONS, options, n);
	return DHCP_PACKET_SIZE;
}

static const uint8_t offer[] = { 53,  1,   2, 54,   4,    10, 0,  2, 2,   1,   4,  255,
				 255, 255, 0, 3,    8,    10, 0,  2, 1,   9,   9,  9,
				 9,   26,  2, 0x23, 0x29, 0,  12, 2, 'h', 'i', 255 };

static void asks(void)
{
	uint8_t packet[DHCP_PACKET_SIZE];
	unsigned sum = 0;

	dhcp_encode(&ask, packet);
	for (int i = 0; i < 20; i += 2)
		sum += get16(packet + i);
	CHECK_INT((sum & 0xffff) + (sum >> 16), 0xffff);
	CHECK_INT(get16(packet + 2), DHCP_PACKET_SIZE);
	CHECK_INT(get16(packet + 22), 67);
	CHECK(memcmp(packet + HEADS + 28, ask.mac, 6) == 0);
	CHECK(memcmp(packet + OPTIONS, (const uint8_t[]){ 53, 1, 1 }, 3) == 0);
}

static void takes_an_offer(void)
{
	struct dhcp_answer a;
	uint8_t packet[512];
	size_t n = answer(packet, offer, sizeof(offer));

	CHECK(dhcp_decode(&a, &ask, packet, n));
	CHECK(memcmp(a.address, (const uint8_t[]){ 10, 0, 2, 15 }, 4) == 0);
	CHECK(memcmp(a.server, (const uint8_t[]){ 10, 0, 2, 2 }, 4) == 0);
	CHECK(memcmp(a.gateway, (const uint8_t[]){ 10, 0, 2, 1 }, 4) == 0);
	CHECK_INT(a.prefix, 24);
	CHECK_INT(a.mtu, 9001);
	/* A short frame is filled up. */
	CHECK(dhcp_decode(&a, &ask, packet, 512));
}

static void takes_nothing_else(void)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
		{ 0, 0x65 },
		{ 0, 0x44 },
		{ 9, 6 },
		{ 6, 0x20 },
		{ 21, 68 },
		{ 23, 67 },
		{ HEADS, 1 },
		{ HEADS + 4, 9 },
		{ HEADS + 28, 9 },
		{ HEADS + 236, 0 },
		{ OPTIONS + 2, 1 },
		{ OPTIONS + 2, 5 },
		{ OPTIONS + 1, 200 },
		{ OPTIONS + 4, 3 },
		{ OPTIONS + 12, 0 },
		{ OPTIONS + 9, 12 },
		{ OPTIONS + 16, 7 },
		{ OPTIONS + 27, 1 },
		{ 3, 0 },
		{ 25, 10 },
	};
	struct dhcp_answer a;
	uint8_t packet[512];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		size_t n = answer(packet, offer, sizeof(offer));

		packet[wrong[i].at] = wrong[i].value;
		if (dhcp_decode(&a, &ask, packet, n))
			CHECK_INT(i, -1);
	}
	for (size_t n = 0; n < DHCP_PACKET_SIZE; n++)
		CHECK(!dhcp_decode(&a, &ask, packet, n));
}

static void tells_refusals(void)
{
	static const uint8_t nak[] = { 53, 1, 6, 255 };
	struct dhcp_ask request = ask;
	struct dhcp_answer a;
	uint8_t packet[512];
	size_t n = answer(packet, nak, sizeof(nak));

	CHECK(!dhcp_decode(&a, &ask, packet, n));
	request.type = DHCP_REQUEST;
	CHECK(dhcp_decode(&a, &request, packet, n));
	CHECK_INT(a.type, DHCP_NAK);
}

UNIT_MAIN({ "it asks in packets of IP", asks }, { "it takes an offer", takes_an_offer },
	  { "what is no answer is passed over", takes_nothing_else },
	  { "it tells refusals", tells_refusals })
