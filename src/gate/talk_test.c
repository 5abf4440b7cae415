/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/talk.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "gate/gate_identity.h"
#include "gate/handshake.h"
#include "unit.h"

#define NODE "spiffe://nacre.local/node/n1"
#define GUEST NODE "/instance/0123456789abcdef"

static struct loop *loop;
static struct key *ca_key;
static struct cert ca;
static uint64_t now;

/* Two ends: their handshakes, and then their talks. 0 is the client. */
static struct side {
	struct handshake handshake;
	struct talk talk;
	struct tls_config *config;
	unsigned n_handshakes, n_messages, n_ends;
	int result, end; /* codes of the errors; 0: none */
	enum gatemsg_type last;
} sides[2];

static void begins(void)
{
	const struct cert_request q = { .id = "spiffe://nacre.local",
					.not_before = (uint64_t)time(NULL) - 60,
					.not_after = (uint64_t)time(NULL) + 600 };

	now = (uint64_t)time(NULL);
	CHECK_INT(identity_begin(NULL), 0);
	CHECK_INT(key_new(&ca_key, NULL), 0);
	CHECK_INT(cert_make_root(&ca, ca_key, &q, NULL), 0);
}

/* ---- an SVID ---- */

static int issue(struct cert *ret, const char *id, const uint8_t *public, uint64_t seconds)
{
	const struct cert_request q = { public, id, now - 60, now + seconds };

	return cert_make_leaf(ret, ca_key, &ca, &q, NULL);
}

static int svid_take_from(struct gate_identity *s, bool server, const struct cert *leaf,
			  const char *peer)
{
	const struct gate_bytes chain = { .data = leaf->der, .len = leaf->len },
				bundle = { .data = ca.der, .len = ca.len };

	return gate_identity_take(s, server, &chain, &bundle, peer, NULL);
}

static void takes_a_certificate_for_its_key_only(void)
{
	uint8_t public[GATE_KEY_SIZE], other[GATE_KEY_SIZE];
	struct gate_identity s = GATE_IDENTITY_INIT, t = GATE_IDENTITY_INIT;
	static struct cert leaf, wrong;

	CHECK(!gate_identity_are_valid(&s));
	if (gate_identity_begin(&s, public, NULL) < 0 || gate_identity_begin(&t, other, NULL) < 0 ||
	    issue(&leaf, NODE, public, 600) < 0 || issue(&wrong, NODE, other, 600) < 0) {
		gate_identity_done(&s);
		gate_identity_done(&t);
		return;
	}
	CHECK_INT(svid_take_from(&s, false, &leaf, GUEST), 0);
	CHECK(gate_identity_are_valid(&s));
	/* Nothing was asked for any more. */
	CHECK(svid_take_from(&s, false, &leaf, GUEST) < 0);
	CHECK(gate_identity_are_valid(&s));
	/* For another key: all is as it was. */
	if (gate_identity_begin(&s, public, NULL) == 0)
		CHECK(svid_take_from(&s, false, &wrong, GUEST) < 0);
	CHECK(gate_identity_are_valid(&s));
	gate_identity_done(&s);
	gate_identity_done(&t);
}

static void an_svid_that_is_over_is_not_valid(void)
{
	uint8_t public[GATE_KEY_SIZE];
	struct gate_identity s = GATE_IDENTITY_INIT;
	static struct cert leaf;

	if (gate_identity_begin(&s, public, NULL) == 0 && issue(&leaf, NODE, public, 600) == 0 &&
	    svid_take_from(&s, false, &leaf, GUEST) == 0) {
		s.not_after = gate_identity_now();
		CHECK(!gate_identity_are_valid(&s));
	}
	gate_identity_done(&s);
}

static void is_renewed_around_half_of_its_life(void)
{
	nsec_t before = clock_mono(), at = gate_identity_renew_at(gate_identity_now() + 1000);

	/* A second for the whole seconds of the end. */
	CHECK(at >= before + 449 * NSEC_PER_SEC);
	CHECK(at <= clock_mono() + 551 * NSEC_PER_SEC);
	/* One that is over: at once. */
	CHECK(gate_identity_renew_at(gate_identity_now() - 10) <= clock_mono());
}

/* ---- handshakes ---- */

static void on_handshake(struct handshake *h, const struct error *err)
{
	struct side *s = container_of(h, struct side, handshake);

	s->n_handshakes++;
	s->result = err ? err->code : 0;
}

static bool connect_both(const uint8_t *one, const uint8_t *two, nsec_t patience)
{
	int fds[2];

	memset(sides, 0, sizeof(sides));
	for (int n = 0; n < 2; n++) {
		sides[n].handshake = (struct handshake)HANDSHAKE_INIT;
		sides[n].talk = (struct talk)TALK_INIT;
	}
	if (loop_new(&loop) < 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0) {
		loop_free(loop);
		return false;
	}
	for (int n = 0; n < 2; n++) {
		struct tls *tls = NULL;
		int r = tls_config_new_token(&sides[n].config, n == 1, n ? two : one, NULL);

		if (r == 0)
			r = n ? tls_new_server(&tls, NULL, sides[n].config, fds[n], NULL)
			      : tls_new_client(&tls, sides[n].config, fds[n], TLS_ALPN_ENROL, NULL);
		if (r < 0) {
			(void)fd_close(fds[n]);
			continue;
		}
		handshake_init(&sides[n].handshake, loop, fds[n], tls, patience, on_handshake);
	}
	return sides[0].handshake.fd >= 0 && sides[1].handshake.fd >= 0;
}

