/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/netmsg.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

static_assert(NLMSG_HDRLEN == 16 && NLA_HDRLEN == 4, "heads without holes");
static_assert(NETMSG_MAX % NLMSG_ALIGNTO == 0, "the last attribute has room for its padding");

/* ---- a request ---- */

/* Room for len bytes and their padding, which is zero; NULL where there is none. */
static uint8_t *netmsg_room(struct netmsg *m, size_t len)
{
	uint8_t *at = m->data + m->len;
	size_t whole;

	if (m->full || len > NETMSG_MAX - m->len) {
		m->full = true;
		return NULL;
	}
	whole = NLMSG_ALIGN(len);
	memset(at, 0, whole);
	m->len += whole;
	return at;
}

void netmsg_put_raw(struct netmsg *m, const void *data, size_t len)
{
	uint8_t *at = netmsg_room(m, len);

	if (at && len > 0)
		memcpy(at, data, len);
}

/* The length of what has been put since `at`, into the head there. */
static void netmsg_set_length(struct netmsg *m, size_t at, size_t len)
{
	uint16_t of_attr = (uint16_t)len;

	memcpy(m->data + at + offsetof(struct nlattr, nla_len), &of_attr, sizeof(of_attr));
}

static void netmsg_measure(struct netmsg *m)
{
	uint32_t len = (uint32_t)m->len;

	memcpy(m->data + offsetof(struct nlmsghdr, nlmsg_len), &len, sizeof(len));
}

void netmsg_begin(struct netmsg *m, uint16_t type, uint16_t flags, const void *body, size_t len)
{
	const struct nlmsghdr head = { .nlmsg_type = type, .nlmsg_flags = flags };

	m->len = 0;
	m->full = false;
	netmsg_put_raw(m, &head, sizeof(head));
	netmsg_put_raw(m, body, len);
	netmsg_measure(m);
}

void netmsg_put(struct netmsg *m, uint16_t type, const void *data, size_t len)
{
	const struct nlattr head = { .nla_type = type };
	size_t at = m->len;

	/* All or nothing, and before the sum could wrap or the length pass its 16 bits. */
	if (len > NETMSG_MAX - NLA_HDRLEN || NLA_HDRLEN + len > NETMSG_MAX - m->len)
		m->full = true;
	netmsg_put_raw(m, &head, sizeof(head));
	netmsg_put_raw(m, data, len);
	if (m->full)
		return;
	netmsg_set_length(m, at, NLA_HDRLEN + len);
	netmsg_measure(m);
}

void netmsg_put_u8(struct netmsg *m, uint16_t type, uint8_t value)
{
	netmsg_put(m, type, &value, sizeof(value));
}

void netmsg_put_u32(struct netmsg *m, uint16_t type, uint32_t value)
{
	netmsg_put(m, type, &value, sizeof(value));
}

void netmsg_put_str(struct netmsg *m, uint16_t type, const char *value)
{
	netmsg_put(m, type, value, strlen(value) + 1);
}

