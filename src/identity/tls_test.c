/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/tls.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "identity/odd_test.h"
#include "unit.h"

#define NODE "spiffe://nacre.local/node/n1"
#define GUEST NODE "/instance/0123456789abcdef"
#define OTHER NODE "/instance/fedcba9876543210"

/* A certificate authority, and another. */
static struct key *ca_key, *foreign_key, *node_key, *guest_key;
static struct cert ca, foreign, node, guest;
static uint64_t now;

static int make_root(struct cert *ret, const struct key *key, const char *id)
{
	const struct cert_request q = { .id = id, .not_before = now - 60, .not_after = now + 600 };

	return cert_make_root(ret, key, &q, NULL);
}

static int make_leaf(struct cert *ret, const char *id, const struct key *key)
{
	uint8_t public[KEY_SIZE];
	const struct cert_request q = { public, id, now - 60, now + 60 };

	if (key_public(key, public, NULL) < 0)
		return -1;
	return cert_make_leaf(ret, ca_key, &ca, &q, NULL);
}

static void begins(void)
{
	now = (uint64_t)time(NULL);
	CHECK_INT(identity_begin(NULL), 0);
	CHECK_INT(key_new(&ca_key, NULL), 0);
	CHECK_INT(key_new(&foreign_key, NULL), 0);
	CHECK_INT(key_new(&node_key, NULL), 0);
	CHECK_INT(key_new(&guest_key, NULL), 0);
	CHECK_INT(make_root(&ca, ca_key, "spiffe://nacre.local"), 0);
	CHECK_INT(make_root(&foreign, foreign_key, "spiffe://nacre.local"), 0);
	CHECK_INT(make_leaf(&node, NODE, node_key), 0);
	CHECK_INT(make_leaf(&guest, GUEST, guest_key), 0);
}

/* ---- two ends that talk over a socket ---- */

struct ends {
	struct tls_config *config;         /* of the client */
	struct tls_config *mutual, *token; /* of the server */
	struct tls *tls[2];
	int fds[2];
	int r[2]; /* of the handshakes */
	struct error err[2];
};

static void ends_done(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		e->tls[i] = tls_free(e->tls[i]);
		e->fds[i] = fd_close(e->fds[i]);
	}
	e->config = tls_config_free(e->config);
	e->mutual = tls_config_free(e->mutual);
	e->token = tls_config_free(e->token);
}

/* Both handshakes, until each has come to something. */
static void ends_handshake(struct ends *e, const char *alpn)
{
	static const struct error none = ERROR_INIT;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, e->fds) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		e->err[i] = none;
		e->r[i] = -ENOMEM;
	}
	if (e->config)
		e->r[0] = tls_new_client(&e->tls[0], e->config, e->fds[0], alpn, NULL);
	if (e->mutual || e->token)
		e->r[1] = tls_new_server(&e->tls[1], e->mutual, e->token, e->fds[1], NULL);
	for (int turn = 0; turn < 20; turn++)
		for (int i = 0; i < 2; i++) {
			if (e->r[i] == 0 && e->tls[i])
				e->r[i] = tls_handshake(e->tls[i], &e->err[i]);
			/* A failed end hangs up, as a program would. */
			if (e->r[i] < 0)
				(void)shutdown(e->fds[i], SHUT_WR);
		}
}

static struct tls_config *mutual(bool server, const struct cert *own, const struct key *key,
				 const char *peer, const struct cert *bundle)
{
	const struct tls_identity who = { key, own->der, own->len, bundle->der, bundle->len, peer };
	struct tls_config *c = NULL;

	CHECK_INT(tls_config_new_mutual(&c, server, &who, NULL), 0);
	return c;
}

static void ends_mutual(struct ends *e, const struct cert *client, const struct cert *server)
{
	*e = (struct ends){ .fds = { -1, -1 } };
	e->config = mutual(false, client, node_key, GUEST, &ca);
	e->mutual = mutual(true, server, guest_key, NODE, &ca);
	ends_handshake(e, TLS_ALPN_STREAM);
}

