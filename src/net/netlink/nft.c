/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "net/netlink/netmsg.h"

/* A table with a thousand pods has some hundred KiB. */
#define NFT_SEND_BUFFER (16 << 20)
#define NFT_ANSWER_MAX 8192
#define NFT_ATTR_MAX 65535

void nft_batch_done(struct nft_batch *b)
{
	buf_done(&b->b);
}

/* ---- writing ---- */

static void nft_raw(struct nft_batch *b, const void *data, size_t len)
{
	static const uint8_t padding[NLMSG_ALIGNTO];
	int r = 0;

	if (!b->failed && len > 0)
		r = buf_add(&b->b, data, len);
	if (!b->failed && r == 0)
		r = buf_add(&b->b, padding, NLMSG_ALIGN(len) - len);
	if (r < 0)
		b->failed = r;
}

static uint8_t *nft_at(struct nft_batch *b, size_t at)
{
	return b->b.base + b->b.head + at;
}

static void nft_end_message(struct nft_batch *b)
{
	const uint32_t len = (uint32_t)(b->b.len - b->message);

	if (!b->failed && len > 0)
		memcpy(nft_at(b, b->message), &len, sizeof(len));
}

static void nft_begin_message(struct nft_batch *b, uint16_t type, uint16_t flags, uint8_t family,
			      uint16_t resource)
{
	const struct nlmsghdr head = { .nlmsg_type = type,
				       .nlmsg_flags = NLM_F_REQUEST | flags,
				       .nlmsg_seq = ++b->seq };
	const struct nfgenmsg body = { .nfgen_family = family,
				       .version = NFNETLINK_V0,
				       .res_id = htons(resource) };

	nft_end_message(b);
	b->message = b->b.len;
	nft_raw(b, &head, sizeof(head));
	nft_raw(b, &body, sizeof(body));
}

void nft_message(struct nft_batch *b, unsigned type, unsigned flags, uint8_t family)
{
	if (b->b.len == 0)
		nft_begin_message(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	nft_begin_message(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), (uint16_t)flags, family,
			  0);
}

void nft_put(struct nft_batch *b, unsigned type, const void *data, size_t len)
{
	const struct nlattr head = { .nla_type = (uint16_t)type,
				     .nla_len = (uint16_t)(NLA_HDRLEN + len) };

	if (NLA_HDRLEN + len > NFT_ATTR_MAX)
		b->failed = -EMSGSIZE;
	nft_raw(b, &head, sizeof(head));
	nft_raw(b, data, len);
}

void nft_put_u32(struct nft_batch *b, unsigned type, uint32_t value)
{
	const uint32_t big = htonl(value);

	nft_put(b, type, &big, sizeof(big));
}

void nft_put_u64(struct nft_batch *b, unsigned type, uint64_t value)
{
	const uint64_t big = htobe64(value);

	nft_put(b, type, &big, sizeof(big));
}

void nft_put_str(struct nft_batch *b, unsigned type, const char *value)
{
	nft_put(b, type, value, strlen(value) + 1);
}

size_t nft_open(struct nft_batch *b, unsigned type)
{
	const size_t at = b->b.len;

	nft_put(b, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void nft_close(struct nft_batch *b, size_t at)
{
	const size_t len = b->b.len - at;
	const uint16_t of_attr = (uint16_t)len;

	if (len > NFT_ATTR_MAX)
		b->failed = -EMSGSIZE;
	if (!b->failed)
		memcpy(nft_at(b, at), &of_attr, sizeof(of_attr));
}

/* ---- the kernel ---- */

int nft_socket(struct error *err)
{
	const struct sockaddr_nl at = { .nl_family = AF_NETLINK };
	const int size = NFT_SEND_BUFFER, on = 1;
	_cleanup_fd_ int fd = sysio_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	if (fd < 0)
		return error_set(err, -errno, "make a socket of nf_tables");
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return error_set(err, -errno, "bind a socket of nf_tables");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		return error_set(err, -errno, "size the buffers of a socket of nf_tables");
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	return TAKE_FD(fd);
}

/* The first error among the answers of one datagram. */
static int nft_read_answers(struct netmsg_bytes rest, const char *what, struct error *err)
{
	struct netmsg_verdict verdict;
	struct netmsg_head head;
	int r;

	for (;;) {
		r = netmsg_next(&rest, &head);
		if (r <= 0)
			return r;
		if (head.type != NLMSG_ERROR)
			continue;
		r = netmsg_verdict(&head, &verdict);
		if (r < 0)
			return r;
		if (verdict.code < 0 && verdict.text[0] != '\0')
			return error_set(err, verdict.code, "%s: %s", what, verdict.text);
		if (verdict.code < 0)
			return error_set(err, verdict.code, "%s", what);
	}
}

/* The kernel has answered before it returned from the request. */
static int nft_hear(int fd, const char *what, struct error *err)
{
	_Alignas(4) uint8_t data[NFT_ANSWER_MAX];
	ssize_t n;
	int r = 0, first = 0;

	for (;;) {
		n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		r = nft_read_answers((struct netmsg_bytes){ data, (size_t)n }, what,
				     first ? NULL : err);
		first = first ? first : r;
	}
	if (first == 0 && errno != EAGAIN)
		return error_set(err, -errno, "%s: hear from the kernel", what);
	return first;
}

int nft_commit(struct nft_batch *b, int fd, const char *what, struct error *err)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t n = 0;
	int r;

	if (b->b.len == 0)
		return 0;
	nft_begin_message(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	nft_end_message(b);
	r = b->failed;
	while (r == 0 && n <= 0) {
		n = sendto(fd, buf_data(&b->b), b->b.len, 0, (const struct sockaddr *)&kernel,
			   sizeof(kernel));
		if (n < 0 && errno != EINTR)
			r = -errno;
	}
	buf_clear(&b->b);
	b->message = 0;
	b->failed = 0;
	return r < 0 ? error_set(err, r, "%s", what) : nft_hear(fd, what, err);
}
