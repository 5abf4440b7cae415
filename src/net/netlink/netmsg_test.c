/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/netmsg.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/text/str.h"
#include "unit.h"

static struct netmsg_bytes all(const struct netmsg *m)
{
	return (struct netmsg_bytes){ m->data, m->len };
}

static void written_and_read(void)
{
	const struct ifinfomsg info = { .ifi_index = 7 };
	struct ifinfomsg got = { 0 };
	struct netmsg_bytes rest, inner;
	struct netmsg_head head;
	struct netattr a;
	struct netmsg m;
	uint32_t number = 0;
	char text[8];
	size_t at;

	netmsg_begin(&m, RTM_NEWLINK, NLM_F_REQUEST, &info, sizeof(info));
	netmsg_put_str(&m, 3, "eth0");
	at = netmsg_open(&m, 18);
	netmsg_put_u32(&m, 1, 0xdeadbeef);
	netmsg_put_u8(&m, 2, 9);
	netmsg_close(&m, at);
	netmsg_stamp(&m, 41, 42);
	CHECK(!m.full);
	CHECK_INT(m.len, 16 + 16 + 12 + 4 + 8 + 8);

	rest = all(&m);
	CHECK_INT(netmsg_next(&rest, &head), 1);
	CHECK(head.type == RTM_NEWLINK && head.flags == NLM_F_REQUEST);
	CHECK(head.seq == 41 && head.port == 42);
	CHECK_INT(netmsg_take(&head.body, &got, sizeof(got)), 0);
	CHECK_INT(got.ifi_index, 7);
	CHECK_INT(netattr_next(&head.body, &a), 1);
	CHECK_INT(a.type, 3);
	CHECK_INT(a.value.len, 5);
	CHECK_INT(netattr_str(&a, text, sizeof(text)), 0);
	CHECK_STR(text, "eth0");
	CHECK_INT(netattr_str(&a, text, 5), 0);
	CHECK_INT(netattr_str(&a, text, 4), -EBADMSG);
	CHECK_INT(netattr_next(&head.body, &a), 1);
	CHECK_INT(a.type, 18);
	inner = a.value;
	CHECK_INT(netattr_next(&inner, &a), 1);
	CHECK(a.type == 1 && netattr_u32(&a, &number) == 0 && number == 0xdeadbeef);
	CHECK_INT(netattr_next(&inner, &a), 1);
	CHECK(a.type == 2 && a.value.len == 1 && a.value.at[0] == 9);
	CHECK_INT(netattr_u32(&a, &number), -EBADMSG);
	CHECK_INT(netattr_next(&inner, &a), 0);
	CHECK_INT(netattr_next(&head.body, &a), 0);
	CHECK_INT(netmsg_next(&rest, &head), 0);
}

/* At the limit all is there, past it nothing is half there. */
static void no_room(void)
{
	uint8_t much[NETMSG_MAX] = { 1 };
	struct netmsg m;

	netmsg_begin(&m, 1, 0, NULL, 0);
	netmsg_put(&m, 1, much, NETMSG_MAX - 16 - 4);
	CHECK(!m.full);
	CHECK_INT(m.len, NETMSG_MAX);
	netmsg_put(&m, 1, NULL, 0);
	CHECK(m.full);
	CHECK_INT(m.len, NETMSG_MAX);

	netmsg_begin(&m, 1, 0, NULL, 0);
	CHECK(!m.full);
	netmsg_put(&m, 1, much, NETMSG_MAX - 16 - 3);
	CHECK(m.full);
	CHECK_INT(m.len, 16);

	/* Lengths that would wrap in the 16 bits that an attribute has, or in a sum. */
	for (unsigned i = 0; i < 4; i++) {
		static const size_t lengths[] = { 65531, 65536, 65536 + 8, SIZE_MAX - 2 };

		netmsg_begin(&m, 1, 0, NULL, 0);
		netmsg_put(&m, 1, much, lengths[i]);
		CHECK(m.full);
		CHECK_INT(m.len, 16);
	}

	/* What is open when it becomes full stays as it was. */
	netmsg_begin(&m, 1, 0, NULL, 0);
	{
		size_t at = netmsg_open(&m, 5);

		netmsg_put(&m, 1, much, NETMSG_MAX - 20);
		netmsg_close(&m, at);
	}
	CHECK(m.full);
}