static void speaks(void)
{
	_cleanup_(ends_done) struct ends e;
	char data[8] = "";

	ends_mutual(&e, &node, &guest);
	CHECK_INT(e.r[0], 1);
	CHECK_INT(e.r[1], 1);
	CHECK_STR(e.err[0].text, "");
	CHECK_STR(e.err[1].text, "");
	if (e.r[0] != 1 || e.r[1] != 1)
		return;
	CHECK_STR(tls_alpn(e.tls[0]), "h2");
	CHECK_STR(tls_alpn(e.tls[1]), "h2");
	CHECK_INT(tls_read(e.tls[1], data, sizeof(data), NULL), -EAGAIN);
	CHECK_INT(tls_write(e.tls[0], "hello", 5, NULL), 5);
	CHECK_INT(tls_read(e.tls[1], data, sizeof(data), NULL), 5);
	CHECK_STR(data, "hello");
	/* One direction ends, the other goes on. */
	CHECK_INT(tls_end(e.tls[0], NULL), 0);
	CHECK_INT(tls_read(e.tls[1], data, sizeof(data), NULL), 0);
	CHECK_INT(tls_write(e.tls[1], "later", 5, NULL), 5);
	CHECK_INT(tls_read(e.tls[0], data, sizeof(data), NULL), 5);
	CHECK_STR(data, "later");
	/* The socket ends without a word of TLS. */
	e.fds[1] = fd_close(e.fds[1]);
	CHECK_INT(tls_read(e.tls[0], data, sizeof(data), NULL), -EPROTO);
}

/* ---- who is refused ---- */

static const struct odd fine = { .san = "critical,URI:" GUEST,
				 .usage = "critical,digitalSignature",
				 .ext_usage = "serverAuth,clientAuth",
				 .constraints = "critical,CA:FALSE",
				 .from = -60,
				 .until = 60 };

/* As the server's certificate, and as the client's: refused by the other end, for that reason. */
static void refused_both_ways(const struct odd *odd, const struct cert *root,
			      const struct key *root_key, const char *why)
{
	struct cert bad = { .len = 0 };
	struct ends e = { .fds = { -1, -1 } };

	CHECK_INT(odd_make(&bad, odd, guest_key, root, root_key), 0);
	if (bad.len == 0)
		return;
	for (int as_server = 0; as_server < 2; as_server++) {
		int other = !as_server;

		e = (struct ends){ .fds = { -1, -1 } };
		e.config = as_server ? mutual(false, &node, node_key, GUEST, &ca)
				     : mutual(false, &bad, guest_key, NODE, &ca);
		e.mutual = as_server ? mutual(true, &bad, guest_key, NODE, &ca)
				     : mutual(true, &node, node_key, GUEST, &ca);
		ends_handshake(&e, TLS_ALPN_STREAM);
		CHECK_INT(e.r[other], -EACCES);
		CHECK_INT(e.err[other].kind, ERROR_DENIED);
		CHECK(strstr(e.err[other].text, why));
		if (!strstr(e.err[other].text, why))
			printf("# %s: %s\n", why, e.err[other].text);
		/* A client is through with its own part before it hears of it. */
		if (e.r[as_server] == 1) {
			char data[1];

			CHECK_INT(tls_read(e.tls[as_server], data, 1, NULL), -EPROTO);
		}
		ends_done(&e);
	}
}

static void a_good_one_of_the_test(void)
{
	struct cert good = { .len = 0 };
	_cleanup_(ends_done) struct ends e = { .fds = { -1, -1 } };

	CHECK_INT(odd_make(&good, &fine, guest_key, &ca, ca_key), 0);
	ends_mutual(&e, &node, &good);
	CHECK_INT(e.r[0], 1);
	CHECK_INT(e.r[1], 1);
}

static void refuses_a_foreign_certificate(void)
{
	refused_both_ways(&fine, &foreign, foreign_key, "certificate does not hold");
}

static void refuses_an_expired_certificate(void)
{
	struct odd odd = fine;

	odd.from = -600;
	odd.until = -1;
	refused_both_ways(&odd, &ca, ca_key, "expired");
}

static void refuses_a_certificate_of_tomorrow(void)
{
	struct odd odd = fine;

	odd.from = 300;
	odd.until = 600;
	refused_both_ways(&odd, &ca, ca_key, "not yet valid");
}

