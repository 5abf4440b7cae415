/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_TLS_H
#define NACRE_IDENTITY_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "identity/cert.h"
#include "identity/key.h"
#include "wire/name/spiffe.h"

/*
 * TLS 1.3 and nothing older, over a descriptor that does not block; without tickets, resumption,
 * early data, renegotiation or compression. There are four kinds of conversations, and no
 * connection can be of another kind than its configuration:
 *
 * mutual   both ends have a certificate, and each takes exactly one SPIFFE id of the other
 *          (identity/openssl.h, verify_run());
 * token    both ends know a secret of 32 bytes (an external PSK, with a key exchange beside it),
 *          and neither shows a certificate: for enrolment alone;
 * users    a server that takes each user of its trust domain whose certificate is not revoked, and
 *          tells who it was (tls_peer());
 * host     its client: a user's certificate, and a server that is certified for the name by which
 *          it was called.
 *
 * The protocol is agreed upon by ALPN; a connection without it is refused.
 */

#define TLS_TOKEN_SIZE 32
/* The protocols. */
#define TLS_ALPN_STREAM "h2"
#define TLS_ALPN_RENEW "nacre-renew/1"
#define TLS_ALPN_ENROL "nacre-enrol/1"
/* The longest run of certificates that a peer may send, and of the KeyUpdates of a connection. */
#define TLS_PEER_CHAIN_MAX 16384
#define TLS_KEY_UPDATES_MAX 32

struct tls_config;

struct tls_identity {
	const struct key *key;
	const uint8_t *chain; /* DER of the own certificate */
	size_t chain_len;
	const uint8_t *bundle; /* that the peer's certificate is verified against */
	size_t bundle_len;
	const char *peer_id;
};

/* A server takes TLS_ALPN_STREAM and TLS_ALPN_RENEW. All is copied. */
int tls_config_new_mutual(struct tls_config **ret, bool server, const struct tls_identity *who,
			  struct error *err);
int tls_config_new_token(struct tls_config **ret, bool server, const uint8_t token[TLS_TOKEN_SIZE],
			 struct error *err);
struct tls_users {
	const struct key *key;
	const uint8_t *chain;
	size_t chain_len;
	const uint8_t *bundle;
	size_t bundle_len;
	const char *domain; /* the trust domain */
	/* Whether that number is revoked; asked in each handshake. */
	bool (*revoked)(void *userdata, const uint8_t serial[CERT_SERIAL_SIZE]);
	void *userdata;
};

/* All but userdata is copied. */
int tls_config_new_users(struct tls_config **ret, const struct tls_users *who, struct error *err);

/* PEM, as in files; the key is not encrypted. */
struct tls_host {
	const char *host; /* a DNS name or an address */
	const char *ca, *cert, *key;
};

/* ERROR_INVALID names the one that is not what it should be: "the CA certificate", ... */
int tls_config_new_host(struct tls_config **ret, const struct tls_host *who, struct error *err);

/* Connections made of it keep it for themselves. */
struct tls_config *tls_config_free(struct tls_config *c);

struct tls;

/* A client that asks for `alpn`. fd is not taken over. */
int tls_new_client(struct tls **ret, struct tls_config *config, int fd, const char *alpn,
		   struct error *err);
/* A server, for either kind of conversation (or one: the other is NULL), as the client's ALPN says.
 */
int tls_new_server(struct tls **ret, struct tls_config *mutual, struct tls_config *token, int fd,
		   struct error *err);
struct tls *tls_free(struct tls *t);

/* 1: the peer is who it must be; 0: wait (tls_wants_write()); ERROR_DENIED with why not, or a
 * negative errno of the connection. */
int tls_handshake(struct tls *t, struct error *err);
/* The protocol that was agreed upon, one of those above. */
const char *tls_alpn(const struct tls *t);

/* Of a connection to a user, once it is open. */
struct tls_peer {
	char id[SPIFFE_SIZE];
	uint8_t serial[CERT_SERIAL_SIZE];
	uint64_t not_after;
	uint8_t root[CERT_DIGEST_SIZE]; /* of the root that has signed */
};
const struct tls_peer *tls_peer(const struct tls *t);
/* Why a client's connection failed, for the user of the certificate; NULL: no more is known than
 * the error says. */
const char *tls_explain(const struct tls *t);

/* Bytes; 0 where the peer has properly ended its direction; -EAGAIN; -EPROTO for anything else, a
 * connection that was cut among them. */
ssize_t tls_read(struct tls *t, void *data, size_t len, struct error *err);
/* Bytes, -EAGAIN (what is written then must be tried again), or another negative errno. */
ssize_t tls_write(struct tls *t, const void *data, size_t len, struct error *err);
/* Ends the own direction: 0, -EAGAIN, or another negative errno. */
int tls_end(struct tls *t, struct error *err);
/* Whether the last call that could not go on waits for room to write, not for bytes to read. */
bool tls_wants_write(const struct tls *t);

#endif
