/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

/* The kernel makes its datagrams as large as what they are read into, from a page on. */
#define NETLINK_DATAGRAM 8192
/* The kernel answers before it returns from the request, so this is for its faults alone. */
#define NETLINK_PATIENCE 10 /* s */
#define NETLINK_LIST_TRIES 10

static int netlink_set_up(struct netlink *nl, struct error *err)
{
	const struct timeval patience = { .tv_sec = NETLINK_PATIENCE };
	const int on = 1;
	struct sockaddr_nl at = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(at);

	if (bind(nl->fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return error_set(err, -errno, "bind a netlink socket");
	if (getsockname(nl->fd, (struct sockaddr *)&at, &len) < 0)
		return error_set(err, -errno, "read the address of a netlink socket");
	nl->port = at.nl_pid;
	if (setsockopt(nl->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return error_set(err, -errno, "set the patience of a netlink socket");
	/* The first two since 4.12, the last since 4.20; without them refusals have fewer words. */
	(void)setsockopt(nl->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)setsockopt(nl->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	(void)setsockopt(nl->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	return 0;
}

int netlink_open_for(struct netlink *ret, int protocol, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	int r;

	nl.fd = sysio_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (nl.fd < 0)
		return error_set(err, -errno, "make a netlink socket");
	r = netlink_set_up(&nl, err);
	if (r < 0)
		return r;
	*ret = nl;
	nl.fd = -1;
	return 0;
}

int netlink_open(struct netlink *ret, struct error *err)
{
	return netlink_open_for(ret, NETLINK_ROUTE, err);
}

void netlink_done(struct netlink *nl)
{
	nl->fd = fd_close(nl->fd);
}

static int netlink_send(struct netlink *nl, struct netmsg *m, const char *what, struct error *err)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	ssize_t n;

	if (m->full)
		return error_set(err, -EMSGSIZE, "%s", what);
	netmsg_stamp(m, ++nl->seq, nl->port);
	do
		n = sendto(nl->fd, m->data, m->len, 0, (const struct sockaddr *)&kernel,
			   sizeof(kernel));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "%s: ask the kernel", what);
	return 0;
}

/* One datagram of the kernel: its length. */
static int netlink_receive(struct netlink *nl, uint8_t *data, size_t size, const char *what,
			   struct error *err)
{
	struct sockaddr_nl from = { .nl_family = AF_NETLINK };
	socklen_t len;
	ssize_t n;

	do {
		len = sizeof(from);
		n = recvfrom(nl->fd, data, size, MSG_TRUNC, (struct sockaddr *)&from, &len);
		/* Any process of the namespace may write to us: only the kernel has no port. */
	} while ((n < 0 && errno == EINTR) || (n >= 0 && from.nl_pid != 0));
	if (n < 0)
		return error_set(err, errno == EAGAIN ? -ETIMEDOUT : -errno,
				 "%s: hear from the kernel", what);
	if ((size_t)n > size)
		return error_set(err, -EMSGSIZE, "%s: an answer of %zd bytes", what, n);
	return (int)n;
}

/* The answers of one datagram: 1 once the verdict was among them. */
static int netlink_read(struct netlink *nl, struct netmsg_bytes rest, netlink_fn fn, void *arg,
			bool *changed, struct netmsg_verdict *ret)
{
	struct netmsg_head head;
	int r;

	for (;;) {
		r = netmsg_next(&rest, &head);
		if (r <= 0)
			return r;
		/* Of an earlier request that was given up. */
		if (head.seq != nl->seq || head.port != nl->port)
			continue;
		if (head.flags & NLM_F_DUMP_INTR)
			*changed = true;
		if (head.type == NLMSG_ERROR || head.type == NLMSG_DONE) {
			r = netmsg_verdict(&head, ret);
			return r < 0 ? r : 1;
		}
		if (head.type < NLMSG_MIN_TYPE)
			continue;
		r = fn ? fn(&head, arg) : -EBADMSG;
		if (r < 0)
			return r;
	}
}

int netlink_ask(struct netlink *nl, struct netmsg *m, netlink_fn fn, void *arg, const char *what,
		struct error *err)
{
	_Alignas(4) uint8_t data[NETLINK_DATAGRAM];
	struct netmsg_verdict verdict;
	bool changed = false;
	int r;

	r = netlink_send(nl, m, what, err);
	while (r == 0) {
		r = netlink_receive(nl, data, sizeof(data), what, err);
		if (r < 0)
			return r;
		r = netlink_read(nl, (struct netmsg_bytes){ data, (size_t)r }, fn, arg, &changed,
				 &verdict);
		if (r < 0)
			return error_set(err, r, "%s: read the kernel's answer", what);
	}
	if (r < 0)
		return r;
	if (verdict.code < 0 && verdict.text[0] != '\0')
		return error_set(err, verdict.code, "%s: %s", what, verdict.text);
	if (verdict.code < 0)
		return error_set(err, verdict.code, "%s", what);
	return changed ? error_set(err, -EINTR, "%s: it changes all the time", what) : 0;
}

/* ---- lists ---- */

struct netlink_elements {
	netlink_read_fn read;
	size_t size, n, n_room;
	uint8_t *data;
};

static void netlink_elements_done(struct netlink_elements *e)
{
	free(e->data);
}

static int netlink_add_element(const struct netmsg_head *answer, void *arg)
{
	struct netlink_elements *e = arg;
	int r;

	if (e->n == e->n_room) {
		size_t n_room = e->n_room > 0 ? e->n_room * 2 : 16;
		uint8_t *data;

		if (e->n >= NETLINK_LIST_MAX)
			return -ENOBUFS;
		data = realloc(e->data, n_room * e->size);
		if (!data)
			return -ENOMEM;
		e->data = data;
		e->n_room = n_room;
	}
	r = e->read(answer, e->data + e->n * e->size);
	if (r > 0)
		e->n++;
	return r < 0 ? r : 0;
}

int netlink_list(struct netlink *nl, struct netmsg *m, netlink_read_fn read, size_t size,
		 void **ret, size_t *ret_n, const char *what, struct error *err)
{
	_cleanup_(netlink_elements_done) struct netlink_elements e = { .read = read, .size = size };
	int r;

	for (unsigned i = 0; i < NETLINK_LIST_TRIES; i++) {
		e.n = 0;
		r = netlink_ask(nl, m, netlink_add_element, &e, what, err);
		if (r != -EINTR)
			break;
	}
	if (r < 0)
		return r;
	*ret_n = e.n;
	*ret = e.n > 0 ? TAKE_PTR(e.data) : NULL;
	return 0;
}
