/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A visitor is a connection in one of two states: in its handshake (`handshake`), or passed on
 * (`stream`). Nothing is queued for the daemon: a visitor for whom its socket has no room is sent
 * away, a notice is lost, and a question is asked again by the clock.
 */

#include "gate/front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "gate/drop.h"
#include "gate/gate_identity.h"
#include "gate/handshake.h"
#include "gate/stream.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

#define FRONT_ACCEPTS_MAX 16 /* in one turn */
#define FRONT_TICK (2 * NSEC_PER_SEC)
/* Without visitors: so late it learns at most that the clock was set. */
#define FRONT_IDLE_TICK (60 * NSEC_PER_SEC)
#define FRONT_ASK_AGAIN (5 * NSEC_PER_SEC)
#define FRONT_BACKOFF (100 * NSEC_PER_MSEC)
/* Between two notices. */
#define FRONT_NOTICE_PAUSE NSEC_PER_SEC

struct front {
	struct loop *loop;
	struct loop_fd control, listener;
	struct loop_timer tick, backoff;
	bool backing_off;

	char domain[SPIFFE_DOMAIN_MAX + 1]; /* "": the daemon has not told yet */
	struct buf bundle, revoked;
	struct key *key;  /* of the certificate in use */
	struct key *next; /* a certificate for it is on its way */
	struct cert cert; /* in use */
	uint32_t request; /* 0: none is open */
	nsec_t asked_at;
	struct tls_config *config; /* NULL: no certificate yet */
	uint64_t not_before, not_after;
	nsec_t renew_at;

	struct list shaking, visitors; /* the oldest first */
	unsigned n_shaking, n_visitors;
	nsec_t noticed_at;
	unsigned n_unnoticed;
};

struct visitor {
	struct list siblings;
	struct front *front;
	struct handshake handshake;
	struct stream *stream;
	nsec_t since, left_at; /* left_at: when the daemon was seen to have hung up */
	uint64_t not_after;
	char *id; /* of a stream */
	uint8_t serial[GATE_SERIAL_SIZE];
	uint8_t root[CERT_DIGEST_SIZE]; /* that has signed its certificate */
	uint8_t network[8];             /* of its address: whose it is */
	char address[GATE_ADDRESS_MAX + 1];
};

/* ---- what the daemon is told ---- */

