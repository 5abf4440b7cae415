/* SPDX-License-Identifier: Apache-2.0 */

/*
 * node_advance() looks at what there is and makes what is missing: the own certificate, the
 * guest's, a newer one of either when its time has come. It is called after each event that changes
 * anything, and by a timer for what time changes; it alone enters states and decides whether
 * rpc.sock is served. Who has asked for a certificate and got no answer yet asks each daemon anew.
 */

#include "gate/node.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "gate/control.h"
#include "gate/drop.h"
#include "gate/enrol.h"
#include "gate/gate_identity.h"
#include "gate/ports.h"
#include "gate/stream.h"
#include "gate/trust.h"

/* What part of the time for a handshake one attempt to connect may take, and the pause behind one
 * that failed: a guest answers at once or is not there yet. */
#define NODE_CONNECT_SHARE 40
#define NODE_RETRY_SOON (20 * NSEC_PER_MSEC)
#define NODE_RETRY_LATER (NSEC_PER_SEC)
/* The same over networks of others: it may be lost on the way, and whoever is asked is not asked
 * without a pause. */
#define NODE_CONNECT_SHARE_FAR 4
#define NODE_RETRY_FAR (250 * NSEC_PER_MSEC)
/* From the guest's first frame to its certificate: the time of so many handshakes. */
#define NODE_ENROL_SHAKES 12
/* The same of a machine in a cloud, which begins to boot when its address is known. */
#define NODE_ENROL_FAR ((nsec_t)BOOTMSG_FAR_LIFE_NS)

/* A question to the daemon. */
struct node_need {
	uint32_t request; /* 0: none is open */
	bool told;        /* to this daemon */
	uint8_t key[GATE_KEY_SIZE];
};

struct node {
	struct loop *loop;
	struct control control;
	struct boot_port boot;
	struct console console;
	struct loop_fd listener;
	struct loop_timer tick, connect_patience;
	nsec_t patience; /* for a handshake */
	bool far;        /* in a cloud: no boot port, no console, and a network of others */

	enum gate_state state;
	char text[ERROR_TEXT_MAX];
	char notice[ERROR_TEXT_MAX];
	bool state_told, notice_told, console_wanted;
	unsigned frames_told;
	uint32_t last_request;
	struct node_need needs[GATE_WHOSE_COUNT];

	bool set_up;
	char own_id[SPIFFE_SIZE], peer_id[SPIFFE_SIZE];
	struct sockaddr_in guest;
	struct trust trust;
	uint8_t token[GATE_TOKEN_SIZE], next_token[GATE_TOKEN_SIZE];
	bool next_sent; /* the guest may know next_token already */
	bool by_token;  /* the guest does not believe this end since the bundle has changed */

	struct gate_identity gate_identity;
	uint64_t pending_not_after, guest_not_after; /* 0: it has no certificate */
	nsec_t guest_renew_at, enrol_again_at, enrol_since;
	struct enrol enrol;

	struct list openings, streams;
	unsigned n_streams;
};

/* A connection of the daemon's, until the guest has shown who it is. */
struct opening {
	struct list siblings;
	struct node *node;
	struct handshake handshake;
	int plain_fd;
};

static uint8_t node_console_last[GATE_CONSOLE_MAX];

/* ---- states ---- */

static bool node_is_final(const struct node *n)
{
	return n->state == GATE_FAILED || n->state == GATE_GONE;
}

static void node_say(struct node *n)
{
	n->state_told = false;
	control_kick(&n->control);
}

static void node_enter(struct node *n, enum gate_state state, const char *text)
{
	if (n->state == GATE_GONE || (n->state == GATE_FAILED && state != GATE_GONE) ||
	    (n->state == state && str_eq(n->text, text)))
		return;
	n->state = state;
	(void)str_copy(n->text, sizeof(n->text), text);
	node_say(n);
}

static void node_notice(struct node *n, const char *what, const struct error *err)
{
	(void)str_printf(n->notice, sizeof(n->notice), "%s: %.400s", what, error_text(err));
	n->notice_told = false;
	control_kick(&n->control);
}

/* Whether the guest may be asked to enrol: one in a cloud is when its address is known. */
static bool node_is_spoken_to(const struct node *n)
{
	return n->far || n->boot.n_frames > 0;
}

static nsec_t node_retry_soon(const struct node *n)
{
	return n->far ? NODE_RETRY_FAR : NODE_RETRY_SOON;
}