size_t netmsg_open(struct netmsg *m, uint16_t type)
{
	size_t at = m->len;

	netmsg_put(m, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void netmsg_close(struct netmsg *m, size_t at)
{
	if (m->full)
		return;
	netmsg_set_length(m, at, m->len - at);
	netmsg_measure(m);
}

void netmsg_stamp(struct netmsg *m, uint32_t seq, uint32_t port)
{
	memcpy(m->data + offsetof(struct nlmsghdr, nlmsg_seq), &seq, sizeof(seq));
	memcpy(m->data + offsetof(struct nlmsghdr, nlmsg_pid), &port, sizeof(port));
}

/* ---- answers ---- */

/* Drops len bytes and their padding; the last part of a whole may lack that. */
static void netmsg_skip(struct netmsg_bytes *rest, size_t len)
{
	size_t whole = MIN((size_t)NLMSG_ALIGN(len), rest->len);

	rest->at += whole;
	rest->len -= whole;
}

int netmsg_take(struct netmsg_bytes *rest, void *ret, size_t len)
{
	if (rest->len < len)
		return -EBADMSG;
	memcpy(ret, rest->at, len);
	netmsg_skip(rest, len);
	return 0;
}

int netmsg_next(struct netmsg_bytes *rest, struct netmsg_head *ret)
{
	struct nlmsghdr head;

	if (rest->len == 0)
		return 0;
	if (rest->len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, rest->at, sizeof(head));
	if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > rest->len)
		return -EBADMSG;
	*ret = (struct netmsg_head){
		.type = head.nlmsg_type,
		.flags = head.nlmsg_flags,
		.seq = head.nlmsg_seq,
		.port = head.nlmsg_pid,
		.body = { rest->at + sizeof(head), head.nlmsg_len - sizeof(head) },
	};
	netmsg_skip(rest, head.nlmsg_len);
	return 1;
}

int netattr_next(struct netmsg_bytes *rest, struct netattr *ret)
{
	struct nlattr head;

	if (rest->len == 0)
		return 0;
	if (rest->len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, rest->at, sizeof(head));
	if (head.nla_len < sizeof(head) || head.nla_len > rest->len)
		return -EBADMSG;
	ret->type = head.nla_type & NLA_TYPE_MASK;
	ret->value = (struct netmsg_bytes){ rest->at + sizeof(head), head.nla_len - sizeof(head) };
	netmsg_skip(rest, head.nla_len);
	return 1;
}

int netattr_bytes(const struct netattr *a, void *ret, size_t len)
{
	if (a->value.len != len)
		return -EBADMSG;
	memcpy(ret, a->value.at, len);
	return 0;
}

int netattr_u32(const struct netattr *a, uint32_t *ret)
{
	return netattr_bytes(a, ret, sizeof(*ret));
}

int netattr_str(const struct netattr *a, char *ret, size_t size)
{
	size_t len = strnlen((const char *)a->value.at, a->value.len);

	if (len == a->value.len || len >= size)
		return -EBADMSG;
	memcpy(ret, a->value.at, len + 1);
	return 0;
}

static int netmsg_verdict_attrs(struct netmsg_bytes rest, struct netmsg_verdict *v)
{
	struct netattr a;
	int r;

	for (;;) {
		r = netattr_next(&rest, &a);
		if (r <= 0)
			return r;
		if (a.type == NLMSGERR_ATTR_MSG) {
			size_t len = strnlen((const char *)a.value.at, a.value.len);

			len = MIN(len, sizeof(v->text) - 1);
			memcpy(v->text, a.value.at, len);
			v->text[len] = '\0';
		} else if (a.type == NLMSGERR_ATTR_OFFS) {
			r = netattr_u32(&a, &v->offset);
			if (r < 0)
				return r;
			v->is_about_attr = true;
		}
	}
}

int netmsg_verdict(const struct netmsg_head *head, struct netmsg_verdict *ret)
{
	struct netmsg_verdict v = { .code = 0 };
	struct netmsg_bytes rest = head->body;
	int32_t code = 0;
	int r;

	/* Before 4.20 the end of a list says nothing at all. */
	if (head->type == NLMSG_DONE && rest.len == 0) {
		*ret = v;
		return 0;
	}
	r = netmsg_take(&rest, &code, sizeof(code));
	if (r < 0)
		return r;
	/* No errno is larger; and the negation below must be one, too. */
	if (code > 0 || code < -4095)
		return -EBADMSG;
	v.code = code;
	if (head->type == NLMSG_ERROR) {
		struct nlmsghdr request;

		r = netmsg_take(&rest, &request, sizeof(request));
		if (r < 0)
			return r;
		/* The whole request comes back, where it was refused and the head is not enough. */
		if (code != 0 && !(head->flags & NLM_F_CAPPED)) {
			if (request.nlmsg_len < sizeof(request) ||
			    request.nlmsg_len - sizeof(request) > rest.len)
				return -EBADMSG;
			netmsg_skip(&rest, request.nlmsg_len - sizeof(request));
		}
	}
	if (head->flags & NLM_F_ACK_TLVS) {
		r = netmsg_verdict_attrs(rest, &v);
		if (r < 0)
			return r;
	}
	*ret = v;
	return 0;
}
