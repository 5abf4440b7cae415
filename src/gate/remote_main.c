/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-remote: what the command line has done of TLS, so that it need not know OpenSSL itself. It
 * runs as the user, with the user's rights, and is linked dynamically, since hosts are looked up
 * the way that the user's system does it.
 *
 *   nacre-remote key
 *     makes a private key of P-256, and prints on standard output its public half (DER, as
 * hexadecimal digits, a line), and itself (PKCS #8 in PEM). nacre-remote connect HOST PORT NAME CA
 * CERTIFICATE KEY connects to a node whose certificate is for NAME, and passes on what is said at
 * standard input, a socket. On standard output it says "ok" once the node has taken the
 * certificate, else, and where the connection is lost later, a sentence; each is a line.
 */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "gate/stream.h"
#include "identity/tls.h"
#include "loop/loop.h"

#define REMOTE_FILE_MAX ((size_t)64 * 1024)
/* For looking up, connecting and shaking hands, together. */
#define REMOTE_PATIENCE (15 * NSEC_PER_SEC)
/* For one address of several. */
#define REMOTE_PATIENCE_ADDRESS (5 * NSEC_PER_SEC)
/* For the node's farewell, once the command line has hung up. */
#define REMOTE_FAREWELL (2 * NSEC_PER_SEC)

struct connect_args {
	const char *host, *port, *name, *ca, *cert, *key;
};

/* ---- key ---- */

static int run_key(struct error *err)
{
	_cleanup_key_ struct key *k = NULL;
	uint8_t spki[KEY_SPKI_MAX];
	char pem[KEY_PEM_MAX];
	int len, r;

	r = key_new_user(&k, err);
	if (r < 0)
		return r;
	len = key_spki(k, spki, err);
	if (len < 0)
		return len;
	r = key_pem(k, pem, err);
	if (r < 0)
		return r;
	for (int i = 0; i < len; i++)
		(void)printf("%02x", spki[i]);
	(void)printf("\n%s", pem);
	key_wipe(pem, sizeof(pem));
	return fflush(stdout) == 0 ? 0 : error_set(err, -errno, "write a key");
}

/* ---- files ---- */

static int file_read(const char *path, bool secret, struct buf *ret, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0);
	struct stat st;
	int r;

	if (fd < 0)
		return error_set(err, -errno, "open %.300s", path);
	if (secret && fstat(fd, &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%.300s: others than its owner may use this private key "
				    "(chmod 600)",
				    path);
	r = fd_read_all(fd, REMOTE_FILE_MAX, ret);
	if (r == 0)
		r = buf_add(ret, "", 1);
	return r < 0 ? error_set(err, r, "read %.300s", path) : 0;
}

static void secret_done(struct buf *b)
{
	if (b->base)
		key_wipe(b->base, b->size);
	buf_done(b);
}

static int make_config(struct tls_config **ret, const struct connect_args *a, struct error *err)
{
	_cleanup_(secret_done) struct buf key = BUF_INIT;
	_cleanup_(buf_done) struct buf ca = BUF_INIT, cert = BUF_INIT;
	struct tls_host who = { .host = a->name };
	int r;

	r = file_read(a->ca, false, &ca, err);
	if (r == 0)
		r = file_read(a->cert, false, &cert, err);
	if (r == 0)
		r = file_read(a->key, true, &key, err);
	if (r < 0)
		return r;
	who.ca = (const char *)buf_data(&ca);
	who.cert = (const char *)buf_data(&cert);
	who.key = (const char *)buf_data(&key);
	r = tls_config_new_host(ret, &who, err);
	return r < 0 ? error_wrap(err, r, "%.100s, %.100s, %.100s", a->ca, a->cert, a->key) : 0;
}

/* ---- connecting ---- */

/* 0 once an event has come, or -ETIMEDOUT. */
static int wait_for(int fd, short events, nsec_t until)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		nsec_t now = clock_mono();
		int n;

		if (now >= until)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int connect_one(const struct addrinfo *a, nsec_t until)
{
	_cleanup_fd_ int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, why = 0, r;
	socklen_t len = sizeof(why);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
		return TAKE_FD(fd);
	if (errno != EINPROGRESS)
		return -errno;
	r = wait_for(fd, POLLOUT, until);
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0)
		return -errno;
	return why ? -why : TAKE_FD(fd);
}

static int connect_any(const struct connect_args *a, nsec_t until, struct error *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *all = NULL;
	int r = getaddrinfo(a->host, a->port, &hints, &all);

	if (r != 0)
		return error_refuse(err, ERROR_UNAVAILABLE, "%.200s is not found: %s", a->host,
				    gai_strerror(r));
	r = -EADDRNOTAVAIL;
	for (const struct addrinfo *i = all; i && r < 0; i = i->ai_next)
		r = connect_one(i, MIN(until, clock_mono() + REMOTE_PATIENCE_ADDRESS));
	freeaddrinfo(all);
	if (r == -ECONNREFUSED)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "%.200s port %s: nobody listens there (does the node have "
				    "`listen` in its configuration?)",
				    a->host, a->port);
	return r < 0 ? error_set(err, r, "connect to %.200s port %s", a->host, a->port) : r;
}

/* ---- the node ---- */