static void disconnect(void)
{
	for (int n = 0; n < 2; n++) {
		handshake_done(&sides[n].handshake);
		talk_done(&sides[n].talk);
		sides[n].config = tls_config_free(sides[n].config);
	}
	loop_free(loop);
}

static void until(const unsigned *a, const unsigned *b)
{
	time_t since = unit_now();

	while ((*a == 0 || *b == 0) && unit_waits(since))
		loop_turn(loop, false);
}

static void the_same_token_makes_a_connection(void)
{
	static const uint8_t token[TLS_TOKEN_SIZE] = { 1, 2, 3 };

	if (connect_both(token, token, 60 * NSEC_PER_SEC)) {
		until(&sides[0].n_handshakes, &sides[1].n_handshakes);
		CHECK_INT(sides[0].result, 0);
		CHECK_INT(sides[1].result, 0);
		CHECK_INT(sides[0].n_handshakes, 1);
	}
	disconnect();
}

static void another_token_makes_none(void)
{
	static const uint8_t token[TLS_TOKEN_SIZE] = { 1, 2, 3 }, other[TLS_TOKEN_SIZE] = { 4 };

	if (connect_both(token, other, 60 * NSEC_PER_SEC)) {
		unsigned one = 1;

		until(&sides[1].n_handshakes, &one);
		CHECK(sides[1].result < 0);
	}
	disconnect();
}

static void a_handshake_has_an_end(void)
{
	static const uint8_t token[TLS_TOKEN_SIZE] = { 1 };

	if (connect_both(token, token, NSEC_PER_MSEC)) {
		unsigned one = 1;

		/* Its client is there, and says nothing. */
		loop_fd_done(&sides[0].handshake.source);
		loop_timer_done(&sides[0].handshake.patience);
		until(&sides[1].n_handshakes, &one);
		CHECK_INT(sides[1].result, -ETIMEDOUT);
	}
	disconnect();
}

/* ---- talks ---- */

static int on_message(struct talk *t, const struct gatemsg *m, struct error *err)
{
	struct side *s = container_of(t, struct side, talk);

	(void)err;
	s->n_messages++;
	s->last = m->type;
	return 0;
}

static void on_end(struct talk *t, const struct error *err)
{
	struct side *s = container_of(t, struct side, talk);

	s->n_ends++;
	s->end = err ? err->code : 0;
}

static const struct talk_ops ops = { on_message, on_end };

static bool talk_both(void)
{
	static const uint8_t token[TLS_TOKEN_SIZE] = { 9 };

	if (!connect_both(token, token, 60 * NSEC_PER_SEC))
		return false;
	until(&sides[0].n_handshakes, &sides[1].n_handshakes);
	for (int n = 0; n < 2; n++) {
		struct tls *tls;
		int fd;

		if (!sides[n].n_handshakes || sides[n].result < 0)
			return false;
		handshake_take(&sides[n].handshake, &fd, &tls);
		handshake_done(&sides[n].handshake);
		talk_init(&sides[n].talk, loop, fd, tls, &ops);
	}
	return true;
}

static void messages_go_both_ways_and_end(void)
{
	struct gatemsg key = { .type = GATEMSG_KEY }, kept = { .type = GATEMSG_KEPT };
	unsigned one = 1;

	if (talk_both()) {
		CHECK_INT(talk_send(&sides[0].talk, &key, NULL), 0);
		until(&sides[1].n_messages, &one);
		CHECK_INT(sides[1].last, GATEMSG_KEY);
		CHECK_INT(talk_send(&sides[1].talk, &kept, NULL), 0);
		until(&sides[0].n_messages, &one);
		CHECK_INT(sides[0].last, GATEMSG_KEPT);
		talk_finish(&sides[0].talk);
		until(&sides[1].n_ends, &one);
		CHECK_INT(sides[1].end, 0);
	}
	disconnect();
}

static void a_connection_that_is_cut_is_an_error(void)
{
	unsigned one = 1;

	if (talk_both()) {
		talk_done(&sides[0].talk);
		sides[0].talk.fd = -1;
		until(&sides[1].n_ends, &one);
		CHECK(sides[1].end < 0);
	}
	disconnect();
}

UNIT_MAIN({ "makes what they need", begins, .is_needed = true },
	  { "takes a certificate for its key only", takes_a_certificate_for_its_key_only },
	  { "an SVID that is over is not valid", an_svid_that_is_over_is_not_valid },
	  { "is renewed around half of its life", is_renewed_around_half_of_its_life },
	  { "the same token makes a connection", the_same_token_makes_a_connection },
	  { "another token makes none", another_token_makes_none },
	  { "a handshake has an end", a_handshake_has_an_end },
	  { "messages go both ways and end", messages_go_both_ways_and_end },
	  { "a connection that is cut is an error", a_connection_that_is_cut_is_an_error })
