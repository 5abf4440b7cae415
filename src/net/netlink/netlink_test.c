/* SPDX-License-Identifier: Apache-2.0 */
#include "net/netlink/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "net/netlink/bed_test.h"

/* ---- the test stands in for the kernel where it has something to say, see meson.build ---- */

#define SAYINGS_MAX 32

static struct {
	int error; /* instead of a datagram */
	uint32_t port;
	size_t len; /* as it pretends */
	struct netmsg m;
} sayings[SAYINGS_MAX];
static unsigned n_sayings, said, n_asked;
static bool stands_in;
static uint32_t asked_seq, asked_port;

ssize_t __real_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __real_recvfrom(int fd, void *data, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len);
ssize_t __wrap_recvfrom(int fd, void *data, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len);

ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	struct nlmsghdr head;

	n_asked++;
	if (!stands_in)
		return __real_sendto(fd, data, len, flags, to, to_len);
	memcpy(&head, data, sizeof(head));
	CHECK_INT(head.nlmsg_len, len);
	asked_seq = head.nlmsg_seq;
	asked_port = head.nlmsg_pid;
	return (ssize_t)len;
}

/* What is to be said with the number and the port of the request has 0 there. */
ssize_t __wrap_recvfrom(int fd, void *data, size_t len, int flags, struct sockaddr *from,
			socklen_t *from_len)
{
	struct sockaddr_nl sender = { .nl_family = AF_NETLINK };
	struct nlmsghdr head;
	struct netmsg *m;

	if (!stands_in)
		return __real_recvfrom(fd, data, len, flags, from, from_len);
	if (said == n_sayings) {
		errno = EAGAIN;
		return -1;
	}
	m = &sayings[said].m;
	if (sayings[said].error > 0) {
		errno = sayings[said++].error;
		return -1;
	}
	memcpy(&head, m->data, sizeof(head));
	netmsg_stamp(m, asked_seq + head.nlmsg_seq, asked_port + head.nlmsg_pid);
	memcpy(data, m->data, m->len);
	sender.nl_pid = sayings[said].port;
	memcpy(from, &sender, sizeof(sender));
	return (ssize_t)sayings[said++].len;
}

static void begin(void)
{
	stands_in = true;
	n_sayings = said = n_asked = 0;
}

static struct netmsg *say(uint16_t type, uint16_t flags, const void *body, size_t len)
{
	struct netmsg *m = &sayings[n_sayings].m;

	netmsg_begin(m, type, flags, body, len);
	sayings[n_sayings].error = 0;
	sayings[n_sayings].port = 0;
	sayings[n_sayings++].len = m->len;
	return m;
}

static void say_verdict(int code)
{
	const struct nlmsgerr verdict = { .error = code };

	(void)say(NLMSG_ERROR, NLM_F_CAPPED, &verdict, sizeof(verdict));
}

static void say_error(int error)
{
	sayings[n_sayings++].error = error;
}

static int counts(const struct netmsg_head *answer, void *arg)
{
	CHECK_INT(answer->type, RTM_NEWLINK);
	++*(int *)arg;
	return 0;
}

static int ask(int *n, struct error *err)
{
	struct netmsg m;

	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, NULL, 0);
	return netlink_ask(&bed_nl, &m, n ? counts : NULL, n, "ask", err);
}

/* ---- one request ---- */

static void own_namespace(void)
{
	bed_enter();
}

static void answers_and_verdict(void)
{
	struct error err = ERROR_INIT;
	int n = 0;

	begin();
	(void)say(RTM_NEWLINK, 0, NULL, 0);
	say_error(EINTR);
	(void)say(NLMSG_NOOP, 0, NULL, 0);
	(void)say(RTM_NEWLINK, 0, NULL, 0);
	say_verdict(0);
	(void)say(RTM_NEWLINK, 0, NULL, 0);
	CHECK_INT(ask(&n, &err), 0);
	CHECK_INT(n, 2);
	CHECK_INT(said, 5);
	begin();
	say_verdict(-EBUSY);
	CHECK_INT(ask(&n, &err), -EBUSY);
	CHECK_STR(error_text(&err), "ask: Device or resource busy");
	/* An answer that nobody wants. */
	begin();
	(void)say(RTM_NEWLINK, 0, NULL, 0);
	say_verdict(0);
	CHECK_INT(ask(NULL, &err), -EBADMSG);
}

static void of_others(void)
{
	struct error err = ERROR_INIT;
	int n = 0;

	begin();
	say_verdict(-EPERM);
	/* Of a process; of an earlier request; of somebody else's. */
	sayings[0].port = 4711;
	say_verdict(-EPERM);
	netmsg_stamp(&sayings[1].m, (uint32_t)-1, 0);
	say_verdict(-EPERM);
	netmsg_stamp(&sayings[2].m, 0, 1);
	say_verdict(-EXDEV);
	CHECK_INT(ask(&n, &err), -EXDEV);
	CHECK_INT(said, 4);
}

