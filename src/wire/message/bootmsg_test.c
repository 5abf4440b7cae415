/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/bootmsg.h"

#include <errno.h>

#include "base/text/str.h"
#include "unit.h"

#define PARENT "spiffe://nacre.local/node/n1"
#define OWN PARENT "/instance/0123456789abcdef"

static uint8_t frame[BOOTMSG_FRAME_MAX];
static const uint8_t noise[BOOTMSG_ENTROPY_MAX + 1] = { 1, 2, 3 };
static uint8_t cert[BOOTMSG_CERT_MAX + 1] = { 0x30 };

static struct bootmsg a_boot(void)
{
	return (struct bootmsg){
		.type = BOOTMSG_BOOT,
		.boot = { .entropy = { noise, BOOTMSG_ENTROPY_MIN },
			  .wall_clock_ns = UINT64_C(1790000000123456789),
			  .hostname = "web",
			  .title = "pod/web",
			  .instance_id = "0123456789abcdef",
			  .address = { 169, 254, 74, 2 },
			  .prefix = 30,
			  .gateway = { 169, 254, 74, 1 },
			  .mac = { 2, 0x6e, 0x61, 0x63, 0x72, 2 },
			  .mtu = 1500,
			  .token = { 9, 8, 7 },
			  .bundle = { { { cert, 3 }, { cert, 5 } }, 2 },
			  .parent_id = PARENT,
			  .own_id = OWN },
	};
}

static void a_boot_goes_and_comes(void)
{
	struct bootmsg boot = a_boot(), m;
	struct error err = ERROR_INIT;
	int n = bootmsg_encode(&boot, frame, &err);

	CHECK_STR(err.text, "");
	CHECK(n > 0);
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n + 7, &err), n);
	CHECK_INT(m.type, BOOTMSG_BOOT);
	CHECK_INT(m.boot.entropy.len, BOOTMSG_ENTROPY_MIN);
	CHECK(memcmp(m.boot.entropy.data, noise, BOOTMSG_ENTROPY_MIN) == 0);
	CHECK(m.boot.wall_clock_ns == UINT64_C(1790000000123456789));
	CHECK_STR(m.boot.hostname, "web");
	CHECK_STR(m.boot.title, "pod/web");
	CHECK_STR(m.boot.instance_id, "0123456789abcdef");
	CHECK(memcmp(m.boot.address, boot.boot.address, 4) == 0);
	CHECK_INT(m.boot.prefix, 30);
	CHECK(memcmp(m.boot.gateway, boot.boot.gateway, 4) == 0);
	CHECK(memcmp(m.boot.mac, boot.boot.mac, 6) == 0);
	CHECK_INT(m.boot.mtu, 1500);
	CHECK(memcmp(m.boot.token, boot.boot.token, BOOTMSG_TOKEN_SIZE) == 0);
	CHECK_INT(m.boot.bundle.n, 2);
	CHECK_INT(m.boot.bundle.item[1].len, 5);
	CHECK_STR(m.boot.parent_id, PARENT);
	CHECK_STR(m.boot.own_id, OWN);
}

/* What is on the wire, byte for byte: another program speaks it too. */
static void a_nic_goes_and_comes(void)
{
	struct bootmsg nic = { .type = BOOTMSG_NIC,
			       .nic = { .mac = { 2, 0, 0, 0, 0, 7 },
					.mtu = 9000,
					.address = "192.0.2.5/24",
					.gateway = "" } },
		       m;
	struct error err = ERROR_INIT;
	int n = bootmsg_encode(&nic, frame, &err);

	CHECK(n > 0);
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n, &err), n);
	CHECK_INT(m.type, BOOTMSG_NIC);
	CHECK(memcmp(m.nic.mac, nic.nic.mac, 6) == 0);
	CHECK_INT(m.nic.mtu, 9000);
	CHECK_STR(m.nic.address, "192.0.2.5/24");
	CHECK_STR(m.nic.gateway, "");
	nic.nic.mtu = BOOTMSG_MTU_MIN - 1;
	CHECK(bootmsg_encode(&nic, frame, &err) < 0);
	CHECK_STR(err.text, "a frame of the boot port: nic.mtu is out of bounds");
}

