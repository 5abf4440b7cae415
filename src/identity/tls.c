/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All that is negotiated has one value: the version, the group, the signatures, the cipher (two,
 * for machines with and without instructions for AES). A client in token mode takes no certificate
 * in place of the secret, and a server has none to show; a server in mutual mode knows no secret.
 */

#include "identity/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "identity/openssl.h"
#include "wire/name/spiffe.h"

#define TLS_CIPHERS "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define TLS_PSK_NAME TLS_ALPN_ENROL
/* Certificates in the file of a CA. */
#define TLS_ROOTS_MAX 16

struct tls_config {
	SSL_CTX *ctx;
	unsigned n_refs;
	bool server, mutual;
	/* The identity that the peer must have, in a mutual conversation. */
	int (*verify)(const struct tls_config *c, X509_STORE_CTX *ctx, struct tls *t);
	bool wide;                 /* users' keys and lists of protocols */
	char peer_id[SPIFFE_SIZE]; /* or the trust domain of users, or the name of a host */
	bool (*revoked)(void *userdata, const uint8_t serial[CERT_SERIAL_SIZE]);
	void *userdata;
	uint8_t token[TLS_TOKEN_SIZE];
};

struct tls {
	SSL *ssl;
	struct tls_config *config;
	struct tls_config *instead; /* of a server: where the client wants to enrol; or NULL */
	char alpn[32];
	struct error refusal; /* why the peer is not who it must be */
	bool verified, open, wants_write;
	unsigned n_key_updates;
	struct tls_peer *peer; /* of a user; NULL else */
	int alert;             /* that the peer has sent, or -1 */
	int failed;            /* X509_V_ERR of its certificate, or X509_V_OK */
};

/* ---- configurations ---- */

struct tls_config *tls_config_free(struct tls_config *c)
{
	if (!c || --c->n_refs > 0)
		return NULL;
	SSL_CTX_free(c->ctx);
	key_wipe(c->token, sizeof(c->token));
	free(c);
	return NULL;
}

static inline void tls_config_freep(struct tls_config **c)
{
	*c = tls_config_free(*c);
}

static struct tls *tls_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

/* Exactly one id. */
static int tls_verify_id(const struct tls_config *c, X509_STORE_CTX *ctx, struct tls *t)
{
	return verify_run(ctx, c->peer_id, &t->refusal);
}

static int tls_verify_host(const struct tls_config *c, X509_STORE_CTX *ctx, struct tls *t)
{
	return verify_host(ctx, c->peer_id, &t->refusal);
}

/* Which of the roots has signed the leaf that was verified. */
static int tls_note_root(X509_STORE_CTX *ctx, uint8_t ret[CERT_DIGEST_SIZE], struct error *err)
{
	const STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(ctx);
	uint8_t digest[EVP_MAX_MD_SIZE];

	if (X509_digest(sk_X509_value(chain, sk_X509_num(chain) - 1), EVP_sha256(), digest, NULL) !=
	    1)
		return openssl_error(err, -ENOMEM, "note who has signed");
	memcpy(ret, digest, CERT_DIGEST_SIZE);
	return 0;
}

static int tls_verify_user(const struct tls_config *c, X509_STORE_CTX *ctx, struct tls *t)
{
	struct tls_peer *peer = t->peer;
	X509 *leaf = X509_STORE_CTX_get0_cert(ctx);
	int r;

	r = verify_user(ctx, c->peer_id, peer->id, &t->refusal);
	if (r == 0)
		r = tls_note_root(ctx, peer->root, &t->refusal);
	if (r == 0)
		r = cert_serial(leaf, peer->serial, &t->refusal);
	if (r == 0)
		r = cert_time(&peer->not_after, X509_get0_notAfter(leaf), &t->refusal);
	if (r < 0 || !c->revoked(c->userdata, peer->serial))
		return r;
	X509_STORE_CTX_set_error(ctx, X509_V_ERR_CERT_REVOKED);
	return error_refuse(&t->refusal, ERROR_DENIED, "the certificate of %.200s is revoked",
			    peer->id);
}

