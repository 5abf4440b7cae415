/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/gatemsg.h"

#include <errno.h>

#include "base/text/str.h"
#include "unit.h"

#define NODE "spiffe://nacre.local/node/n1"
#define GUEST NODE "/instance/0123456789abcdef"

static uint8_t packet[GATEMSG_SIZE_MAX];
static uint8_t big[GATE_CONSOLE_MAX + BOOTMSG_FRAME_MAX];

#define KEY                                                                                        \
	{                                                                                          \
		1, 2, 3                                                                            \
	}
#define BYTES(n)                                                                                   \
	{                                                                                          \
		big, n                                                                             \
	}

static const struct gatemsg good[] = {
	{ .type = GATEMSG_CA, .ca = { "nacre.local", "n1", GATE_CA_ROTATE, 1, 3600 } },
	{ .type = GATEMSG_CA_READY, .ca_ready = { BYTES(3), 5, 6 } },
	{ .type = GATEMSG_ISSUE, .issue = { 1, KEY, GUEST, 5, 6 } },
	{ .type = GATEMSG_ISSUED, .issued = { 1, BYTES(2) } },
	{ .type = GATEMSG_DENIED, .denied = { 0, "no" } },
	{ .type = GATEMSG_SETUP,
	  .setup = { NODE, GUEST, { 169, 254, 74, 2 }, 7474, KEY, BYTES(9) } },
	{ .type = GATEMSG_STATE, .state = { GATE_UP, 2, "" } },
	{ .type = GATEMSG_NEED, .need = { 7, GATE_GUEST, KEY } },
	{ .type = GATEMSG_FRAME, .frame = { BYTES(8) } },
	{ .type = GATEMSG_CONSOLE },
	{ .type = GATEMSG_CONSOLE_PART, .console_part = { UINT64_MAX, BYTES(0) } },
	{ .type = GATEMSG_NOTICE, .notice = { "who are you" } },
	{ .type = GATEMSG_END },
	{ .type = GATEMSG_KEY, .key = { KEY } },
	{ .type = GATEMSG_LIFE, .life = { BYTES(4), KEY } },
	{ .type = GATEMSG_KEPT },
	{ .type = GATEMSG_SCRAPE },
	{ .type = GATEMSG_CALLER, .caller = { 1, GUEST, GUEST "/x", "" } },
	{ .type = GATEMSG_CALLER, .caller = { 2, "", "", "no" } },
	{ .type = GATEMSG_WISH, .wish = { 3, 1, GATE_SVID_INSTANCE, BYTES(91) } },
	{ .type = GATEMSG_PART, .part = { 1 } },
	{ .type = GATEMSG_METADATA, .metadata = { 1, { NULL, 0 } } },
	{ .type = GATEMSG_LISTEN, .listen = { 1 } },
};

static void goes_and_comes(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct error err = ERROR_INIT;
		struct gatemsg m = { .type = GATEMSG_TYPE_COUNT };
		int n = gatemsg_encode(&good[i], packet, &err);

		CHECK(n > 0);
		CHECK_STR(err.text, "");
		CHECK_INT(gatemsg_decode(&m, packet, (size_t)n, &err), 0);
		CHECK_INT(m.type, good[i].type);
		CHECK_INT(gatemsg_length(packet, GATEMSG_HEADER_SIZE), n);
		CHECK_INT(gatemsg_length(packet, GATEMSG_HEADER_SIZE - 1), 0);
		if (m.type == GATEMSG_SETUP) {
			CHECK_STR(m.setup.own_id, NODE);
			CHECK_STR(m.setup.peer_id, GUEST);
			CHECK_INT(m.setup.address[3], 2);
			CHECK_INT(m.setup.port, 7474);
			CHECK_INT(m.setup.token[2], 3);
			CHECK_INT(m.setup.bundle.len, 9);
		}
		if (m.type == GATEMSG_CONSOLE_PART)
			CHECK(m.console_part.total == UINT64_MAX);
	}
}

static void at_the_limits(void)
{
	static char text[SPIFFE_SIZE + ERROR_TEXT_MAX];
	struct gatemsg m[] = {
		{ .type = GATEMSG_CONSOLE_PART, .console_part = { 1, BYTES(GATE_CONSOLE_MAX) } },
		{ .type = GATEMSG_FRAME, .frame = { BYTES(BOOTMSG_FRAME_MAX) } },
		{ .type = GATEMSG_CA_READY, .ca_ready = { BYTES(GATE_BUNDLE_MAX) } },
		{ .type = GATEMSG_ISSUED, .issued = { 1, BYTES(GATE_CHAIN_MAX) } },
		{ .type = GATEMSG_LIFE, .life = { BYTES(GATE_CHAIN_MAX), KEY } },
		{ .type = GATEMSG_SIGNED, .signed_ = { 1, KEY, BYTES(GATE_CHAIN_MAX) } },
		{ .type = GATEMSG_WANT, .want = { 1, BYTES(GATE_SPKI_MAX) } },
		{ .type = GATEMSG_FRONT, .front = { "x", BYTES(GATE_BUNDLE_MAX) } },
		{ .type = GATEMSG_REVOKED,
		  .revoked = { BYTES(GATE_REVOKED_MAX * GATE_SERIAL_SIZE) } },
		{ .type = GATEMSG_NOTICE, .notice = { text } },
	};
	size_t n_text = ARRAY_SIZE(m) - 1;
	size_t *lens[] = { &m[0].console_part.last.len, &m[1].frame.bytes.len,
			   &m[2].ca_ready.bundle.len,   &m[3].issued.chain.len,
			   &m[4].life.chain.len,        &m[5].signed_.chain.len,
			   &m[6].want.spki.len,         &m[7].front.bundle.len,
			   &m[8].revoked.serials.len };

	memset(text, 'x', ERROR_TEXT_MAX - 1);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++) {
		struct gatemsg back;
		int n = gatemsg_encode(&m[i], packet, NULL);

		CHECK(n > 0);
		CHECK_INT(gatemsg_decode(&back, packet, (size_t)n, NULL), 0);
		if (i < n_text)
			++*lens[i];
		text[ERROR_TEXT_MAX - 1] = 'x';
		CHECK_INT(gatemsg_encode(&m[i], packet, NULL), -EINVAL);
		text[ERROR_TEXT_MAX - 1] = '\0';
	}
}