static bool node_guest_is_valid(const struct node *n)
{
	return n->guest_not_after && gate_identity_now() < n->guest_not_after;
}

static void node_update_listener(struct node *n)
{
	bool serves = n->state == GATE_UP && n->n_streams < NODE_STREAMS_MAX;

	loop_fd_set(&n->listener, serves ? LOOP_READ : 0);
}

/* ---- connections to the guest ---- */

/* A socket that connects, or a negative errno. */
static int node_connect(const struct node *n)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&n->guest, sizeof(n->guest)) < 0 &&
	    errno != EINPROGRESS)
		return -errno;
	return TAKE_FD(fd);
}

static int node_open(struct node *n, struct tls_config *config, const char *alpn, int *ret_fd,
		     struct tls **ret_tls, struct error *err)
{
	_cleanup_fd_ int fd = node_connect(n);
	int r;

	if (fd < 0)
		return error_set(err, fd, "connect to the guest");
	r = tls_new_client(ret_tls, config, fd, alpn, err);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- streams ---- */

static void node_stream_gone(struct node *n)
{
	n->n_streams--;
	node_update_listener(n);
}

static void on_stream_end(struct stream *s, const struct error *err)
{
	struct node *n = s->owner;

	if (err && (err->code == -EPROTO || err->code == -EACCES))
		node_notice(n, "a connection to the guest was cut", err);
	(void)stream_free(s);
	node_stream_gone(n);
}

static void opening_free(struct opening *o)
{
	list_remove(&o->siblings);
	handshake_done(&o->handshake);
	o->plain_fd = fd_close(o->plain_fd);
	free(o);
}

static void opening_secured(struct handshake *handshake, const struct error *err)
{
	struct opening *o = container_of(handshake, struct opening, handshake);
	struct node *n = o->node;
	struct stream *s = NULL;
	struct tls *tls = NULL;
	int fd = -1;

	if (err) {
		node_notice(n, "a connection to the guest was refused", err);
	} else {
		handshake_take(handshake, &fd, &tls);
		if (stream_new(&s, n->loop, o->plain_fd, fd, tls, true, on_stream_end, n) == 0) {
			o->plain_fd = -1;
			list_add_tail(&n->streams, &s->siblings);
		} else {
			tls = tls_free(tls);
			fd = fd_close(fd);
		}
	}
	opening_free(o);
	if (!s)
		node_stream_gone(n);
}

static void node_begin_stream(struct node *n, int plain_fd)
{
	struct opening *o = malloc(sizeof(*o));
	struct error err = ERROR_INIT;
	struct tls *tls;
	int fd;

	if (!o) {
		(void)fd_close(plain_fd);
		return;
	}
	if (node_open(n, n->gate_identity.config, TLS_ALPN_STREAM, &fd, &tls, &err) < 0) {
		node_notice(n, "a connection to the guest was not had", &err);
		(void)fd_close(plain_fd);
		free(o);
		return;
	}
	*o = (struct opening){ .node = n, .plain_fd = plain_fd };
	list_init(&o->siblings);
	list_add_tail(&n->openings, &o->siblings);
	n->n_streams++;
	node_update_listener(n);
	handshake_init(&o->handshake, n->loop, fd, tls, n->patience, opening_secured);
}

static void node_drop_streams(struct node *n)
{
	struct opening *o;
	struct stream *s;

	list_for_each (o, &n->openings, struct opening, siblings)
		opening_free(o);
	list_for_each (s, &n->streams, struct stream, siblings)
		(void)stream_free(s);
	n->n_streams = 0;
}

/* ---- certificates ---- */

static void node_ask(struct node *n, enum gate_whose whose, const uint8_t key[GATE_KEY_SIZE])
{
	struct node_need *need = &n->needs[whose];

	need->request = ++n->last_request;
	need->told = false;
	memcpy(need->key, key, GATE_KEY_SIZE);
	control_kick(&n->control);
}

static void node_renew_own(struct node *n)
{
	uint8_t key[GATE_KEY_SIZE];

	if (n->needs[GATE_NODE].request ||
	    (n->gate_identity.config && clock_mono() < n->gate_identity.renew_at))
		return;
	if (gate_identity_begin(&n->gate_identity, key, NULL) == 0)
		node_ask(n, GATE_NODE, key);
}

/* By which means the guest is to be reached: its certificate, or the token for one. */
static void node_begin_enrol(struct node *n)
{
	bool renews = node_guest_is_valid(n) && !n->by_token;
	struct tls_config *token = NULL;
	struct error err = ERROR_INIT;
	struct tls *tls;
	int fd, r = 0;

	n->enrol_again_at = clock_mono() + node_retry_soon(n);
	if (renews && !gate_identity_are_valid(&n->gate_identity))
		return;
	if (!renews)
		r = tls_config_new_token(&token, false, n->token, &err);
	if (r == 0)
		r = node_open(n, renews ? n->gate_identity.config : token,
			      renews ? TLS_ALPN_RENEW : TLS_ALPN_ENROL, &fd, &tls, &err);
	token = tls_config_free(token);
	if (r < 0)
		return;
	enrol_start(&n->enrol, fd, tls);
	loop_timer_set(&n->connect_patience,
		       n->patience / (n->far ? NODE_CONNECT_SHARE_FAR : NODE_CONNECT_SHARE));
}

static void node_renew_guest(struct node *n)
{
	nsec_t now = clock_mono();

	if (n->enrol.active || now < n->enrol_again_at || !node_is_spoken_to(n))
		return;
	/* The guest may not know the old root any more, when it has got the new bundle. */
	if (n->trust.changed && n->needs[GATE_NODE].request)
		return;
	if (node_guest_is_valid(n) && now < n->guest_renew_at)
		return;
	if (!n->enrol_since)
		n->enrol_since = now;
	node_begin_enrol(n);
}

/* ---- what there is, and what follows ---- */

static nsec_t node_next_time(const struct node *n)
{
	nsec_t now = clock_mono(), at = now + NODE_RETRY_LATER;

	if (n->gate_identity.config)
		at = MIN(at, MAX(n->gate_identity.renew_at, now));
	if (n->guest_not_after && !n->enrol.active)
		at = MIN(at, MAX(n->guest_renew_at, n->enrol_again_at));
	if (!n->guest_not_after && !n->enrol.active && node_is_spoken_to(n))
		at = MIN(at, n->enrol_again_at);
	/* Not in the same moment again, where an answer is waited for. */
	return MAX(at, now + 10 * NSEC_PER_MSEC) - now;
}

static void node_advance(struct node *n)
{
	if (!n->set_up || node_is_final(n)) {
		node_update_listener(n);
		return;
	}
	node_renew_own(n);
	node_renew_guest(n);
	if (gate_identity_are_valid(&n->gate_identity) && node_guest_is_valid(n))
		node_enter(n, GATE_UP, "");
	else if (!node_guest_is_valid(n) && node_is_spoken_to(n))
		node_enter(n, GATE_ENROLLING, "");
	else
		node_enter(n, GATE_WAITING, "");
	node_update_listener(n);
	loop_timer_set(&n->tick, node_next_time(n));
}

static void node_tick(struct loop_timer *t)
{
	node_advance(container_of(t, struct node, tick));
}

/* ---- enrolment ---- */

static void on_enrol_key(struct enrol *e, const uint8_t key[GATE_KEY_SIZE])
{
	struct node *n = container_of(e, struct node, enrol);

	loop_timer_stop(&n->connect_patience);
	node_ask(n, GATE_GUEST, key);
}

static void node_fail(struct node *n, const char *what, const struct error *err)
{
	char text[ERROR_TEXT_MAX];

	(void)str_printf(text, sizeof(text), "%s: %.400s", what, error_text(err));
	enrol_stop(&n->enrol);
	node_drop_streams(n);
	node_enter(n, GATE_FAILED, text);
	node_advance(n);
}

static int node_trust(struct node *n, struct error *err)
{
	_cleanup_(buf_done) struct buf all = BUF_INIT;
	int r = trust_all(&n->trust, &all);
	const struct gate_bytes bundle = { buf_data(&all), all.len };

	return r < 0 ? error_set(err, r, "keep the trust bundle")
		     : gate_identity_trust(&n->gate_identity, false, &bundle, n->peer_id, err);
}

static void node_kept(struct node *n)
{
	if (trust_kept(&n->trust))
		(void)node_trust(n, NULL);
	n->guest_not_after = n->pending_not_after;
	n->guest_renew_at = n->trust.gone.len > 0 ? 0 : gate_identity_renew_at(n->guest_not_after);
	memcpy(n->token, n->next_token, sizeof(n->token));
	n->next_sent = n->by_token = false;
}

/* The token that the guest may have kept, of which we were not told. */
static void node_swap_tokens(struct node *n)
{
	uint8_t was[GATE_TOKEN_SIZE];

	memcpy(was, n->token, sizeof(was));
	memcpy(n->token, n->next_token, sizeof(n->token));
	memcpy(n->next_token, was, sizeof(n->next_token));
}

static void on_enrol_end(struct enrol *e, bool secured, const struct error *err)
{
	struct node *n = container_of(e, struct node, enrol);
	bool first = n->guest_not_after == 0 && !n->next_sent;
	nsec_t now = clock_mono();

	loop_timer_stop(&n->connect_patience);
	n->needs[GATE_GUEST].request = 0;
	if (!err) {
		node_kept(n);
	} else if (first && secured) {
		node_fail(n, "the guest could not be enrolled", err);
		return;
	} else if (first && now - n->enrol_since >
				    (n->far ? NODE_ENROL_FAR : NODE_ENROL_SHAKES * n->patience)) {
		node_fail(n, "the guest was not reached for its enrolment", err);
		return;
	} else if (secured) {
		n->by_token = n->trust.changed && !n->by_token;
		if (n->next_sent && !node_guest_is_valid(n))
			node_swap_tokens(n);
		node_notice(n, "a new certificate did not come to the guest", err);
	}
	n->enrol_again_at = now + (err && secured ? NODE_RETRY_LATER : node_retry_soon(n));
	node_advance(n);
}

/* Its kernel has answered; its gate may still be on its way, and would have to answer each attempt.
 */
static bool node_is_connected(int fd)
{
	struct tcp_info info = { .tcpi_state = TCP_CLOSE };
	socklen_t len = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_state == TCP_ESTABLISHED;
}

static void node_connect_over(struct loop_timer *t)
{
	struct node *n = container_of(t, struct node, connect_patience);
	struct error err = ERROR_INIT;

	/* A handshake has a patience of its own (gate/handshake.h). */
	if (!n->enrol.active || n->enrol.connected || node_is_connected(n->enrol.handshake.fd))
		return;
	enrol_stop(&n->enrol);
	(void)error_set(&err, -ETIMEDOUT, "connect");
	on_enrol_end(&n->enrol, false, &err);
}

static void node_take_guest(struct node *n, const struct gate_bytes *chain)
{
	_cleanup_(buf_done) struct buf all = BUF_INIT;
	struct gate_bytes bytes;
	uint64_t from;

	if (!chain || cert_times(chain->data, chain->len, &from, &n->pending_not_after, NULL) < 0) {
		enrol_answer(&n->enrol, NULL, NULL);
		return;
	}
	/* Only where the guest cannot know the last one that was drawn. */
	if (!n->next_sent &&
	    getrandom(n->next_token, sizeof(n->next_token), 0) != (ssize_t)sizeof(n->next_token)) {
		enrol_answer(&n->enrol, NULL, NULL);
		return;
	}
	n->next_sent = true;
	bytes.data = trust_give(&n->trust, chain, &all) == 0 ? buf_data(&all) : NULL;
	bytes.len = all.len;
	enrol_answer(&n->enrol, bytes.data ? &bytes : NULL, n->next_token);
}

static void node_take_own(struct node *n, const struct gate_bytes *chain)
{
	_cleanup_(buf_done) struct buf all = BUF_INIT;
	struct error err = ERROR_INIT;
	struct gate_bytes bundle;
	int r = trust_all(&n->trust, &all);

	bundle = (struct gate_bytes){ buf_data(&all), all.len };
	if (r < 0)
		(void)error_set(&err, r, "keep the trust bundle");
	else if (!chain)
		(void)error_refuse(&err, ERROR_DENIED, "there is none");
	else if (gate_identity_take(&n->gate_identity, false, chain, &bundle, n->peer_id, &err) ==
		 0)
		return;
	node_notice(n, "the node's own certificate was not had", &err);
	/* Asked for again in a while, and used as long as it is valid. */
	n->gate_identity.renew_at = clock_mono() + NODE_RETRY_LATER;
}

static void node_answered(struct node *n, uint32_t request, const struct gate_bytes *chain)
{
	for (size_t whose = 0; whose < GATE_WHOSE_COUNT; whose++) {
		if (!request || n->needs[whose].request != request)
			continue;
		n->needs[whose].request = 0;
		if (whose == GATE_NODE)
			node_take_own(n, chain);
		else
			node_take_guest(n, chain);
	}
}

/* ---- the daemon ---- */

/* Both ends get new certificates now: whatever authority has signed the ones in use may be gone. */
static void node_take_bundle(struct node *n, const struct gate_bytes *bundle)
{
	struct error err = ERROR_INIT;
	int r = trust_change(&n->trust, bundle);

	if (r == 0)
		return;
	if (r > 0)
		r = node_trust(n, &err);
	if (r < 0) {
		(void)error_set(&err, err.code ?: r, "keep the trust bundle");
		node_fail(n, "a new trust bundle", &err);
		return;
	}
	n->gate_identity.renew_at = n->guest_renew_at = 0;
	n->needs[GATE_NODE].request = 0;
}

static void node_set_up(struct node *n, const struct gatemsg *m)
{
	static const uint8_t none[GATE_TOKEN_SIZE];
	struct error err = ERROR_INIT;
	int r;

	if (n->set_up) {
		node_take_bundle(n, &m->setup.bundle);
		return;
	}
	/* Of a daemon that knows the bundle alone: the one before has not come to the token. */
	if (memcmp(m->setup.token, none, sizeof(none)) == 0)
		return;
	r = trust_begin(&n->trust, &m->setup.bundle);
	if (r < 0) {
		(void)error_set(&err, r, "keep the trust bundle");
		node_fail(n, "set up", &err);
		return;
	}
	(void)str_copy(n->own_id, sizeof(n->own_id), m->setup.own_id);
	(void)str_copy(n->peer_id, sizeof(n->peer_id), m->setup.peer_id);
	memcpy(n->token, m->setup.token, sizeof(n->token));
	n->guest = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_port = htons((uint16_t)m->setup.port) };
	memcpy(&n->guest.sin_addr, m->setup.address, sizeof(m->setup.address));
	n->set_up = true;
}