static void nonsense_is_refused(void)
{
	static const struct {
		uint32_t words[8];
		size_t len;
		int result;
	} messages[] = {
		{ { 16, 0, 0, 0 }, 16, 1 },
		{ { 16, 0, 0, 0 }, 15, -EBADMSG },
		{ { 15, 0, 0, 0 }, 16, -EBADMSG },
		{ { 0, 0, 0, 0 }, 16, -EBADMSG },
		{ { 17, 0, 0, 0 }, 16, -EBADMSG },
		{ { UINT32_MAX, 0, 0, 0 }, 16, -EBADMSG },
		{ { 0x80000010, 0, 0, 0 }, 32, -EBADMSG },
		{ { 17, 0, 0, 0, 1 }, 17, 1 },
		{ { 0 }, 1, -EBADMSG },
		{ { 0 }, 0, 0 },
	};
	static const struct {
		uint16_t words[4];
		size_t len;
		int result;
	} attributes[] = {
		{ { 4, 1 }, 4, 1 },
		{ { 4, 1 }, 3, -EBADMSG },
		{ { 3, 1 }, 4, -EBADMSG },
		{ { 0, 1 }, 4, -EBADMSG },
		{ { 5, 1 }, 4, -EBADMSG },
		{ { 5, 1, 7 }, 5, 1 },
		{ { 65535, 1 }, 8, -EBADMSG },
	};
	struct netmsg_head head;
	struct netattr a;

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		struct netmsg_bytes rest = { (const uint8_t *)messages[i].words, messages[i].len };

		CHECK_INT(netmsg_next(&rest, &head), messages[i].result);
		CHECK(messages[i].result != 1 || rest.len == 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		struct netmsg_bytes rest = { (const uint8_t *)attributes[i].words,
					     attributes[i].len };

		CHECK_INT(netattr_next(&rest, &a), attributes[i].result);
	}
	/* A string without an end, and an empty one without even that. */
	a = (struct netattr){ .value = { (const uint8_t *)"abc", 3 } };
	{
		char text[8];

		CHECK_INT(netattr_str(&a, text, sizeof(text)), -EBADMSG);
		a.value.len = 0;
		CHECK_INT(netattr_str(&a, text, sizeof(text)), -EBADMSG);
		a.value.len = 4;
		CHECK_INT(netattr_str(&a, text, sizeof(text)), 0);
	}
}

/* A verdict as the kernel writes it. */
static struct netmsg_head verdict_of(struct netmsg *m, uint16_t type, uint16_t flags, int code,
				     size_t n_echoed, const char *text)
{
	const uint8_t echoed[64] = { 0 };
	struct nlmsgerr body = { .error = code, .msg = { .nlmsg_len = 16 + (uint32_t)n_echoed } };
	struct netmsg_bytes rest;
	struct netmsg_head head = { 0 };

	netmsg_begin(m, type, flags, &body, type == NLMSG_DONE ? sizeof(int) : sizeof(body));
	if (!(flags & NLM_F_CAPPED))
		netmsg_put_raw(m, echoed, n_echoed);
	if (text) {
		netmsg_put_str(m, NLMSGERR_ATTR_MSG, text);
		netmsg_put_u32(m, NLMSGERR_ATTR_OFFS, 20);
	}
	/* The length of the message as a whole is only counted when an attribute is put. */
	rest = (struct netmsg_bytes){ m->data, m->len };
	memcpy(m->data, &(uint32_t){ (uint32_t)m->len }, sizeof(uint32_t));
	CHECK_INT(netmsg_next(&rest, &head), 1);
	return head;
}

static void verdicts(void)
{
	struct netmsg_verdict v;
	struct netmsg_head head;
	struct netmsg m;
	char much[NETMSG_TEXT_MAX + 10];

	head = verdict_of(&m, NLMSG_ERROR, NLM_F_CAPPED, 0, 32, NULL);
	CHECK_INT(netmsg_verdict(&head, &v), 0);
	CHECK(v.code == 0 && v.text[0] == '\0' && !v.is_about_attr);
	head = verdict_of(&m, NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, -EEXIST, 32, "taken");
	CHECK_INT(netmsg_verdict(&head, &v), 0);
	CHECK_INT(v.code, -EEXIST);
	CHECK_STR(v.text, "taken");
	CHECK(v.is_about_attr && v.offset == 20);
	/* A kernel that sends the request back stands it in front of its words. */
	head = verdict_of(&m, NLMSG_ERROR, NLM_F_ACK_TLVS, -EINVAL, 32, "bad");
	CHECK_INT(netmsg_verdict(&head, &v), 0);
	CHECK_STR(v.text, "bad");
	head = verdict_of(&m, NLMSG_DONE, NLM_F_ACK_TLVS, -EPERM, 0, "no");
	CHECK_INT(netmsg_verdict(&head, &v), 0);
	CHECK_INT(v.code, -EPERM);
	CHECK_STR(v.text, "no");
	head.body.len = 0;
	CHECK_INT(netmsg_verdict(&head, &v), 0);
	CHECK_INT(v.code, 0);

	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	head = verdict_of(&m, NLMSG_DONE, NLM_F_ACK_TLVS, -EPERM, 0, much);
	CHECK_INT(netmsg_verdict(&head, &v), 0);
	CHECK_INT(strlen(v.text), NETMSG_TEXT_MAX - 1);

	/* No errno, too short, an echo that is longer than the message, or shorter than a head. */
	head = verdict_of(&m, NLMSG_ERROR, NLM_F_CAPPED, 5, 0, NULL);
	CHECK_INT(netmsg_verdict(&head, &v), -EBADMSG);
	head = verdict_of(&m, NLMSG_ERROR, NLM_F_CAPPED, INT32_MIN, 0, NULL);
	CHECK_INT(netmsg_verdict(&head, &v), -EBADMSG);
	head = verdict_of(&m, NLMSG_ERROR, 0, -EPERM, 32, NULL);
	head.body.len -= 4;
	CHECK_INT(netmsg_verdict(&head, &v), -EBADMSG);
	head.body.len = 16;
	CHECK_INT(netmsg_verdict(&head, &v), -EBADMSG);
	head = verdict_of(&m, NLMSG_ERROR, 0, -EPERM, (size_t)0 - 8, NULL);
	CHECK_INT(netmsg_verdict(&head, &v), -EBADMSG);
}

UNIT_MAIN({ "written_and_read", written_and_read }, { "no_room", no_room },
	  { "nonsense_is_refused", nonsense_is_refused }, { "verdicts", verdicts })