static int on_verify(X509_STORE_CTX *ctx, void *arg)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
	const struct tls_config *c = arg;
	struct tls *t = tls_of(ssl);

	if (!c->mutual)
		return !error_refuse(&t->refusal, ERROR_DENIED,
				     "it shows a certificate and not the token");
	if (c->verify(c, ctx, t) < 0) {
		/* So that the peer gets an alert for it, also where OpenSSL was content. */
		if (X509_STORE_CTX_get_error(ctx) == X509_V_OK)
			X509_STORE_CTX_set_error(ctx, X509_V_ERR_APPLICATION_VERIFICATION);
		t->failed = X509_STORE_CTX_get_error(ctx);
		return 0;
	}
	t->verified = true;
	return 1;
}

/* The secret as OpenSSL wants to see it. */
static SSL_SESSION *tls_session(SSL *ssl, const struct tls_config *c)
{
	static const unsigned char cipher_id[] = { 0x13, 0x01 }; /* TLS_AES_128_GCM_SHA256 */
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_id);
	_cleanup_(SSL_SESSION_free_p) SSL_SESSION *s = SSL_SESSION_new();

	if (!s || !cipher || SSL_SESSION_set1_master_key(s, c->token, sizeof(c->token)) != 1 ||
	    SSL_SESSION_set_cipher(s, cipher) != 1 ||
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) != 1)
		return NULL;
	return TAKE_PTR(s);
}

static int on_use_token(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
			SSL_SESSION **ret)
{
	/* Asked again after a HelloRetryRequest, with the hash that was chosen. */
	if (md && EVP_MD_get_type(md) != NID_sha256)
		return 0;
	*ret = tls_session(ssl, tls_of(ssl)->config);
	*id = (const unsigned char *)TLS_PSK_NAME;
	*id_len = strlen(TLS_PSK_NAME);
	return *ret != NULL;
}

static int on_find_token(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **ret)
{
	*ret = NULL;
	/* An unknown name is no error: the handshake goes on without, and finds no certificate. */
	if (id_len != strlen(TLS_PSK_NAME) || memcmp(id, TLS_PSK_NAME, id_len) != 0)
		return 1;
	*ret = tls_session(ssl, tls_of(ssl)->config);
	return *ret != NULL;
}

/* Whether the list of a ClientHello has the protocol of enrolment, and no other, in it. */
static bool tls_asks_to_enrol(SSL *ssl)
{
	static const char wanted[] = "\0\016\015" TLS_ALPN_ENROL;
	const unsigned char *list = NULL;
	size_t len = 0;

	return SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
					 &list, &len) == 1 &&
	       len == sizeof(wanted) - 1 && memcmp(list, wanted, len) == 0;
}

/* Before anything else of the handshake: from here on it is that of the other configuration. */
static int on_hello(SSL *ssl, int *alert, void *arg)
{
	struct tls *t = tls_of(ssl);

	if (!t->instead || !tls_asks_to_enrol(ssl))
		return SSL_CLIENT_HELLO_SUCCESS;
	if (!SSL_set_SSL_CTX(ssl, t->instead->ctx))
		return SSL_CLIENT_HELLO_ERROR;
	SSL_set_psk_find_session_callback(ssl, on_find_token);
	t->config = tls_config_free(t->config);
	t->config = TAKE_PTR(t->instead);
	(void)alert;
	(void)arg;
	return SSL_CLIENT_HELLO_SUCCESS;
}

