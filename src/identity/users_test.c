/* SPDX-License-Identifier: Apache-2.0 */

/* Users and the listener that they meet: certificates with names, and both ends of their TLS. */

#include "identity/tls.h"

#include <errno.h>
#include <openssl/pem.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "identity/odd_test.h"
#include "unit.h"

#define ALICE "spiffe://nacre.local/user/alice"
#define NODE "spiffe://nacre.local/node/n1"

static struct key *ca_key, *foreign_key, *alice_key, *node_key;
static struct cert ca, foreign, alice, node;
static char alice_pem[KEY_PEM_MAX];
static uint64_t now;
static bool alice_is_revoked;

static int make_root(struct cert *ret, const struct key *key)
{
	const struct cert_request q = { .id = "spiffe://nacre.local",
					.not_before = now - 60,
					.not_after = now + 600 };

	return cert_make_root(ret, key, &q, NULL);
}

static int make_leaf(struct cert *ret, const char *id, const char *names, uint64_t life,
		     const struct key *key, struct error *err)
{
	uint8_t spki[KEY_SPKI_MAX];
	int len = key_spki(key, spki, err);
	const struct cert_request q = { .id = id,
					.not_before = now - 60,
					.not_after = now - 60 + life,
					.spki = spki,
					.spki_len = len > 0 ? (size_t)len : 0,
					.names = names };

	return len < 0 ? len : cert_make_leaf(ret, ca_key, &ca, &q, err);
}

static void begins(void)
{
	now = (uint64_t)time(NULL);
	CHECK_INT(identity_begin(NULL), 0);
	CHECK_INT(key_new(&ca_key, NULL), 0);
	CHECK_INT(key_new(&foreign_key, NULL), 0);
	CHECK_INT(key_new_user(&alice_key, NULL), 0);
	CHECK_INT(key_new_user(&node_key, NULL), 0);
	CHECK_INT(make_root(&ca, ca_key), 0);
	CHECK_INT(make_root(&foreign, foreign_key), 0);
	CHECK_INT(make_leaf(&alice, ALICE, NULL, 500, alice_key, NULL), 0);
	CHECK_INT(make_leaf(&node, NODE, "node.example,127.0.0.1,::1", 500, node_key, NULL), 0);
	CHECK_INT(key_pem(alice_key, alice_pem, NULL), 0);
}

static void pem_of(const struct cert *c, char *ret, size_t size)
{
	const unsigned char *p = c->der;
	_cleanup_(X509_free_p) X509 *x = d2i_X509(NULL, &p, (long)c->len);
	_cleanup_(BIO_free_all_p) BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long len;

	ret[0] = '\0';
	if (!x || !bio || PEM_write_bio_X509(bio, x) != 1)
		return;
	len = BIO_get_mem_data(bio, &text);
	if (len > 0 && (size_t)len < size) {
		memcpy(ret, text, (size_t)len);
		ret[len] = '\0';
	}
}

/* ---- both ends ---- */

struct ends {
	struct tls_config *client, *server;
	struct tls *tls[2];
	int fds[2], r[2];
	struct error err[2];
};

static bool is_revoked(void *userdata, const uint8_t serial[CERT_SERIAL_SIZE])
{
	uint8_t own[CERT_SERIAL_SIZE];

	(void)userdata;
	return alice_is_revoked && cert_serial_of(&alice, own, NULL) == 0 &&
	       memcmp(own, serial, sizeof(own)) == 0;
}

static void ends_done(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		e->tls[i] = tls_free(e->tls[i]);
		e->fds[i] = fd_close(e->fds[i]);
	}
	e->client = tls_config_free(e->client);
	e->server = tls_config_free(e->server);
}