static void too_much_or_nothing(void)
{
	struct error err = ERROR_INIT;
	struct netmsg m;

	begin();
	CHECK_INT(ask(NULL, &err), -ETIMEDOUT);
	begin();
	say_error(ENOBUFS);
	CHECK_INT(ask(NULL, &err), -ENOBUFS);
	begin();
	say_verdict(0);
	sayings[0].len = 8193;
	CHECK_INT(ask(NULL, &err), -EMSGSIZE);
	CHECK_STR(error_text(&err), "ask: an answer of 8193 bytes: Message too long");
	begin();
	say_verdict(0);
	sayings[0].len = 17;
	CHECK_INT(ask(NULL, &err), -EBADMSG);
	/* What does not fit is not sent at all. */
	begin();
	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST, NULL, 0);
	netmsg_put(&m, 1, NULL, NETMSG_MAX);
	CHECK_INT(netlink_ask(&bed_nl, &m, NULL, NULL, "ask", &err), -EMSGSIZE);
	CHECK_INT(n_asked, 0);
}

/* ---- lists ---- */

static int read_number(const struct netmsg_head *answer, void *element)
{
	struct netmsg_bytes rest = answer->body;
	uint32_t number;
	int r = netmsg_take(&rest, &number, sizeof(number));

	if (r < 0)
		return r;
	memcpy(element, &number, sizeof(number));
	return number != 13;
}

static void say_number(uint32_t number, uint16_t flags)
{
	(void)say(RTM_NEWLINK, NLM_F_MULTI | flags, &number, sizeof(number));
}

static void say_done(uint16_t flags)
{
	(void)say(NLMSG_DONE, NLM_F_MULTI | flags, &(int){ 0 }, sizeof(int));
}

static int list(uint32_t **ret, size_t *ret_n, struct error *err)
{
	struct netmsg m;
	void *got = NULL;
	int r;

	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, NULL, 0);
	r = netlink_list(&bed_nl, &m, read_number, sizeof(**ret), &got, ret_n, "list", err);
	*ret = got;
	return r;
}

static void a_list(void)
{
	struct error err = ERROR_INIT;
	uint32_t *got = NULL;
	size_t n = 0;
	int r;

	begin();
	for (uint32_t i = 0; i < 20; i++)
		say_number(i, 0);
	say_done(0);
	r = list(&got, &n, &err);
	CHECK(r == -ENOMEM || (r == 0 && n == 19 && got[12] == 12 && got[13] == 14));
	free(got);
	begin();
	say_done(0);
	CHECK_INT(list(&got, &n, &err), 0);
	CHECK(n == 0 && !got);
	begin();
	(void)say(RTM_NEWLINK, NLM_F_MULTI, NULL, 0);
	CHECK(list(&got, &n, &err) < 0);
	CHECK(!got);
}

/* It is asked for again, not for ever, and nothing is in it twice. */
static void a_list_that_changes(void)
{
	struct error err = ERROR_INIT;
	uint32_t *got = NULL;
	size_t n = 0;
	int r;

	begin();
	say_number(1, 0);
	say_number(2, NLM_F_DUMP_INTR);
	say_done(0);
	say_number(1, 0);
	say_done(NLM_F_DUMP_INTR);
	say_number(3, 0);
	say_done(0);
	r = list(&got, &n, &err);
	CHECK(r == -ENOMEM || (r == 0 && n == 1 && got[0] == 3));
	CHECK(r == -ENOMEM || n_asked == 3);
	free(got);
	begin();
	for (int i = 0; i < 12; i++)
		say_done(NLM_F_DUMP_INTR);
	CHECK_INT(list(&got, &n, &err), -EINTR);
	CHECK_INT(n_asked, 10);
}

/* With the kernel again: what somebody else in the namespace writes to our socket is not read. */
static void a_forged_verdict(void)
{
	const struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_pid = bed_nl.port };
	const struct nlmsgerr verdict = { .error = -EXDEV };
	const struct ifinfomsg info = { .ifi_index = 4711 };
	struct netlink other = NETLINK_NONE;
	struct error err = ERROR_INIT;
	struct netmsg m;

	stands_in = false;
	CHECK_INT(netlink_open(&other, &err), 0);
	CHECK(other.port != bed_nl.port && other.port != 0);
	netmsg_begin(&m, NLMSG_ERROR, NLM_F_CAPPED, &verdict, sizeof(verdict));
	netmsg_stamp(&m, bed_nl.seq + 1, bed_nl.port);
	CHECK_INT(sendto(other.fd, m.data, m.len, 0, (const struct sockaddr *)&to, sizeof(to)),
		  m.len);
	netmsg_begin(&m, RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, &info, sizeof(info));
	CHECK_INT(netlink_ask(&bed_nl, &m, NULL, NULL, "ask", &err), -ENODEV);
	netlink_done(&other);
	netlink_done(&other);
	CHECK_INT(other.fd, -1);
}

UNIT_MAIN({ "own_namespace", own_namespace, true }, { "answers_and_verdict", answers_and_verdict },
	  { "of_others", of_others }, { "too_much_or_nothing", too_much_or_nothing },
	  { "a_list", a_list }, { "a_list_that_changes", a_list_that_changes },
	  { "a_forged_verdict", a_forged_verdict })