/* Exactly one protocol, and one that this end speaks. */
static int on_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
		   const unsigned char *in, unsigned in_len, void *arg)
{
	static const char *const mutual[] = { TLS_ALPN_STREAM, TLS_ALPN_RENEW };
	static const char *const token[] = { TLS_ALPN_ENROL };
	const struct tls_config *c = arg;
	const char *const *names = c->mutual ? mutual : token;
	size_t n = c->mutual ? ARRAY_SIZE(mutual) : ARRAY_SIZE(token);
	unsigned char *chosen;

	/* A stranger's client may speak more than we do. */
	if (c->wide) {
		static const unsigned char ours[] = "\002" TLS_ALPN_STREAM;

		if (SSL_select_next_proto(&chosen, ret_len, ours, sizeof(ours) - 1, in, in_len) !=
		    OPENSSL_NPN_NEGOTIATED)
			return SSL_TLSEXT_ERR_ALERT_FATAL;
		*ret = chosen;
		return SSL_TLSEXT_ERR_OK;
	}

	for (size_t i = 0; i < n; i++)
		if (in_len == 1 + strlen(names[i]) && in[0] == in_len - 1 &&
		    memcmp(in + 1, names[i], in[0]) == 0) {
			*ret = in + 1;
			*ret_len = in[0];
			return SSL_TLSEXT_ERR_OK;
		}
	(void)ssl;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Counts what a peer could send for ever. */
static void on_message(int write_p, int version, int type, const void *data, size_t len, SSL *ssl,
		       void *arg)
{
	const uint8_t *message = data;
	struct tls *t = tls_of(ssl);

	if (!write_p && type == SSL3_RT_HANDSHAKE && len > 0 && message[0] == SSL3_MT_KEY_UPDATE)
		t->n_key_updates++;
	if (!write_p && type == SSL3_RT_ALERT && len == 2 && message[0] == SSL3_AL_FATAL)
		t->alert = message[1];
	(void)version;
	(void)arg;
}

static int tls_set_common(struct tls_config *c, struct error *err)
{
	/* Not const, since the macros of OpenSSL cast that away. */
	static char group[] = "X25519", signature[] = "ed25519";
	static char groups[] = "X25519:P-256", signatures[] = "ECDSA+SHA256:ed25519";
	SSL_CTX *ctx = c->ctx;

	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, TLS_CIPHERS) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, c->wide ? groups : group) != 1 ||
	    SSL_CTX_set1_sigalgs_list(ctx, c->wide ? signatures : signature) != 1 ||
	    SSL_CTX_set1_client_sigalgs_list(ctx, c->wide ? signatures : signature) != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 0) != 1 || SSL_CTX_set_max_early_data(ctx, 0) != 1)
		return openssl_error(err, -ENOMEM, "configure TLS");
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_max_cert_list(ctx, TLS_PEER_CHAIN_MAX);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, on_verify, c);
	SSL_CTX_set_msg_callback(ctx, on_message);
	if (c->server) {
		SSL_CTX_set_alpn_select_cb(ctx, on_alpn, c);
		SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
	}
	return 0;
}