static void node_take_issued(struct node *n, const struct gatemsg *m)
{
	node_answered(n, m->issued.request, &m->issued.chain);
}

static void node_take_denied(struct node *n, const struct gatemsg *m)
{
	node_answered(n, m->denied.request, NULL);
}

static void node_take_frame(struct node *n, const struct gatemsg *m)
{
	struct error err = ERROR_INIT;
	int r = n->far ? -ENOTCONN
		       : boot_port_send(&n->boot, m->frame.bytes.data, m->frame.bytes.len);

	if (r == 0)
		return;
	(void)error_set(&err, r, "the boot port");
	node_notice(n, "a frame for the guest is lost", &err);
}

static void node_show_console(struct node *n, const struct gatemsg *m)
{
	(void)m;
	n->console_wanted = true;
}

static void node_end(struct node *n, const struct gatemsg *m)
{
	(void)m;
	loop_quit(n->loop, 0);
}

/* What a daemon may say; anything else is passed over. */
static void (*const node_messages[GATEMSG_TYPE_COUNT])(struct node *n, const struct gatemsg *m) = {
	[GATEMSG_SETUP] = node_set_up,         [GATEMSG_ISSUED] = node_take_issued,
	[GATEMSG_DENIED] = node_take_denied,   [GATEMSG_FRAME] = node_take_frame,
	[GATEMSG_CONSOLE] = node_show_console, [GATEMSG_END] = node_end,
};