static void ends_handshake(struct ends *e, const struct cert *user, const struct cert *server,
			   const char *host)
{
	const struct tls_users users = { node_key, server->der,   server->len, ca.der,
					 ca.len,   "nacre.local", is_revoked,  NULL };
	char ca_pem[4096], user_pem[4096];
	const struct tls_host who = { host, ca_pem, user_pem, alice_pem };

	*e = (struct ends){ .fds = { -1, -1 } };
	pem_of(&ca, ca_pem, sizeof(ca_pem));
	pem_of(user, user_pem, sizeof(user_pem));
	CHECK_INT(tls_config_new_users(&e->server, &users, NULL), 0);
	CHECK_INT(tls_config_new_host(&e->client, &who, NULL), 0);
	if (!e->server || !e->client ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, e->fds) < 0)
		return;
	e->r[0] = tls_new_client(&e->tls[0], e->client, e->fds[0], TLS_ALPN_STREAM, NULL);
	e->r[1] = tls_new_server(&e->tls[1], e->server, NULL, e->fds[1], NULL);
	for (int turn = 0; turn < 20; turn++)
		for (int i = 0; i < 2; i++) {
			if (e->r[i] == 0 && e->tls[i])
				e->r[i] = tls_handshake(e->tls[i], &e->err[i]);
			if (e->r[i] < 0)
				(void)shutdown(e->fds[i], SHUT_WR);
		}
}

static void a_user_is_let_in(void)
{
	static const char *const hosts[] = { "node.example", "127.0.0.1", "::1" };
	uint8_t serial[CERT_SERIAL_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		_cleanup_(ends_done) struct ends e;

		ends_handshake(&e, &alice, &node, hosts[i]);
		CHECK_INT(e.r[0], 1);
		CHECK_INT(e.r[1], 1);
		if (e.r[1] != 1)
			continue;
		CHECK_STR(tls_peer(e.tls[1])->id, ALICE);
		CHECK(tls_peer(e.tls[1])->not_after == now + 440);
		CHECK_INT(cert_serial_of(&alice, serial, NULL), 0);
		CHECK(memcmp(serial, tls_peer(e.tls[1])->serial, sizeof(serial)) == 0);
	}
}

/* The server says why; the client learns it with the first byte that it reads. */
static void refused(const struct cert *user, const char *why, const char *told)
{
	_cleanup_(ends_done) struct ends e;
	char data[1];

	ends_handshake(&e, user, &node, "node.example");
	CHECK_INT(e.r[1], -EACCES);
	CHECK(strstr(e.err[1].text, why));
	if (!strstr(e.err[1].text, why))
		printf("# %s: %s\n", why, e.err[1].text);
	if (e.r[0] != 1)
		return;
	CHECK_INT(tls_read(e.tls[0], data, 1, NULL), -EPROTO);
	CHECK(tls_explain(e.tls[0]) && strstr(tls_explain(e.tls[0]), told));
}

static const struct odd fine = { .san = "critical,URI:" ALICE,
				 .usage = "critical,digitalSignature",
				 .ext_usage = "serverAuth,clientAuth",
				 .constraints = "critical,CA:FALSE",
				 .from = -60,
				 .until = 60 };