static int tls_config_new(struct tls_config **ret, bool server, bool wide, struct error *err)
{
	_cleanup_(tls_config_freep) struct tls_config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "configure TLS");
	c->n_refs = 1;
	c->server = server;
	c->wide = wide;
	c->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!c->ctx)
		return openssl_error(err, -ENOMEM, "configure TLS");
	r = tls_set_common(c, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

static int tls_use(struct tls_config *c, const struct key *key, const uint8_t *chain, size_t len,
		   struct error *err)
{
	if (SSL_CTX_use_certificate_ASN1(c->ctx, (int)len, chain) != 1 ||
	    SSL_CTX_use_PrivateKey(c->ctx, key_openssl(key)) != 1 ||
	    SSL_CTX_check_private_key(c->ctx) != 1)
		return openssl_error(err, -EINVAL, "take the own certificate");
	return 0;
}

int tls_config_new_mutual(struct tls_config **ret, bool server, const struct tls_identity *who,
			  struct error *err)
{
	_cleanup_(tls_config_freep) struct tls_config *c = NULL;
	X509_STORE *store = NULL;
	int r;

	r = tls_config_new(&c, server, false, err);
	if (r < 0)
		return r;
	c->mutual = true;
	c->verify = tls_verify_id;
	r = str_copy(c->peer_id, sizeof(c->peer_id), who->peer_id);
	if (r < 0 || !spiffe_is_id(c->peer_id))
		return error_refuse(err, ERROR_INVALID, "\"%.200s\" is no SPIFFE id", who->peer_id);
	r = verify_store_new(&store, who->bundle, who->bundle_len, err);
	if (r < 0)
		return r;
	SSL_CTX_set_cert_store(c->ctx, store);
	r = tls_use(c, who->key, who->chain, who->chain_len, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

int tls_config_new_users(struct tls_config **ret, const struct tls_users *who, struct error *err)
{
	_cleanup_(tls_config_freep) struct tls_config *c = NULL;
	X509_STORE *store = NULL;
	int r;

	r = tls_config_new(&c, true, true, err);
	if (r < 0)
		return r;
	c->mutual = true;
	c->verify = tls_verify_user;
	c->revoked = who->revoked;
	c->userdata = who->userdata;
	r = str_copy(c->peer_id, sizeof(c->peer_id), who->domain);
	if (r < 0)
		return error_set(err, r, "keep a trust domain");
	r = verify_store_new(&store, who->bundle, who->bundle_len, err);
	if (r < 0)
		return r;
	SSL_CTX_set_cert_store(c->ctx, store);
	r = tls_use(c, who->key, who->chain, who->chain_len, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

/* One certificate of a text; others may follow and do not count. */
static X509 *tls_read_pem(const char *text)
{
	_cleanup_(BIO_free_all_p) BIO *bio = BIO_new_mem_buf(text, -1);

	return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

/* Nobody is asked for a passphrase. */
static int on_passphrase(char *to, int size, int writes, void *userdata)
{
	(void)to;
	(void)size;
	(void)writes;
	(void)userdata;
	return -1;
}

/* A CA's file may hold several, while one follows the other. */
static int tls_read_bundle(SSL_CTX *ctx, const char *text, struct error *err)
{
	_cleanup_(BIO_free_all_p) BIO *bio = BIO_new_mem_buf(text, -1);
	X509_STORE *store = X509_STORE_new();
	unsigned n = 0;

	if (!bio || !store) {
		X509_STORE_free(store);
		return openssl_error(err, -ENOMEM, "read the CA certificate");
	}
	SSL_CTX_set_cert_store(ctx, store);
	while (n <= TLS_ROOTS_MAX) {
		_cleanup_(X509_free_p) X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

		if (!x)
			break;
		if (X509_STORE_add_cert(store, x) != 1)
			return openssl_error(err, -ENOMEM, "read the CA certificate");
		n++;
	}
	ERR_clear_error();
	if (n == 0 || n > TLS_ROOTS_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "the CA certificate is not 1 to %d certificates in PEM",
				    TLS_ROOTS_MAX);
	return 0;
}

static int tls_read_own(SSL_CTX *ctx, const struct tls_host *who, struct error *err)
{
	_cleanup_(BIO_free_all_p) BIO *bio = BIO_new_mem_buf(who->key, -1);
	_cleanup_(EVP_PKEY_free_p) EVP_PKEY *key = NULL;
	_cleanup_(X509_free_p) X509 *cert = tls_read_pem(who->cert);

	if (bio)
		key = PEM_read_bio_PrivateKey(bio, NULL, on_passphrase, NULL);
	ERR_clear_error();
	if (!cert)
		return error_refuse(err, ERROR_INVALID,
				    "the own certificate is no certificate in PEM");
	if (!key)
		return error_refuse(err, ERROR_INVALID,
				    "the private key is none in PEM, or is encrypted");
	if (SSL_CTX_use_certificate(ctx, cert) != 1)
		return openssl_error(err, -EINVAL, "take the own certificate");
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1) {
		ERR_clear_error();
		return error_refuse(err, ERROR_INVALID,
				    "the private key is not that of the certificate");
	}
	return 0;
}

int tls_config_new_host(struct tls_config **ret, const struct tls_host *who, struct error *err)
{
	_cleanup_(tls_config_freep) struct tls_config *c = NULL;
	int r;

	r = tls_config_new(&c, false, true, err);
	if (r < 0)
		return r;
	c->mutual = true;
	c->verify = tls_verify_host;
	r = str_copy(c->peer_id, sizeof(c->peer_id), who->host);
	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "the name of a host is too long");
	r = tls_read_bundle(c->ctx, who->ca, err);
	if (r == 0)
		r = tls_read_own(c->ctx, who, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

int tls_config_new_token(struct tls_config **ret, bool server, const uint8_t token[TLS_TOKEN_SIZE],
			 struct error *err)
{
	struct tls_config *c = NULL;
	int r;

	r = tls_config_new(&c, server, false, err);
	if (r < 0)
		return r;
	assert(c);
	memcpy(c->token, token, sizeof(c->token));
	if (server) {
		SSL_CTX_set_psk_find_session_callback(c->ctx, on_find_token);
		/* To OpenSSL a secret is a session that is resumed, and one for clients that show
		 * certificates must be told from others. */
		(void)SSL_CTX_set_session_id_context(c->ctx, (const unsigned char *)TLS_PSK_NAME,
						     (unsigned)strlen(TLS_PSK_NAME));
	} else {
		SSL_CTX_set_psk_use_session_callback(c->ctx, on_use_token);
	}
	*ret = c;
	return 0;
}

/* ---- connections ---- */

struct tls *tls_free(struct tls *t)
{
	if (!t)
		return NULL;
	SSL_free(t->ssl);
	t->config = tls_config_free(t->config);
	t->instead = tls_config_free(t->instead);
	free(t->peer);
	free(t);
	ERR_clear_error();
	return NULL;
}

static int tls_ask_alpn(struct tls *t, const char *alpn)
{
	unsigned char list[sizeof(t->alpn)];
	size_t len = strlen(alpn);

	assert(len + 1 < sizeof(list));
	list[0] = (unsigned char)len;
	memcpy(list + 1, alpn, len);
	return SSL_set_alpn_protos(t->ssl, list, (unsigned)len + 1) == 0 ? 0 : -ENOMEM;
}

static int tls_new(struct tls **ret, struct tls_config *config, int fd, struct error *err)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (!t)
		return error_set(err, -ENOMEM, "begin TLS");
	t->config = config;
	config->n_refs++;
	t->alert = -1;
	if (config->revoked) {
		t->peer = calloc(1, sizeof(*t->peer));
		if (!t->peer) {
			t = tls_free(t);
			return error_set(err, -ENOMEM, "begin TLS");
		}
	}
	t->ssl = SSL_new(config->ctx);
	if (!t->ssl || SSL_set_app_data(t->ssl, t) != 1 || SSL_set_fd(t->ssl, fd) != 1) {
		t = tls_free(t);
		return openssl_error(err, -ENOMEM, "begin TLS");
	}
	*ret = t;
	return 0;
}

static bool tls_is_address(const char *host)
{
	uint8_t bytes[16];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

int tls_new_client(struct tls **ret, struct tls_config *config, int fd, const char *alpn,
		   struct error *err)
{
	struct tls *t = NULL;
	int r;

	assert(!config->server);
	r = tls_new(&t, config, fd, err);
	if (r < 0)
		return r;
	if (tls_ask_alpn(t, alpn) < 0) {
		t = tls_free(t);
		return openssl_error(err, -ENOMEM, "begin TLS");
	}
	/* Says the name that the server's certificate shall have; an address is not said. */
	if (config->wide && !tls_is_address(config->peer_id))
		(void)SSL_set_tlsext_host_name(t->ssl, config->peer_id);
	SSL_set_connect_state(t->ssl);
	*ret = t;
	return 0;
}

int tls_new_server(struct tls **ret, struct tls_config *mutual, struct tls_config *token, int fd,
		   struct error *err)
{
	struct tls *t = NULL;
	int r;

	assert((mutual || token) && (!mutual || (mutual->server && mutual->mutual)));
	assert(!token || (token->server && !token->mutual));
	r = tls_new(&t, mutual ? mutual : token, fd, err);
	if (r < 0)
		return r;
	if (mutual && token) {
		t->instead = token;
		token->n_refs++;
	}
	SSL_set_accept_state(t->ssl);
	*ret = t;
	return 0;
}

SSL *tls_openssl(const struct tls *t)
{
	return t->ssl;
}

bool tls_wants_write(const struct tls *t)
{
	return t->wants_write;
}

const struct tls_peer *tls_peer(const struct tls *t)
{
	return t->peer;
}

const char *tls_explain(const struct tls *t)
{
	static const struct {
		int alert;
		const char *text;
	} alerts[] = {
		{ SSL_AD_CERTIFICATE_EXPIRED,
		  "the server says that the certificate of the user has expired" },
		{ SSL_AD_CERTIFICATE_REVOKED,
		  "the server says that the certificate of the user is revoked" },
		{ SSL_AD_UNKNOWN_CA,
		  "the server does not know the authority that has signed the certificate of the "
		  "user" },
		{ SSL_AD_BAD_CERTIFICATE, "the server refuses the certificate of the user: it is "
					  "not valid yet, or broken" },
		{ SSL_AD_HANDSHAKE_FAILURE,
		  "the server refuses the certificate of the user: it is not that of a user of its "
		  "trust domain" },
		{ SSL_AD_CERTIFICATE_REQUIRED, "the server wants a certificate of a user" },
		{ SSL_AD_PROTOCOL_VERSION, "the server speaks another version of TLS" },
		{ SSL_AD_NO_APPLICATION_PROTOCOL, "the server does not speak HTTP/2" },
	};

	switch (t->failed) {
	case X509_V_OK:
		break;
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return "the certificate of the server has expired";
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return "the certificate of the server is not valid yet (is the clock right?)";
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_APPLICATION_VERIFICATION:
		return NULL;
	default:
		return "the certificate of the server is not signed by the authority that is "
		       "trusted here";
	}
	for (size_t i = 0; i < ARRAY_SIZE(alerts); i++)
		if (alerts[i].alert == t->alert)
			return alerts[i].text;
	return NULL;
}

const char *tls_alpn(const struct tls *t)
{
	return t->alpn;
}

/* What a call of OpenSSL that returned n <= 0 means: -EAGAIN, 0 for the proper end, or another. */
static int tls_judge(struct tls *t, int n, const char *what, struct error *err)
{
	int why = SSL_get_error(t->ssl, n), saved = errno;

	t->wants_write = why == SSL_ERROR_WANT_WRITE;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (t->refusal.code)
		return error_copy(err, &t->refusal);
	if (why == SSL_ERROR_SYSCALL && saved)
		return error_set(err, -saved, "%s", what);
	return openssl_error(err, -EPROTO, what);
}

/* What OpenSSL does not hold a finished handshake to. */
static int tls_check_open(struct tls *t, struct error *err)
{
	const unsigned char *alpn = NULL;
	unsigned len = 0;

	SSL_get0_alpn_selected(t->ssl, &alpn, &len);
	if (len == 0 || len >= sizeof(t->alpn))
		return error_refuse(err, ERROR_DENIED, "it speaks no protocol of ours");
	memcpy(t->alpn, alpn, len);
	if (SSL_version(t->ssl) != TLS1_3_VERSION)
		return error_refuse(err, ERROR_DENIED, "it speaks another TLS than 1.3");
	if (t->config->mutual ? !t->verified || SSL_session_reused(t->ssl)
			      : !SSL_session_reused(t->ssl))
		return error_refuse(err, ERROR_DENIED, "it has not shown who it is");
	return 0;
}

int tls_handshake(struct tls *t, struct error *err)
{
	int n, r;

	ERR_clear_error();
	errno = 0;
	n = SSL_do_handshake(t->ssl);
	if (n != 1) {
		r = tls_judge(t, n, "TLS handshake", err);
		if (r == -EAGAIN)
			return 0;
		return r == 0 ? error_set(err, -EPROTO, "TLS handshake") : r;
	}
	r = tls_check_open(t, err);
	t->open = r == 0;
	return r < 0 ? r : 1;
}

ssize_t tls_read(struct tls *t, void *data, size_t len, struct error *err)
{
	size_t n = 0;
	int ok;

	assert(t->open);
	ERR_clear_error();
	errno = 0;
	ok = SSL_read_ex(t->ssl, data, len, &n);
	if (t->n_key_updates > TLS_KEY_UPDATES_MAX)
		return error_set(err, -EPROTO, "a TLS connection with too many new keys");
	return ok == 1 ? (ssize_t)n : tls_judge(t, ok, "read from TLS", err);
}

ssize_t tls_write(struct tls *t, const void *data, size_t len, struct error *err)
{
	size_t n = 0;
	int ok, r;

	assert(t->open);
	ERR_clear_error();
	errno = 0;
	ok = SSL_write_ex(t->ssl, data, len, &n);
	if (ok == 1)
		return (ssize_t)n;
	r = tls_judge(t, ok, "write to TLS", err);
	return r == 0 ? error_set(err, -EPIPE, "write to TLS") : r;
}

int tls_end(struct tls *t, struct error *err)
{
	int n, r;

	ERR_clear_error();
	errno = 0;
	n = SSL_shutdown(t->ssl);
	/* 0: said, and not yet answered, which is the peer's affair. */
	if (n >= 0)
		return 0;
	r = tls_judge(t, n, "end TLS", err);
	return r;
}
