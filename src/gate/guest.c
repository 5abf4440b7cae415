/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each connection shakes hands, and is then one of three by its protocol: a stream for the keeper,
 * or a talk that brings the first certificate (token) or a newer one (mutual). A token that has
 * brought one is spent: the next came with the certificate, and is for the case that this one
 * expires before it is renewed.
 */

#include "gate/guest.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "gate/drop.h"
#include "gate/gate_identity.h"
#include "gate/handshake.h"
#include "gate/stream.h"
#include "gate/talk.h"
#include "io/unix.h"
#include "wire/message/guestgate.h"

#define GUEST_KEEPER "rpc.sock"

struct guest {
	struct loop *loop;
	nsec_t patience; /* for a handshake */
	struct loop_fd listener;
	char parent_id[SPIFFE_SIZE];
	uint8_t parent_address[4];
	bool far;                    /* in a cloud: the parent comes from wherever it is */
	struct loop_timer unclaimed; /* until a parent has to have come there, or to come again */
	nsec_t lease;
	struct buf bundle;
	struct gate_identity gate_identity;
	struct tls_config *token; /* for the next enrolment */
	struct list conns, streams;
	unsigned n_conns;
};

/* A connection until it is a stream. */
struct conn {
	struct list siblings;
	struct guest *guest;
	struct handshake handshake;
	struct talk talk;
};

/* ---- connections ---- */

static void guest_update_listener(struct guest *g)
{
	loop_fd_set(&g->listener, g->n_conns < GUEST_CONNS_MAX ? LOOP_READ : 0);
}

static void conn_free(struct conn *c)
{
	list_remove(&c->siblings);
	handshake_done(&c->handshake);
	talk_done(&c->talk);
	c->guest->n_conns--;
	guest_update_listener(c->guest);
	free(c);
}

static void on_stream_end(struct stream *s, const struct error *err)
{
	struct guest *g = s->owner;

	(void)err;
	(void)stream_free(s);
	g->n_conns--;
	guest_update_listener(g);
}

/* The connection becomes a stream to the keeper. */
static void conn_pass_on(struct conn *c)
{
	struct guest *g = c->guest;
	struct stream *s = NULL;
	_cleanup_fd_ int fd = -1;
	struct tls *tls = NULL;
	int link_fd = -1;

	fd = unix_connect(AT_FDCWD, GUEST_KEEPER, SOCK_STREAM, NULL);
	if (fd >= 0)
		handshake_take(&c->handshake, &link_fd, &tls);
	if (fd >= 0 && stream_new(&s, g->loop, fd, link_fd, tls, false, on_stream_end, g) == 0) {
		(void)TAKE_FD(fd);
		list_add_tail(&g->streams, &s->siblings);
		g->n_conns++;
	} else {
		tls = tls_free(tls);
		link_fd = fd_close(link_fd);
	}
	conn_free(c);
}

/* ---- enrolment ---- */

static int guest_keep_bundle(struct guest *g, const struct gate_bytes *bundle)
{
	if (bundle->data == buf_data(&g->bundle))
		return 0;
	buf_clear(&g->bundle);
	return buf_add(&g->bundle, bundle->data, bundle->len);
}

static int guest_take_life(struct guest *g, const struct gatemsg *m, struct error *err)
{
	size_t len = cert_length(m->life.chain.data, m->life.chain.len);
	const struct gate_bytes chain = { m->life.chain.data, len };
	struct gate_bytes bundle = { chain.data + len, m->life.chain.len - len };
	struct tls_config *token = NULL;
	int r;

	if (bundle.len == 0)
		bundle = (struct gate_bytes){ buf_data(&g->bundle), g->bundle.len };
	r = tls_config_new_token(&token, true, m->life.token, err);
	if (r < 0)
		return r;
	r = gate_identity_take(&g->gate_identity, true, &chain, &bundle, g->parent_id, err);
	if (r == 0)
		r = guest_keep_bundle(g, &bundle);
	if (r < 0) {
		token = tls_config_free(token);
		return r;
	}
	g->token = tls_config_free(g->token);
	g->token = token;
	if (g->far)
		loop_timer_set(&g->unclaimed, g->lease);
	return 0;
}

static int conn_message(struct talk *t, const struct gatemsg *m, struct error *err)
{
	static const struct gatemsg kept = { .type = GATEMSG_KEPT };
	struct conn *c = container_of(t, struct conn, talk);
	int r;

	if (m->type != GATEMSG_LIFE || t->ending)
		return error_set(err, -EPROTO, "a message of an enrolment");
	r = guest_take_life(c->guest, m, err);
	if (r == 0)
		r = talk_send(t, &kept, err);
	if (r == 0)
		talk_finish(t);
	return r;
}

static void conn_end(struct talk *t, const struct error *err)
{
	(void)err;
	conn_free(container_of(t, struct conn, talk));
}

/* The connection becomes one in which a key is signed. */
static void conn_talk(struct conn *c)
{
	static const struct talk_ops ops = { .on_message = conn_message, .on_end = conn_end };
	struct gatemsg m = { .type = GATEMSG_KEY };
	struct tls *tls;
	int fd;

	/* Of two at once the newer counts: the key of the other is forgotten. */
	if (gate_identity_begin(&c->guest->gate_identity, m.key.key, NULL) < 0) {
		conn_free(c);
		return;
	}
	handshake_take(&c->handshake, &fd, &tls);
	talk_init(&c->talk, c->guest->loop, fd, tls, &ops);
	if (talk_send(&c->talk, &m, NULL) < 0)
		conn_free(c);
}