/* What is known better than by the library's words. */
static int explain(const struct tls *t, const struct connect_args *a, int r, struct error *err)
{
	const char *why = tls_explain(t);

	if (r == -ETIMEDOUT)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "%.200s port %s does not answer in time", a->host, a->port);
	if (why)
		return error_refuse(err, ERROR_DENIED, "%.200s port %s: %s (%.120s)", a->host,
				    a->port, why, a->cert);
	return error_wrap(err, r, "%.200s port %s", a->host, a->port);
}

static int handshake_step(struct tls *t, int fd, nsec_t until, struct error *err)
{
	for (;;) {
		int r = tls_handshake(t, err);

		if (r != 0)
			return r < 0 ? r : 0;
		r = wait_for(fd, tls_wants_write(t) ? POLLOUT : POLLIN, until);
		if (r < 0)
			return error_set(err, r, "TLS handshake");
	}
}

/* Whether the certificate was taken shows only in what follows the handshake of TLS 1.3: a node
 * begins to speak at once, or says why not. */
static int hear_first(struct tls *t, int fd, uint8_t *data, size_t size, size_t *ret_len,
		      nsec_t until, struct error *err)
{
	for (;;) {
		ssize_t n = tls_read(t, data, size, err);
		int r;

		if (n == 0)
			return error_refuse(err, ERROR_UNAVAILABLE, "the node has hung up");
		if (n > 0) {
			*ret_len = (size_t)n;
			return 0;
		}
		if (n != -EAGAIN)
			return (int)n;
		r = wait_for(fd, tls_wants_write(t) ? POLLOUT : POLLIN, until);
		if (r < 0)
			return error_set(err, r, "wait for the node");
	}
}

/* ---- passing on ---- */

struct session {
	struct loop *loop;
	struct stream *stream;
	struct loop_timer farewell;
	struct error err;
};

static void session_on_end(struct stream *s, const struct error *err)
{
	struct session *session = s->owner;

	/* A node that ends, or has no room, closes; what the command line makes of that is its own
	 * affair. */
	if (err)
		(void)error_copy(&session->err, err);
	loop_quit(session->loop, 0);
}

static void session_farewell(struct loop_timer *t)
{
	struct session *s = container_of(t, struct session, farewell);

	if (s->stream->plain_eof)
		loop_quit(s->loop, 0);
	loop_timer_set(t, REMOTE_FAREWELL);
}

/* fd and t are taken over. */
static int pass_on(int fd, struct tls *t, const uint8_t *first, size_t len, struct error *err)
{
	static struct session s;
	int r;

	r = loop_new(&s.loop);
	if (r == 0)
		r = fd_set_nonblock(STDIN_FILENO, true);
	if (r == 0)
		r = stream_new(&s.stream, s.loop, STDIN_FILENO, fd, t, true, session_on_end, &s);
	if (r < 0)
		return error_set(err, r, "pass on a connection");
	r = h2frame_feed(&s.stream->frames, first, len, err);
	if (r == 0 && buf_add(&s.stream->down, first, len) < 0)
		r = error_set(err, -ENOMEM, "pass on a connection");
	if (r < 0)
		return r;
	loop_timer_init(&s.farewell, s.loop, session_farewell);
	loop_timer_set(&s.farewell, REMOTE_FAREWELL);
	(void)printf("ok\n");
	(void)fflush(stdout);
	(void)loop_run(s.loop);
	loop_timer_done(&s.farewell);
	s.stream = stream_free(s.stream);
	s.loop = loop_free(s.loop);
	if (s.err.code == -EPIPE || s.err.code == -ECONNRESET)
		return 0;
	return error_copy(err, &s.err);
}

static int run_connect(const struct connect_args *a, struct error *err)
{
	nsec_t until = clock_mono() + REMOTE_PATIENCE;
	struct tls_config *config = NULL;
	static uint8_t first[STREAM_PIECE];
	struct tls *t = NULL;
	size_t len;
	int fd, r;

	r = make_config(&config, a, err);
	if (r < 0)
		return r;
	fd = connect_any(a, until, err);
	r = fd < 0 ? fd : tls_new_client(&t, config, fd, TLS_ALPN_STREAM, err);
	config = tls_config_free(config);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	r = handshake_step(t, fd, until, err);
	if (r == 0)
		r = hear_first(t, fd, first, sizeof(first), &len, until, err);
	if (r < 0) {
		r = explain(t, a, r, err);
		t = tls_free(t);
		(void)fd_close(fd);
		return r;
	}
	return pass_on(fd, t, first, len, err);
}

static int run(int argc, char **argv, struct error *err)
{
	int r = identity_begin(err);

	if (r < 0)
		return r;
	if (argc == 2 && str_eq(argv[1], "key"))
		return run_key(err);
	if (argc == 8 && str_eq(argv[1], "connect"))
		return run_connect(&(struct connect_args){ argv[2], argv[3], argv[4], argv[5],
							   argv[6], argv[7] },
				   err);
	return error_refuse(err, ERROR_INVALID, "it is started by nacre");
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct error err = ERROR_INIT;

	if (fd_open_standard("nacre-remote") < 0)
		return EXIT_FAILURE;
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (run(argc, argv, &err) == 0)
		return EXIT_SUCCESS;
	(void)printf("%s\n", error_text(&err));
	(void)fflush(stdout);
	return EXIT_FAILURE;
}