/* fd: goes along, or -1. 0, or a negative errno: then nothing was told. */
static int front_tell(const struct gatemsg *m, int fd)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	int len = gatemsg_encode(m, packet, NULL);
	struct iovec iov = { .iov_base = packet, .iov_len = len > 0 ? (size_t)len : 0 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = "" };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (len < 0)
		return len;
	if (fd >= 0) {
		h.msg_control = control.bytes;
		h.msg_controllen = sizeof(control.bytes);
		*CMSG_FIRSTHDR(&h) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						       .cmsg_type = SCM_RIGHTS,
						       .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &fd, sizeof(fd));
	}
	return sendmsg(FRONT_FD_CONTROL, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Strangers decide how many there are, so not each is told. */
static void front_notice(struct front *f, const struct visitor *v, const struct error *err)
{
	char text[ERROR_TEXT_MAX], more[48] = "";
	const struct gatemsg m = { .type = GATEMSG_NOTICE, .notice = { .text = text } };
	nsec_t now = clock_mono();

	if (f->noticed_at && now - f->noticed_at < FRONT_NOTICE_PAUSE) {
		f->n_unnoticed++;
		return;
	}
	if (f->n_unnoticed > 0)
		(void)str_printf(more, sizeof(more), " (and %u more before)", f->n_unnoticed);
	(void)str_printf(text, sizeof(text), "a connection from %s was refused: %.300s%s",
			 v->address, error_text(err), more);
	if (front_tell(&m, -1) < 0)
		return;
	f->noticed_at = now;
	f->n_unnoticed = 0;
}

/* ---- its own certificate ---- */

static bool front_is_revoked(void *userdata, const uint8_t serial[CERT_SERIAL_SIZE])
{
	const struct front *f = userdata;
	const uint8_t *p = buf_data(&f->revoked);

	for (size_t i = 0; i + GATE_SERIAL_SIZE <= f->revoked.len; i += GATE_SERIAL_SIZE)
		if (memcmp(p + i, serial, GATE_SERIAL_SIZE) == 0)
			return true;
	return false;
}

/* Also where the clock was set meanwhile, or stood still with the machine. */
static bool front_is_due(const struct front *f)
{
	uint64_t now = gate_identity_now();

	return !f->config || clock_mono() >= f->renew_at || now < f->not_before ||
	       now >= f->not_after;
}

static void front_ask(struct front *f)
{
	static uint32_t last;
	uint8_t spki[KEY_SPKI_MAX];
	struct gatemsg m = { .type = GATEMSG_WANT };
	nsec_t now = clock_mono();
	int len;

	if (!*f->domain || !front_is_due(f) || (f->asked_at && now - f->asked_at < FRONT_ASK_AGAIN))
		return;
	f->next = key_free(f->next);
	f->asked_at = now;
	if (key_new_user(&f->next, NULL) < 0)
		return;
	len = key_spki(f->next, spki, NULL);
	if (len < 0)
		return;
	if (++last == 0)
		last = 1;
	m.want.request = last;
	m.want.spki = (struct gate_bytes){ spki, (size_t)len };
	f->request = front_tell(&m, -1) == 0 ? last : 0;
}

static void front_listen(struct front *f)
{
	bool open = f->config && gate_identity_now() < f->not_after && !f->backing_off &&
		    f->n_visitors < FRONT_VISITORS_MAX;

	loop_fd_set(&f->listener, open ? LOOP_READ : 0);
}

/* What newcomers meet: 0, or all is as it was. */
static int front_configure(struct front *f, const struct key *key, const struct gate_bytes *chain)
{
	const struct tls_users who = { .key = key,
				       .chain = chain->data,
				       .chain_len = chain->len,
				       .bundle = buf_data(&f->bundle),
				       .bundle_len = f->bundle.len,
				       .domain = f->domain,
				       .revoked = front_is_revoked,
				       .userdata = f };
	struct tls_config *config = NULL;
	int r = tls_config_new_users(&config, &who, NULL);

	if (r < 0)
		return r;
	f->config = tls_config_free(f->config);
	f->config = config;
	return 0;
}

static int front_take_signed(struct front *f, const struct gatemsg *m)
{
	const struct gate_bytes *chain = &m->signed_.chain;
	uint64_t from, until;

	if (!f->next || m->signed_.request != f->request)
		return 0;
	f->request = 0;
	if (chain->len > sizeof(f->cert.der) ||
	    cert_times(chain->data, chain->len, &from, &until, NULL) < 0 ||
	    front_configure(f, f->next, chain) < 0)
		return 0;
	memcpy(f->cert.der, chain->data, chain->len);
	f->cert.len = chain->len;
	f->key = key_free(f->key);
	f->key = TAKE_PTR(f->next);
	f->not_before = from;
	f->not_after = until;
	f->renew_at = gate_identity_renew_at(until);
	f->asked_at = 0;
	front_listen(f);
	return 0;
}

/* ---- visitors ---- */

static void visitor_free(struct visitor *v)
{
	struct front *f = v->front;

	list_remove(&v->siblings);
	if (v->stream)
		f->n_visitors--;
	else
		f->n_shaking--;
	handshake_done(&v->handshake);
	v->stream = stream_free(v->stream);
	free(v->id);
	free(v);
	front_listen(f);
}

static void visitor_on_end(struct stream *s, const struct error *err)
{
	struct visitor *v = s->owner;

	if (err && err->code == -EPROTO)
		front_notice(v->front, v, err);
	visitor_free(v);
}

/* The daemon gets one end of a pair; the other is the plain side of the stream. */
static int visitor_introduce(const struct visitor *v, const struct tls_peer *peer, int *ret_fd)
{
	struct gatemsg m = {
		.type = GATEMSG_VISITOR,
		.visitor = { .id = peer->id, .address = v->address, .not_after = peer->not_after }
	};
	_cleanup_fd_ int ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	memcpy(m.visitor.serial, peer->serial, sizeof(m.visitor.serial));
	r = front_tell(&m, theirs);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(ours);
	return 0;
}

/* As much as is left to the others afterwards (doc/decisions/shares-of-clients.md). */
static bool front_has_room(const struct front *f, const char *id)
{
	const struct visitor *v;
	unsigned n = 1;

	list_for_each (v, (struct list *)(uintptr_t)&f->visitors, struct visitor, siblings)
		n += str_eq(v->id, id);
	return n + f->n_visitors <= FRONT_VISITORS_MAX;
}

static int visitor_pass_on(struct visitor *v, struct error *err)
{
	_cleanup_fd_ int plain = -1;
	struct front *f = v->front;
	struct stream *s = NULL;
	const struct tls_peer *peer = tls_peer(v->handshake.tls);
	struct tls *tls;
	int r, fd;

	/* The list may have come to name it since the certificate was looked at. */
	if (front_is_revoked(f, peer->serial))
		return error_refuse(err, ERROR_DENIED, "the certificate is revoked");
	if (!cert_bundle_has(buf_data(&f->bundle), f->bundle.len, peer->root))
		return error_refuse(err, ERROR_DENIED,
				    "the authority of the certificate is retired");
	if (!front_has_room(f, peer->id))
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%.200s has as many connections as are left to all others",
				    peer->id);
	v->id = strdup(peer->id);
	if (!v->id)
		return error_set(err, -ENOMEM, "pass a connection on");
	v->not_after = peer->not_after;
	memcpy(v->serial, peer->serial, sizeof(v->serial));
	memcpy(v->root, peer->root, sizeof(v->root));
	r = visitor_introduce(v, peer, &plain);
	if (r < 0)
		return error_set(err, r, "tell the daemon");
	handshake_take(&v->handshake, &fd, &tls);
	r = stream_new(&s, f->loop, plain, fd, tls, true, visitor_on_end, v);
	if (r < 0) {
		tls = tls_free(tls);
		fd = fd_close(fd);
		return error_set(err, r, "pass a connection on");
	}
	plain = -1;
	s->frames.from_client = true;
	v->stream = s;
	list_remove(&v->siblings);
	list_add_tail(&f->visitors, &v->siblings);
	f->n_shaking--;
	f->n_visitors++;
	v->since = clock_mono();
	return 0;
}