static void a_link_goes_and_comes(void)
{
	struct bootmsg link = { .type = BOOTMSG_LINK,
				.link = { .device = { 2, 0, 0, 0, 0, 3 },
					  .mac = { 2, 0, 0, 0, 0, 7 },
					  .mtu = 9000,
					  .leads_out = 1,
					  .name = "eth0",
					  .address = "192.0.2.5/24",
					  .gateway = "192.0.2.1",
					  .address6 = "" } },
		       m;
	struct error err = ERROR_INIT;
	int n = bootmsg_encode(&link, frame, &err);

	CHECK(n > 0);
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n, &err), n);
	CHECK_INT(m.type, BOOTMSG_LINK);
	CHECK(memcmp(m.link.device, link.link.device, 6) == 0);
	CHECK(memcmp(m.link.mac, link.link.mac, 6) == 0);
	CHECK_INT(m.link.mtu, 9000);
	CHECK_INT(m.link.leads_out, 1);
	CHECK_STR(m.link.name, "eth0");
	CHECK_STR(m.link.address, "192.0.2.5/24");
	CHECK_STR(m.link.gateway, "192.0.2.1");
	CHECK_STR(m.link.address6, "");
	link.link.leads_out = 2;
	CHECK(bootmsg_encode(&link, frame, &err) < 0);
	link.link.leads_out = 0;
	link.link.name = "a-name-of-16-byt";
	CHECK(bootmsg_encode(&link, frame, &err) < 0);
	CHECK_STR(err.text, "a frame of the boot port: link.name is out of bounds");
}

static void the_bytes_of_ready(void)
{
	static const uint8_t want[] = "\x18\0\0\0ncb\0\1\0\1\0"
				      "\1\0\2\0"
				      "1\0"
				      "\2\0\6\0"
				      "6.1.0";
	const struct bootmsg ready = { .type = BOOTMSG_READY, .ready = { "1", "6.1.0" } };

	CHECK_INT(bootmsg_encode(&ready, frame, NULL), sizeof(want));
	CHECK(memcmp(frame, want, sizeof(want)) == 0);
}

static void frames_follow_each_other(void)
{
	const struct bootmsg failed = { .type = BOOTMSG_FAILED, .failed = { "no interface" } };
	const struct bootmsg stop = { .type = BOOTMSG_STOP };
	int first = bootmsg_encode(&failed, frame, NULL), n;
	struct bootmsg m;

	CHECK(first > 0);
	n = bootmsg_encode(&stop, frame + first, NULL);
	CHECK_INT(n, 12);
	CHECK_INT(bootmsg_next(&m, frame, (size_t)(first + n), NULL), first);
	CHECK_STR(m.failed.text, "no interface");
	CHECK_INT(bootmsg_next(&m, frame + first, (size_t)n, NULL), n);
	CHECK_INT(m.type, BOOTMSG_STOP);
}

static void waits_for_the_whole(void)
{
	struct bootmsg boot = a_boot(), m = { .type = BOOTMSG_STOP };
	int n = bootmsg_encode(&boot, frame, NULL);

	for (size_t len = 0; len < (size_t)n; len++)
		CHECK_INT(bootmsg_next(&m, frame, len, NULL), 0);
	CHECK_INT(m.type, BOOTMSG_STOP);
}

static void refuses_to_send(void)
{
	static char long_text[BOOTMSG_SPIFFE_MAX + 2];
	struct bootmsg bad[22];
	size_t n = 0;

	memset(long_text, 'x', sizeof(long_text) - 1);
	memcpy(long_text, "spiffe://", 9);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = a_boot();
	bad[n++].boot.entropy.len = BOOTMSG_ENTROPY_MIN - 1;
	bad[n++].boot.entropy.len = BOOTMSG_ENTROPY_MAX + 1;
	bad[n++].boot.wall_clock_ns = UINT64_MAX;
	bad[n++].boot.hostname = "a.b";
	bad[n++].boot.hostname = NULL;
	bad[n++].boot.title = "";
	bad[n++].boot.title = "a//b";
	bad[n++].boot.instance_id = "0123456789abcde";
	bad[n++].boot.instance_id = "0123456789abcdeg";
	bad[n++].boot.prefix = 0;
	bad[n++].boot.prefix = 33;
	bad[n++].boot.mtu = BOOTMSG_MTU_MIN - 1;
	bad[n++].boot.mtu = UINT16_MAX + 1;
	bad[n++].boot.bundle.n = 0;
	bad[n++].boot.bundle.n = BOOTMSG_BUNDLE_MAX + 1;
	bad[n++].boot.bundle.item[1].len = BOOTMSG_CERT_MAX + 1;
	bad[n++].boot.bundle.item[0].len = 0;
	bad[n++].boot.own_id = "spiffe://";
	bad[n++].boot.own_id = "spiffe:///node";
	bad[n++].boot.own_id = "https://nacre.local/node";
	bad[n++].boot.parent_id = PARENT "?";
	bad[n++].boot.parent_id = long_text;
	for (size_t i = 0; i < n; i++) {
		int r = bootmsg_encode(&bad[i], frame, NULL);

		CHECK_INT(r, -EINVAL);
		if (r >= 0)
			printf("# case %zu\n", i);
	}
	long_text[BOOTMSG_SPIFFE_MAX] = '\0';
	CHECK(bootmsg_encode(&bad[n - 1], frame, NULL) > 0);
}