static void refuses_another_instance(void)
{
	struct odd odd = fine;

	odd.san = "critical,URI:" OTHER;
	refused_both_ways(&odd, &ca, ca_key, "it is " OTHER);
}

static void refuses_another_trust_domain(void)
{
	struct odd odd = fine;

	odd.san = "critical,URI:spiffe://other.local/node/n1/instance/0123456789abcdef";
	refused_both_ways(&odd, &ca, ca_key, "it is spiffe://other.local/");
}

static void refuses_two_uris(void)
{
	struct odd odd = fine;

	odd.san = "critical,URI:" GUEST ",URI:" OTHER;
	refused_both_ways(&odd, &ca, ca_key, "exactly one name");
	odd.san = "critical,URI:" GUEST ",DNS:localhost";
	refused_both_ways(&odd, &ca, ca_key, "exactly one name");
	odd.san = "critical,DNS:localhost";
	refused_both_ways(&odd, &ca, ca_key, "no URI");
}

static void refuses_ids_that_are_none(void)
{
	struct odd odd = fine;

	odd.san = "critical,URI:" GUEST "/";
	refused_both_ways(&odd, &ca, ca_key, "no SPIFFE id");
	odd.san = "critical,URI:spiffe://nacre.local/node/n1/./x";
	refused_both_ways(&odd, &ca, ca_key, "no SPIFFE id");
	odd.san = "critical,URI:https://nacre.local/node/n1";
	refused_both_ways(&odd, &ca, ca_key, "no SPIFFE id");
}

static void refuses_other_uses(void)
{
	struct odd odd = fine;

	odd.constraints = "critical,CA:TRUE";
	odd.usage = "critical,digitalSignature,keyCertSign";
	refused_both_ways(&odd, &ca, ca_key, "");
	odd = fine;
	odd.usage = "critical,digitalSignature,cRLSign";
	refused_both_ways(&odd, &ca, ca_key, "");
	odd.usage = "digitalSignature";
	refused_both_ways(&odd, &ca, ca_key, "signatures alone");
	odd.usage = NULL;
	refused_both_ways(&odd, &ca, ca_key, "signatures alone");
	odd = fine;
	odd.ext_usage = NULL;
	refused_both_ways(&odd, &ca, ca_key, "servers and clients");
	odd.ext_usage = "emailProtection";
	refused_both_ways(&odd, &ca, ca_key, "");
}

/* The key of the certificate is another kind of key, which only its owner could use: the check of
 * the certificate itself is what is looked at. */
static void refuses_other_keys(void)
{
	_cleanup_(X509_STORE_CTX_free_p) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	_cleanup_(X509_STORE_free_p) X509_STORE *store = NULL;
	_cleanup_(X509_free_p) X509 *leaf = NULL;
	struct error err = ERROR_INIT;
	struct odd odd = fine;
	struct cert bad = { .len = 0 };
	const unsigned char *p = bad.der;

	odd.not_ed25519 = true;
	CHECK_INT(odd_make(&bad, &odd, NULL, &ca, ca_key), 0);
	CHECK_INT(verify_store_new(&store, ca.der, ca.len, NULL), 0);
	leaf = d2i_X509(NULL, &p, (long)bad.len);
	if (ctx && store && leaf && X509_STORE_CTX_init(ctx, store, leaf, NULL) == 1) {
		CHECK_INT(verify_run(ctx, GUEST, &err), -EACCES);
		CHECK(strstr(err.text, "Ed25519"));
	}
}

/* The root itself, whose name is no process, as a leaf. */
static void refuses_the_ca_as_a_peer(void)
{
	_cleanup_(ends_done) struct ends e = { .fds = { -1, -1 } };

	e.config = mutual(false, &node, node_key, GUEST, &ca);
	e.mutual = mutual(true, &ca, ca_key, NODE, &ca);
	ends_handshake(&e, TLS_ALPN_STREAM);
	CHECK_INT(e.r[0], -EACCES);
}

/* ---- tokens ---- */