static void on_control_message(struct control *c, const struct gatemsg *m)
{
	struct node *n = container_of(c, struct node, control);

	if (node_messages[m->type])
		node_messages[m->type](n, m);
	node_advance(n);
}

static void on_control_connect(struct control *c)
{
	struct node *n = container_of(c, struct node, control);

	n->state_told = false;
	n->frames_told = 0;
	n->console_wanted = false;
	for (size_t i = 0; i < GATE_WHOSE_COUNT; i++)
		n->needs[i].told = false;
}

static bool node_next_need(struct node *n, struct gatemsg *m)
{
	for (uint32_t i = 0; i < GATE_WHOSE_COUNT; i++) {
		struct node_need *need = &n->needs[i];

		if (!need->request || need->told)
			continue;
		need->told = true;
		*m = (struct gatemsg){ .type = GATEMSG_NEED,
				       .need = { .request = need->request, .whose = i } };
		memcpy(m->need.key, need->key, GATE_KEY_SIZE);
		return true;
	}
	return false;
}

static bool on_control_next(struct control *c, struct gatemsg *m)
{
	struct node *n = container_of(c, struct node, control);

	if (!n->state_told) {
		n->state_told = true;
		*m = (struct gatemsg){ .type = GATEMSG_STATE,
				       .state = { n->state, n->n_streams, n->text } };
		return true;
	}
	if (n->frames_told < n->boot.n_frames) {
		const struct buf *b = &n->boot.frames[n->frames_told++];

		*m = (struct gatemsg){ .type = GATEMSG_FRAME,
				       .frame = { { buf_data(b), b->len } } };
		return true;
	}
	if (node_next_need(n, m))
		return true;
	if (!n->notice_told) {
		n->notice_told = true;
		*m = (struct gatemsg){ .type = GATEMSG_NOTICE, .notice = { n->notice } };
		return true;
	}
	if (!n->console_wanted)
		return false;
	n->console_wanted = false;
	*m = (struct gatemsg){ .type = GATEMSG_CONSOLE_PART };
	m->console_part.total = n->console.total;
	m->console_part.last.data = node_console_last;
	m->console_part.last.len = console_last(&n->console, node_console_last);
	return true;
}