static void conn_secured(struct handshake *s, const struct error *err)
{
	struct conn *c = container_of(s, struct conn, handshake);

	if (err)
		conn_free(c);
	else if (str_eq(tls_alpn(s->tls), TLS_ALPN_STREAM))
		conn_pass_on(c);
	else
		conn_talk(c);
}

static int conn_new(struct guest *g, int fd)
{
	struct conn *c = malloc(sizeof(*c));
	struct tls *tls = NULL;
	int one = 1;

	if (!c)
		return -ENOMEM;
	if (tls_new_server(&tls, g->gate_identity.config, g->token, fd, NULL) < 0) {
		free(c);
		return -ENOMEM;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*c = (struct conn){ .guest = g, .talk = TALK_INIT };
	list_init(&c->siblings);
	list_add_tail(&g->conns, &c->siblings);
	g->n_conns++;
	guest_update_listener(g);
	handshake_init(&c->handshake, g->loop, fd, tls, g->patience, conn_secured);
	return 0;
}

static void guest_accept(struct loop_fd *source, unsigned events)
{
	struct guest *g = container_of(source, struct guest, listener);
	struct sockaddr_in from = { .sin_family = AF_UNSPEC };
	socklen_t len = sizeof(from);
	int fd = accept4(GUESTGATE_FD_LISTEN, (struct sockaddr *)&from, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	/* Workloads of the guest could take all places with handshakes that they do not go on
	 * with. They do not get here (net/port/peer_port.h); this is what is left where they do. */
	if (from.sin_family != AF_INET ||
	    (!g->far &&
	     memcmp(&from.sin_addr, g->parent_address, sizeof(g->parent_address)) != 0) ||
	    conn_new(g, fd) < 0)
		(void)fd_close(fd);
}

/* ---- the beginning ---- */

static int guest_take_boot(struct guest *g, const struct bootmsg_boot *boot, struct error *err)
{
	int r = 0;

	if (!spiffe_is_id(boot->own_id) || !spiffe_is_id(boot->parent_id))
		return error_refuse(err, ERROR_INVALID, "BOOT has no SPIFFE ids");
	memcpy(g->parent_address, boot->gateway, sizeof(g->parent_address));
	g->far = bootmsg_is_far(boot);
	(void)str_copy(g->parent_id, sizeof(g->parent_id), boot->parent_id);
	for (size_t i = 0; r == 0 && i < boot->bundle.n; i++)
		r = buf_add(&g->bundle, boot->bundle.item[i].data, boot->bundle.item[i].len);
	if (r < 0)
		return error_set(err, r, "keep the trust bundle");
	return tls_config_new_token(&g->token, true, boot->token, err);
}

static void guest_frame_done(struct buf *b)
{
	/* The token was in it. */
	if (b->base)
		key_wipe(b->base, b->size);
	buf_done(b);
}

static int guest_read_boot(struct guest *g, struct error *err)
{
	_cleanup_(guest_frame_done) struct buf frame = BUF_INIT;
	struct bootmsg m;
	int r;

	r = fd_read_all(GUESTGATE_FD_BOOT, BOOTMSG_FRAME_MAX, &frame);
	if (r < 0)
		return error_set(err, r, "read BOOT");
	(void)close(GUESTGATE_FD_BOOT);
	r = bootmsg_next(&m, buf_data(&frame), frame.len, err);
	if (r < 0)
		return r;
	if (r == 0 || m.type != BOOTMSG_BOOT)
		return error_set(err, -EBADMSG, "the frame BOOT");
	return guest_take_boot(g, &m.boot, err);
}

/* A token of which nobody has made use in time enrols nobody, and a node that does not sign any
 * more does not come back: a machine that nobody has is one too much. */
static void guest_on_unclaimed(struct loop_timer *t)
{
	loop_quit(container_of(t, struct guest, unclaimed)->loop, -ETIMEDOUT);
}

static int guest_serve(struct guest *g, struct error *err)
{
	int r;

	loop_fd_init(&g->listener, g->loop, GUESTGATE_FD_LISTEN, LOOP_READ, guest_accept);
	loop_timer_init(&g->unclaimed, g->loop, guest_on_unclaimed);
	if (g->far)
		loop_timer_set(&g->unclaimed, MIN(g->lease, (nsec_t)BOOTMSG_FAR_LIFE_NS));
	r = loop_run(g->loop);
	return r < 0 ? error_set(err, r, "hear from the node") : r;
}

int guest_run(nsec_t patience, nsec_t lease, struct error *err)
{
	struct guest g = { .patience = patience,
			   .lease = lease,
			   .bundle = BUF_INIT,
			   .gate_identity = GATE_IDENTITY_INIT };
	int r;

	list_init(&g.conns);
	list_init(&g.streams);
	r = guest_read_boot(&g, err);
	if (r < 0)
		return r;
	/* Where the socket of the keeper is named from; nothing else is reached by a name. */
	if (fchdir(GUESTGATE_FD_KEEPER) < 0)
		return error_set(err, -errno, "enter the directory of the keeper");
	r = fd_set_nonblock(GUESTGATE_FD_LISTEN, true);
	if (r == 0)
		r = loop_new(&g.loop);
	if (r < 0)
		return error_set(err, r, "make a loop");
	r = drop_privilege(DROP_GUEST, 0, 0, err);
	if (r < 0)
		return r;
	return guest_serve(&g, err);
}