static void visitor_secured(struct handshake *handshake, const struct error *err)
{
	struct visitor *v = container_of(handshake, struct visitor, handshake);
	struct error why = ERROR_INIT;

	if (!err && visitor_pass_on(v, &why) < 0)
		err = &why;
	if (err) {
		front_notice(v->front, v, err);
		visitor_free(v);
		return;
	}
	front_listen(v->front);
	if (v->front->n_visitors == 1)
		loop_timer_set(&v->front->tick, FRONT_TICK);
}

/* ---- newcomers ---- */

static int visitor_name(struct visitor *v, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;
	char text[INET6_ADDRSTRLEN];

	if (from->ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
		memcpy(v->network, &four->sin_addr, sizeof(four->sin_addr));
		return str_printf(v->address, sizeof(v->address), "%s:%u", text,
				  ntohs(four->sin_port));
	}
	if (from->ss_family == AF_UNIX)
		return str_copy(v->address, sizeof(v->address), "this host");
	if (from->ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	(void)inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
	memcpy(v->network, &six->sin6_addr, sizeof(v->network));
	return str_printf(v->address, sizeof(v->address), "[%s]:%u", text, ntohs(six->sin6_port));
}

static unsigned front_count_network(const struct front *f, const struct visitor *like)
{
	const struct visitor *v;
	unsigned n = 0;

	list_for_each (v, (struct list *)(uintptr_t)&f->shaking, struct visitor, siblings)
		n += memcmp(v->network, like->network, sizeof(v->network)) == 0;
	return n;
}

static int front_welcome(struct front *f, int fd, const struct sockaddr_storage *from)
{
	_cleanup_fd_ int owned = fd;
	struct visitor *v = calloc(1, sizeof(*v));
	struct error err = ERROR_INIT;
	struct tls *tls = NULL;
	int one = 1;

	if (!v)
		return -ENOMEM;
	v->front = f;
	list_init(&v->siblings);
	if (visitor_name(v, from) < 0 || front_count_network(f, v) >= FRONT_SHAKES_ADDRESS_MAX ||
	    tls_new_server(&tls, f->config, NULL, fd, &err) < 0) {
		free(v);
		return -EBUSY;
	}
	if (f->n_shaking >= FRONT_SHAKES_MAX)
		visitor_free(list_first(&f->shaking, struct visitor, siblings));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	list_add_tail(&f->shaking, &v->siblings);
	f->n_shaking++;
	handshake_init(&v->handshake, f->loop, TAKE_FD(owned), tls,
		       FRONT_PATIENCE_SECONDS * NSEC_PER_SEC, visitor_secured);
	return 0;
}

static void front_accept(struct loop_fd *source, unsigned events)
{
	struct front *f = container_of(source, struct front, listener);

	(void)events;
	for (unsigned i = 0; i < FRONT_ACCEPTS_MAX && f->n_visitors < FRONT_VISITORS_MAX; i++) {
		struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
		socklen_t len = sizeof(from);
		int fd = accept4(FRONT_FD_LISTEN, (struct sockaddr *)&from, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			(void)front_welcome(f, fd, &from);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			f->backing_off = true;
			loop_timer_set(&f->backoff, FRONT_BACKOFF);
			front_listen(f);
			return;
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

static void front_backoff_over(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, backoff);

	f->backing_off = false;
	front_listen(f);
}

/* ---- time ---- */

/* The daemon has hung up: what it said last has a while to arrive. */
static bool visitor_is_left(struct visitor *v, nsec_t now)
{
	if (!v->stream->plain_eof)
		return false;
	if (!v->left_at)
		v->left_at = now;
	return now - v->left_at > (v->stream->link_ended ? FRONT_TICK : FRONT_REQUEST_PATIENCE);
}

static bool visitor_is_over(struct visitor *v)
{
	nsec_t now = clock_mono();

	return gate_identity_now() >= v->not_after || visitor_is_left(v, now) ||
	       (!v->stream->frames.asked && now - v->since > FRONT_REQUEST_PATIENCE);
}

static void front_tick(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, tick);
	struct visitor *v;
	nsec_t now;

	list_for_each (v, &f->visitors, struct visitor, siblings)
		if (visitor_is_over(v))
			visitor_free(v);
	front_ask(f);
	front_listen(f);
	now = clock_mono();
	if (f->n_visitors > 0 || front_is_due(f))
		loop_timer_set(&f->tick, FRONT_TICK);
	else
		loop_timer_set(&f->tick, MIN(f->renew_at - now, FRONT_IDLE_TICK));
}

/* ---- the daemon ---- */

/* Whoever was let in by an authority that is none any more goes. The own certificate may be of that
 * one: a new one is asked for, and the one in use serves until it comes. */
static int front_take_bundle(struct front *f, const struct gatemsg *m)
{
	const struct gate_bytes chain = { f->cert.der, f->cert.len };
	struct visitor *v;

	buf_clear(&f->bundle);
	if (buf_add(&f->bundle, m->front.bundle.data, m->front.bundle.len) < 0 ||
	    (f->config && front_configure(f, f->key, &chain) < 0))
		return -ENOMEM;
	list_for_each (v, &f->visitors, struct visitor, siblings)
		if (!cert_bundle_has(buf_data(&f->bundle), f->bundle.len, v->root))
			visitor_free(v);
	f->renew_at = f->asked_at = 0;
	front_ask(f);
	loop_timer_set(&f->tick, FRONT_TICK);
	return 0;
}

static int front_take_begin(struct front *f, const struct gatemsg *m)
{
	if (*f->domain)
		return front_take_bundle(f, m);
	if (buf_add(&f->bundle, m->front.bundle.data, m->front.bundle.len) < 0)
		return -ENOMEM;
	(void)str_copy(f->domain, sizeof(f->domain), m->front.domain);
	front_ask(f);
	return 0;
}

/* 0, or the list could not be kept: then nobody may stay. */
static int front_take_revoked(struct front *f, const struct gatemsg *m)
{
	struct visitor *v;

	buf_clear(&f->revoked);
	if (m->revoked.serials.len > 0 &&
	    buf_add(&f->revoked, m->revoked.serials.data, m->revoked.serials.len) < 0)
		return -ENOMEM;
	list_for_each (v, &f->visitors, struct visitor, siblings)
		if (front_is_revoked(f, v->serial))
			visitor_free(v);
	return 0;
}

static int front_take_denied(struct front *f, const struct gatemsg *m)
{
	/* Asked again by the clock. */
	if (m->denied.request == f->request)
		f->request = 0;
	return 0;
}

/* What the daemon may say; anything else is the end. */
static int (*const front_messages[GATEMSG_TYPE_COUNT])(struct front *f, const struct gatemsg *m) = {
	[GATEMSG_FRONT] = front_take_begin,
	[GATEMSG_REVOKED] = front_take_revoked,
	[GATEMSG_SIGNED] = front_take_signed,
	[GATEMSG_DENIED] = front_take_denied,
};

static int front_take(struct front *f, const struct gatemsg *m)
{
	return front_messages[m->type] ? front_messages[m->type](f, m) : -EPROTO;
}

static void front_on_control(struct loop_fd *source, unsigned events)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct front *f = container_of(source, struct front, control);
	struct gatemsg m;
	ssize_t n = recv(FRONT_FD_CONTROL, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || (size_t)n > sizeof(packet) ||
	    gatemsg_decode(&m, packet, (size_t)n, NULL) < 0 || front_take(f, &m) < 0) {
		loop_quit(f->loop, 0);
		return;
	}
}

static int front_begin(struct front *f, struct error *err)
{
	int r;

	*f = (struct front){ .bundle = BUF_INIT, .revoked = BUF_INIT };
	list_init(&f->shaking);
	list_init(&f->visitors);
	r = fd_set_nonblock(FRONT_FD_CONTROL, true);
	if (r == 0)
		r = fd_set_nonblock(FRONT_FD_LISTEN, true);
	if (r == 0)
		r = loop_new(&f->loop);
	if (r < 0)
		return error_set(err, r, "make a loop");
	loop_fd_init(&f->control, f->loop, FRONT_FD_CONTROL, LOOP_READ, front_on_control);
	loop_timer_init(&f->tick, f->loop, front_tick);
	loop_timer_init(&f->backoff, f->loop, front_backoff_over);
	loop_fd_init(&f->listener, f->loop, FRONT_FD_LISTEN, 0, front_accept);
	loop_timer_set(&f->tick, FRONT_TICK);
	return 0;
}

int front_run(uid_t uid, gid_t gid, struct error *err)
{
	static struct front f;
	int r = front_begin(&f, err);

	if (r == 0)
		r = drop_privilege(DROP_FRONT, uid, gid, err);
	if (r < 0)
		return r;
	return loop_run(f.loop);
}