static void others_are_refused(void)
{
	static const struct {
		struct odd odd;
		const char *san, *why, *told;
		long from, until;
		bool twice;
	} cases[] = {
		/* A client of OpenSSL's offers it without a look. */
		{ .twice = true, .why = "its certificate", .told = "" },
		{ .from = -600, .until = -1, .why = "expired", .told = "has expired" },
		{ .from = 300, .until = 600, .why = "not yet valid", .told = "not valid yet" },
		{ .san = "critical,URI:" NODE, .why = "no user of", .told = "not that of a user" },
		{ .san = "critical,URI:spiffe://x/user/alice",
		  .why = "no user of",
		  .told = "user" },
		{ .san = "critical,URI:" ALICE "/x", .why = "no user of", .told = "user" },
		{ .san = "critical,URI:" ALICE ",URI:" NODE, .why = "two ids", .told = "user" },
		{ .san = "critical,DNS:alice", .why = "no SPIFFE id", .told = "user" },
		{ .san = "critical,URI:https://nacre.local/user/alice",
		  .why = "no SPIFFE id",
		  .told = "user" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct odd odd = fine;
		struct cert bad = { .len = 0 };

		odd.twice = cases[i].twice;
		odd.san = cases[i].san ? cases[i].san : fine.san;
		odd.from = cases[i].until ? cases[i].from : fine.from;
		odd.until = cases[i].until ? cases[i].until : fine.until;
		CHECK_INT(odd_make(&bad, &odd, alice_key, &ca, ca_key), 0);
		if (bad.len > 0)
			refused(&bad, cases[i].why, cases[i].told);
	}
}

static void a_foreign_one_is_refused(void)
{
	struct cert bad = { .len = 0 };

	CHECK_INT(odd_make(&bad, &fine, alice_key, &foreign, foreign_key), 0);
	if (bad.len > 0)
		refused(&bad, "does not hold", "");
}

static void a_revoked_one_is_refused(void)
{
	alice_is_revoked = true;
	refused(&alice, "is revoked", "is revoked");
	alice_is_revoked = false;
}

static void another_host_is_refused(void)
{
	static const char *const hosts[] = { "other.example", "127.0.0.2", "::2",
					     "x.node.example" };

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		_cleanup_(ends_done) struct ends e;

		ends_handshake(&e, &alice, &node, hosts[i]);
		CHECK_INT(e.r[0], -EACCES);
		CHECK(strstr(e.err[0].text, hosts[i]));
	}
}

static void names_and_lives_are_bounded(void)
{
	struct error err = ERROR_INIT;
	struct cert c;

	CHECK_INT(make_leaf(&c, ALICE, NULL, CERT_USER_SECONDS_MAX, alice_key, NULL), 0);
	CHECK_INT(make_leaf(&c, ALICE, NULL, CERT_USER_SECONDS_MAX + 1, alice_key, NULL), -EINVAL);
	CHECK_INT(make_leaf(&c, NODE, NULL, CERT_LEAF_SECONDS_MAX + 1, alice_key, NULL), -EINVAL);
	CHECK_INT(make_leaf(&c, NODE, "a_b.c-d,10.0.0.1", 60, node_key, NULL), 0);
	CHECK_INT(make_leaf(&c, NODE, "A", 60, node_key, NULL), -EINVAL);
	CHECK_INT(make_leaf(&c, NODE, "a,,b", 60, node_key, NULL), -EINVAL);
	CHECK_INT(make_leaf(&c, NODE, "a b", 60, node_key, NULL), -EINVAL);
	CHECK_INT(make_leaf(&c, NODE, "DNS:a", 60, node_key, &err), -EINVAL);
	CHECK(strstr(err.text, "DNS:a"));
}

static void keys_of_other_kinds_are_refused(void)
{
	uint8_t spki[KEY_SPKI_MAX];
	int len = key_spki(alice_key, spki, NULL);

	CHECK_INT(key_check_spki(spki, (size_t)len, NULL), 0);
	for (int i = 0; i < len; i++)
		CHECK_INT(key_check_spki(spki, (size_t)i, NULL), -EINVAL);
	for (int i = 0; i < 26; i++) {
		spki[i] ^= 0x40;
		CHECK_INT(key_check_spki(spki, (size_t)len, NULL), -EINVAL);
		spki[i] ^= 0x40;
	}
	len = key_spki(ca_key, spki, NULL);
	CHECK_INT(key_check_spki(spki, (size_t)len, NULL), 0);
}

static void ends(void)
{
	ca_key = key_free(ca_key);
	foreign_key = key_free(foreign_key);
	alice_key = key_free(alice_key);
	node_key = key_free(node_key);
}

UNIT_MAIN({ "begins", begins, true }, { "a_user_is_let_in", a_user_is_let_in },
	  { "others_are_refused", others_are_refused },
	  { "a_foreign_one_is_refused", a_foreign_one_is_refused },
	  { "a_revoked_one_is_refused", a_revoked_one_is_refused },
	  { "another_host_is_refused", another_host_is_refused },
	  { "names_and_lives_are_bounded", names_and_lives_are_bounded },
	  { "keys_of_other_kinds_are_refused", keys_of_other_kinds_are_refused },
	  { "ends", ends, true })