static void ends_token(struct ends *e, const uint8_t *client, const uint8_t *server)
{
	*e = (struct ends){ .fds = { -1, -1 } };
	CHECK_INT(tls_config_new_token(&e->config, false, client, NULL), 0);
	CHECK_INT(tls_config_new_token(&e->token, true, server, NULL), 0);
	ends_handshake(e, TLS_ALPN_ENROL);
}

static const uint8_t token[TLS_TOKEN_SIZE] = { 1, 2, 3 };
static const uint8_t other_token[TLS_TOKEN_SIZE] = { 1, 2, 4 };

static void enrols_with_a_token(void)
{
	_cleanup_(ends_done) struct ends e;

	ends_token(&e, token, token);
	CHECK_STR(e.err[0].text, "");
	CHECK_STR(e.err[1].text, "");
	CHECK_INT(e.r[0], 1);
	CHECK_INT(e.r[1], 1);
	if (e.r[1] == 1)
		CHECK_STR(tls_alpn(e.tls[1]), TLS_ALPN_ENROL);
}

/* One port for both: a server that has a certificate can still be enrolled with, by the next
 * token, and by no other; and serves those with certificates as before. */
static void serves_both_kinds(void)
{
	for (int kind = 0; kind < 3; kind++) {
		_cleanup_(ends_done) struct ends e = { .fds = { -1, -1 } };

		if (kind == 0)
			e.config = mutual(false, &node, node_key, GUEST, &ca);
		else
			CHECK_INT(tls_config_new_token(&e.config, false,
						       kind == 1 ? token : other_token, NULL),
				  0);
		e.mutual = mutual(true, &guest, guest_key, NODE, &ca);
		CHECK_INT(tls_config_new_token(&e.token, true, token, NULL), 0);
		ends_handshake(&e, kind == 0 ? TLS_ALPN_RENEW : TLS_ALPN_ENROL);
		CHECK(kind == 2 ? e.r[0] < 0 : e.r[0] == 1);
		CHECK(kind == 2 ? e.r[1] < 0 : e.r[1] == 1);
		if (e.r[1] == 1)
			CHECK_STR(tls_alpn(e.tls[1]), kind ? TLS_ALPN_ENROL : TLS_ALPN_RENEW);
	}
}

/* The token does not open what certificates are for. */
static void a_token_is_for_enrolment_alone(void)
{
	_cleanup_(ends_done) struct ends e = { .fds = { -1, -1 } };

	CHECK_INT(tls_config_new_token(&e.config, false, token, NULL), 0);
	e.mutual = mutual(true, &guest, guest_key, NODE, &ca);
	CHECK_INT(tls_config_new_token(&e.token, true, token, NULL), 0);
	ends_handshake(&e, TLS_ALPN_STREAM);
	CHECK(e.r[0] < 0);
	CHECK(e.r[1] < 0);
}

static void refuses_another_token(void)
{
	_cleanup_(ends_done) struct ends e;

	ends_token(&e, token, other_token);
	CHECK(e.r[0] < 0);
	CHECK(e.r[1] < 0);
}

/* Neither kind of conversation can be had by the means of the other. */
static void kinds_do_not_mix(void)
{
	struct ends e = { .fds = { -1, -1 } };

	CHECK_INT(tls_config_new_token(&e.config, false, token, NULL), 0);
	e.mutual = mutual(true, &guest, guest_key, NODE, &ca);
	ends_handshake(&e, TLS_ALPN_ENROL);
	CHECK(e.r[0] < 0);
	CHECK(e.r[1] < 0);
	ends_done(&e);
	e = (struct ends){ .fds = { -1, -1 } };
	e.config = mutual(false, &node, node_key, GUEST, &ca);
	CHECK_INT(tls_config_new_token(&e.token, true, token, NULL), 0);
	ends_handshake(&e, TLS_ALPN_STREAM);
	CHECK(e.r[0] < 0);
	CHECK(e.r[1] < 0);
	ends_done(&e);
}

static void refuses_other_protocols(void)
{
	struct ends e = { .fds = { -1, -1 } };

	e.config = mutual(false, &node, node_key, GUEST, &ca);
	e.mutual = mutual(true, &guest, guest_key, NODE, &ca);
	ends_handshake(&e, "http/1.1");
	CHECK(e.r[0] < 0);
	CHECK(e.r[1] < 0);
	ends_done(&e);
}