static void refuses_to_send(void)
{
	static const struct gatemsg bad[] = {
		{ .type = GATEMSG_CA, .ca = { "Nacre", "n1" } },
		{ .type = GATEMSG_CA, .ca = { "nacre", "n/1" } },
		{ .type = GATEMSG_CA, .ca = { "nacre", "" } },
		{ .type = GATEMSG_CA_READY, .ca_ready = { BYTES(0) } },
		{ .type = GATEMSG_ISSUE, .issue = { 0, KEY, GUEST, 5, 6 } },
		{ .type = GATEMSG_ISSUE, .issue = { 1, KEY, "spiffe://nacre.local", 5, 6 } },
		{ .type = GATEMSG_ISSUE, .issue = { 1, KEY, GUEST "/", 5, 6 } },
		{ .type = GATEMSG_ISSUE, .issue = { 1, KEY, GUEST, 6, 6 } },
		{ .type = GATEMSG_ISSUE, .issue = { 1, KEY, GUEST, 5, UINT64_MAX } },
		{ .type = GATEMSG_DENIED, .denied = { 1, "" } },
		{ .type = GATEMSG_DENIED, .denied = { 1, "a\nb" } },
		{ .type = GATEMSG_SETUP, .setup = { NODE, GUEST, { 0 }, 0, KEY, BYTES(9) } },
		{ .type = GATEMSG_SETUP, .setup = { NODE, GUEST, { 0 }, 65535, KEY, BYTES(9) } },
		{ .type = GATEMSG_SETUP, .setup = { NODE, GUEST, { 0 }, 1, KEY, BYTES(0) } },
		{ .type = GATEMSG_SETUP,
		  .setup = { NODE, "spiffe://other/x", { 0 }, 1, KEY, BYTES(1) } },
		{ .type = GATEMSG_STATE, .state = { GATE_STATE_COUNT, 0, "" } },
		{ .type = GATEMSG_NEED, .need = { 0, GATE_GUEST, KEY } },
		{ .type = GATEMSG_NEED, .need = { 1, GATE_WHOSE_COUNT, KEY } },
		{ .type = GATEMSG_FRAME, .frame = { BYTES(3) } },
		{ .type = GATEMSG_SIGN, .sign = { 1, BYTES(GATE_SPKI_MAX + 1), GUEST, "", 5, 6 } },
		{ .type = GATEMSG_SIGN, .sign = { 1, BYTES(9), GUEST, "", 6, 6 } },
		{ .type = GATEMSG_SIGN, .sign = { 0, BYTES(9), GUEST, "", 5, 6 } },
		{ .type = GATEMSG_SIGNED, .signed_ = { 1, KEY, BYTES(0) } },
		{ .type = GATEMSG_FRONT, .front = { "Nacre", BYTES(9) } },
		{ .type = GATEMSG_WANT, .want = { 1, BYTES(0) } },
		{ .type = GATEMSG_REVOKED, .revoked = { BYTES(GATE_SERIAL_SIZE + 1) } },
		{ .type = GATEMSG_VISITOR, .visitor = { "alice", "x", KEY, 9 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int r = gatemsg_encode(&bad[i], packet, NULL);

		CHECK_INT(r, -EINVAL);
		if (r >= 0)
			printf("# case %zu\n", i);
	}
}

/* Every length of every message but its own, and every value of every byte of it. */
static void survives_other_bytes(void)
{
	static uint8_t other[1024];
	unsigned n_accepted = 0;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		int n = gatemsg_encode(&good[i], packet, NULL);
		struct gatemsg m;

		CHECK(n > 0 && (size_t)n + 8 < sizeof(other));
		for (size_t len = 0; len < (size_t)n + 8; len++) {
			memset(other, 0, sizeof(other));
			memcpy(other, packet, MIN(len, (size_t)n));
			if (len != (size_t)n)
				CHECK_INT(gatemsg_decode(&m, other, len, NULL), -EBADMSG);
		}
		for (size_t at = 0; at < (size_t)n; at++) {
			memcpy(other, packet, (size_t)n);
			for (int value = 0; value < 256; value++) {
				other[at] = (uint8_t)value;
				n_accepted += gatemsg_decode(&m, other, (size_t)n, NULL) == 0;
			}
		}
	}
	CHECK(n_accepted > 0);
}

UNIT_MAIN({ "goes_and_comes", goes_and_comes }, { "at_the_limits", at_the_limits },
	  { "refuses_to_send", refuses_to_send }, { "survives_other_bytes", survives_other_bytes })