static void takes_what_is_largest(void)
{
	struct bootmsg boot = a_boot(), m;
	int n;

	boot.boot.entropy.len = BOOTMSG_ENTROPY_MAX;
	for (size_t i = 0; i < BOOTMSG_BUNDLE_MAX; i++)
		boot.boot.bundle.item[i] = (struct bootmsg_blob){ cert, BOOTMSG_CERT_MAX };
	boot.boot.bundle.n = BOOTMSG_BUNDLE_MAX;
	n = bootmsg_encode(&boot, frame, NULL);
	CHECK(n > 0);
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n, NULL), n);
	CHECK_INT(m.boot.bundle.n, BOOTMSG_BUNDLE_MAX);
}

/* Every value of every byte: what is taken is written again as it was. */
static void survives_other_bytes(void)
{
	static uint8_t other[1024], again[BOOTMSG_FRAME_MAX];
	struct bootmsg boot = a_boot(), m;
	int n = bootmsg_encode(&boot, frame, NULL);
	unsigned n_taken = 0;

	CHECK(n > 0 && (size_t)n < sizeof(other));
	for (size_t at = 0; at < (size_t)n; at++)
		for (int value = 0; value < 256; value++) {
			memcpy(other, frame, (size_t)n);
			other[at] = (uint8_t)value;
			if (bootmsg_next(&m, other, (size_t)n, NULL) <= 0)
				continue;
			n_taken++;
			CHECK_INT(bootmsg_encode(&m, again, NULL), n);
			CHECK(memcmp(again, other, (size_t)n) == 0);
		}
	CHECK(n_taken > 0);
}

static void says_at_once_what_is_wrong(void)
{
	const struct bootmsg stop = { .type = BOOTMSG_STOP };
	struct error err = ERROR_INIT;
	struct bootmsg m;

	CHECK_INT(bootmsg_encode(&stop, frame, NULL), 12);
	frame[8] = 2;
	CHECK_INT(bootmsg_next(&m, frame, 12, &err), -EPROTONOSUPPORT);
	CHECK(strstr(err.text, "version 2 there, in 1 here"));
	frame[4] = 'x';
	CHECK_INT(bootmsg_next(&m, frame, 12, NULL), -EBADMSG);
	/* 65,537 bytes are announced, and one less than a head has: neither is waited for. */
	memcpy(frame, "\1\0\1\0", 4);
	CHECK_INT(bootmsg_next(&m, frame, 4, NULL), -EBADMSG);
	memcpy(frame, "\7\0\0\0", 4);
	CHECK_INT(bootmsg_next(&m, frame, 4, NULL), -EBADMSG);
}

static void refuses_hidden_text(void)
{
	const struct bootmsg failed = { .type = BOOTMSG_FAILED, .failed = { "abcd" } };
	int n = bootmsg_encode(&failed, frame, NULL);
	struct bootmsg m;

	CHECK(n > 5);
	frame[n - 3] = '\0';
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n, NULL), -EBADMSG);
	frame[n - 3] = '\n';
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n, NULL), -EBADMSG);
	frame[n - 3] = 'c';
	frame[n - 1] = 'e';
	CHECK_INT(bootmsg_next(&m, frame, (size_t)n, NULL), -EBADMSG);
}

UNIT_MAIN({ "a_boot_goes_and_comes", a_boot_goes_and_comes },
	  { "a_nic_goes_and_comes", a_nic_goes_and_comes },
	  { "a_link_goes_and_comes", a_link_goes_and_comes },
	  { "the_bytes_of_ready", the_bytes_of_ready },
	  { "frames_follow_each_other", frames_follow_each_other },
	  { "waits_for_the_whole", waits_for_the_whole }, { "refuses_to_send", refuses_to_send },
	  { "takes_what_is_largest", takes_what_is_largest },
	  { "survives_other_bytes", survives_other_bytes },
	  { "says_at_once_what_is_wrong", says_at_once_what_is_wrong },
	  { "refuses_hidden_text", refuses_hidden_text })