/* ---- the machine ---- */

static void node_gone(struct node *n, const char *text)
{
	enrol_stop(&n->enrol);
	loop_timer_stop(&n->connect_patience);
	node_drop_streams(n);
	node_enter(n, GATE_GONE, text);
	node_advance(n);
}

static void on_boot_port(struct boot_port *p, const struct error *err)
{
	struct node *n = container_of(p, struct node, boot);

	if (err && err->code == -EPIPE)
		node_gone(n, "the machine has closed its boot port");
	else if (err)
		node_fail(n, "the guest speaks nonsense", err);
	else
		control_kick(&n->control);
	node_advance(n);
}

static void on_console_end(struct console *c)
{
	node_gone(container_of(c, struct node, console), "the machine has closed its console");
}

static void node_accept(struct loop_fd *source, unsigned events)
{
	struct node *n = container_of(source, struct node, listener);
	int fd;

	(void)events;
	/* A certificate may have ended in this moment. */
	node_advance(n);
	if (n->state != GATE_UP || n->n_streams >= NODE_STREAMS_MAX)
		return;
	fd = accept4(NODE_FD_RPC, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		node_begin_stream(n, fd);
}

static int node_begin(struct node *n, nsec_t patience, bool far, struct error *err)
{
	static const struct control_ops control_ops = { .on_connect = on_control_connect,
							.on_message = on_control_message,
							.next = on_control_next };
	static const struct enrol_ops enrol_ops = { .on_key = on_enrol_key,
						    .on_end = on_enrol_end };
	int r = 0;

	*n = (struct node){
		.patience = patience,
		.far = far,
		.trust = TRUST_INIT,
		.gate_identity = GATE_IDENTITY_INIT,
		.notice_told = true,
	};
	list_init(&n->openings);
	list_init(&n->streams);
	for (int fd = NODE_FD_RPC; r == 0 && fd < (far ? NODE_FD_BOOT : NODE_FD_END); fd++)
		r = fd_set_nonblock(fd, true);
	if (r == 0)
		r = loop_new(&n->loop);
	if (r < 0)
		return error_set(err, r, "make a loop");
	loop_timer_init(&n->tick, n->loop, node_tick);
	loop_timer_init(&n->connect_patience, n->loop, node_connect_over);
	loop_fd_init(&n->listener, n->loop, NODE_FD_RPC, 0, node_accept);
	enrol_init(&n->enrol, n->loop, patience, &enrol_ops);
	if (!far) {
		boot_port_init(&n->boot, n->loop, NODE_FD_BOOT, on_boot_port);
		console_init(&n->console, n->loop, NODE_FD_CONSOLE, on_console_end);
	}
	r = control_init(&n->control, n->loop, NODE_FD_CONTROL, &control_ops);
	return r < 0 ? error_set(err, r, "listen to the daemon") : 0;
}

int node_run(uid_t uid, gid_t gid, nsec_t patience, bool far, struct error *err)
{
	static struct node n;
	int r = node_begin(&n, patience, far, err);

	if (r == 0)
		r = drop_privilege(DROP_NODE, uid, gid, err);
	if (r < 0)
		return r;
	return loop_run(n.loop);
}