/* Another client than ours: what it is allowed to begin with. */
static void refused_client(int version, bool with_alpn)
{
	struct ends e = { .fds = { -1, -1 } };
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;

	e.mutual = mutual(true, &guest, guest_key, NODE, &ca);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, e.fds) == 0);
	if (ssl && e.mutual && SSL_use_certificate_ASN1(ssl, node.der, (int)node.len) == 1 &&
	    SSL_use_PrivateKey(ssl, key_openssl(node_key)) == 1 &&
	    tls_new_server(&e.tls[1], e.mutual, NULL, e.fds[1], NULL) == 0) {
		CHECK_INT(SSL_set_max_proto_version(ssl, version), 1);
		if (with_alpn)
			CHECK_INT(SSL_set_alpn_protos(ssl, (const unsigned char *)"\002h2", 3), 0);
		CHECK_INT(SSL_set_fd(ssl, e.fds[0]), 1);
		SSL_set_connect_state(ssl);
		for (int turn = 0; turn < 20; turn++) {
			(void)SSL_do_handshake(ssl);
			if (e.r[1] == 0)
				e.r[1] = tls_handshake(e.tls[1], &e.err[1]);
		}
		CHECK(e.r[1] < 0);
	}
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ends_done(&e);
}

static void refuses_tls_1_2(void)
{
	refused_client(TLS1_2_VERSION, true);
}

static void refuses_to_go_without_alpn(void)
{
	refused_client(TLS1_3_VERSION, false);
}

/* A peer may renew keys, but not for ever. */
static void bounds_key_updates(void)
{
	_cleanup_(ends_done) struct ends e;
	struct error err = ERROR_INIT;
	ssize_t n = -EAGAIN;
	char data[4];

	ends_mutual(&e, &node, &guest);
	CHECK_INT(e.r[1], 1);
	if (e.r[1] != 1)
		return;
	for (int i = 0; n == -EAGAIN && i < 2 * TLS_KEY_UPDATES_MAX; i++) {
		(void)SSL_key_update(tls_openssl(e.tls[0]), SSL_KEY_UPDATE_NOT_REQUESTED);
		(void)SSL_do_handshake(tls_openssl(e.tls[0]));
		n = tls_read(e.tls[1], data, sizeof(data), &err);
		CHECK_INT(n, i < TLS_KEY_UPDATES_MAX ? -EAGAIN : -EPROTO);
	}
	CHECK_INT(n, -EPROTO);
}

static void ends(void)
{
	ca_key = key_free(ca_key);
	foreign_key = key_free(foreign_key);
	node_key = key_free(node_key);
	guest_key = key_free(guest_key);
}

UNIT_MAIN({ "begins", begins, true }, { "speaks", speaks },
	  { "a_good_one_of_the_test", a_good_one_of_the_test },
	  { "refuses_a_foreign_certificate", refuses_a_foreign_certificate },
	  { "refuses_an_expired_certificate", refuses_an_expired_certificate },
	  { "refuses_a_certificate_of_tomorrow", refuses_a_certificate_of_tomorrow },
	  { "refuses_another_instance", refuses_another_instance },
	  { "refuses_another_trust_domain", refuses_another_trust_domain },
	  { "refuses_two_uris", refuses_two_uris },
	  { "refuses_ids_that_are_none", refuses_ids_that_are_none },
	  { "refuses_other_uses", refuses_other_uses },
	  { "refuses_other_keys", refuses_other_keys },
	  { "refuses_the_ca_as_a_peer", refuses_the_ca_as_a_peer },
	  { "enrols_with_a_token", enrols_with_a_token },
	  { "serves_both_kinds", serves_both_kinds },
	  { "a_token_is_for_enrolment_alone", a_token_is_for_enrolment_alone },
	  { "refuses_another_token", refuses_another_token },
	  { "kinds_do_not_mix", kinds_do_not_mix },
	  { "refuses_other_protocols", refuses_other_protocols },
	  { "refuses_tls_1_2", refuses_tls_1_2 },
	  { "refuses_to_go_without_alpn", refuses_to_go_without_alpn },
	  { "bounds_key_updates", bounds_key_updates }, { "ends", ends, true })
