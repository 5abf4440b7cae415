/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "gates/channel.h"
#include "gates/issuer.h"
#include "io/unix.h"
#include "loop/loop.h"

/* Of the listener's own certificate. */
#define FRONT_LIFE_SECONDS (12 * 3600)
#define FRONT_RETRY (500 * NSEC_PER_MSEC)
#define FRONT_BACKLOG 256
#define FRONT_PATH_SIZE 108 /* of the kernel */
/* The name that clients of Aurae expect of each server. */
#define FRONT_NAME_AURAE "server.unsafe.aurae.io"

struct front {
	struct front_config config;
	char *program, *address, *names;
	struct sockaddr_storage socket_address;
	socklen_t socket_len;
	int listen_fd;
	struct isolate_child child;
	struct loop_child watch;
	struct channel channel;
	struct loop_timer retry;
	bool running, waits_for_bundle, told;
	uint32_t want; /* the request that the issuer has; 0: none */
	uint8_t bundle[GATE_BUNDLE_MAX];
	size_t bundle_len; /* 0: not known yet */
	struct buf revoked;
	bool revoked_known;
	struct issuer_watch watch_bundle;
	int complained; /* about the address: the errno; 0: not */
};

/* ---- addresses and names ---- */

int front_address_read(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *four = (struct sockaddr_in *)ret;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t len;

	if (text[0] == '/') {
		/* The path itself goes to io/unix.h. */
		*ret = (struct sockaddr_storage){ .ss_family = AF_UNIX };
		*ret_len = sizeof(sa_family_t);
		return strlen(text) < FRONT_PATH_SIZE && str_is_clean(text) ? 0 : -EINVAL;
	}
	if (!colon || parse_u64(colon + 1, 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	len = (size_t)(colon - text);
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	*ret = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		*six = (struct sockaddr_in6){ .sin6_family = AF_INET6,
					      .sin6_port = htons((uint16_t)port) };
		*ret_len = sizeof(*six);
		return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1 ? 0 : -EINVAL;
	}
	*four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	*ret_len = sizeof(*four);
	return inet_pton(AF_INET, host, &four->sin_addr) == 1 ? 0 : -EINVAL;
}

static int names_add(char ret[GATE_NAMES_MAX + 1], const char *name)
{
	size_t len = strlen(ret), n = strlen(name);

	for (const char *at = ret; *at;) {
		size_t one = strcspn(at, ",");

		if (one == n && memcmp(at, name, n) == 0)
			return 0;
		at += one + (at[one] == ',');
	}
	if (len + n + 1 > GATE_NAMES_MAX)
		return -ENOBUFS;
	(void)str_printf(ret + len, GATE_NAMES_MAX + 1 - len, "%s%s", len ? "," : "", name);
	return 0;
}

static int names_add_address(char ret[GATE_NAMES_MAX + 1], const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *four = (const struct sockaddr_in *)a;
	char text[INET6_ADDRSTRLEN];
	const void *bytes = &six->sin6_addr;

	if (a->ss_family == AF_INET)
		bytes = &four->sin_addr;
	if (!inet_ntop(a->ss_family, bytes, text, sizeof(text)))
		return -EINVAL;
	return names_add(ret, text);
}

bool front_address_is_any(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *four = (const struct sockaddr_in *)a;

	if (a->ss_family == AF_UNIX)
		return false;
	return a->ss_family == AF_INET ? four->sin_addr.s_addr == htonl(INADDR_ANY)
				       : IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

static bool address_is_loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *four = (const struct sockaddr_in *)a;

	return a->ss_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
				       : IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* Some may not fit, on a host of hundreds: the certificate is for the first of them then. */
static void names_add_interfaces(char ret[GATE_NAMES_MAX + 1], sa_family_t family)
{
	struct ifaddrs *all = NULL;
	unsigned n = 0;

	if (getifaddrs(&all) < 0)
		return;
	for (const struct ifaddrs *i = all; i && n < FRONT_INTERFACES_MAX; i = i->ifa_next) {
		struct sockaddr_storage a = { .ss_family = family };

		if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP))
			continue;
		memcpy(&a, i->ifa_addr,
		       family == AF_INET ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
		n += names_add_address(ret, &a) == 0;
	}
	freeifaddrs(all);
}

/* As DNS has it: a host's name may have other letters, and then is none. */
static void names_add_host(char ret[GATE_NAMES_MAX + 1])
{
	char host[256];

	if (gethostname(host, sizeof(host) - 1) < 0)
		return;
	host[sizeof(host) - 1] = '\0';
	for (char *p = host; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	if (front_name_is_valid(host))
		(void)names_add(ret, host);
}

bool front_name_is_valid(const char *name)
{
	struct sockaddr_in6 any;
	size_t len = strlen(name);

	if (inet_pton(AF_INET6, name, &any.sin6_addr) == 1)
		return true;
	return len > 0 && len <= FRONT_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-_") == len && name[0] != '.' &&
	       name[0] != '-' && name[len - 1] != '.' && !strstr(name, "..");
}

int front_names(const struct sockaddr_storage *address, const char *more,
		char ret[GATE_NAMES_MAX + 1])
{
	int r = 0;

	ret[0] = '\0';
	for (const char *at = more; r == 0 && *at;) {
		size_t len = strcspn(at, ",");
		char one[FRONT_NAME_MAX + 1];

		if (len >= sizeof(one))
			return -EINVAL;
		memcpy(one, at, len);
		one[len] = '\0';
		r = names_add(ret, one);
		at += len + (at[len] == ',');
	}
	if (r == 0 && front_address_is_any(address))
		names_add_interfaces(ret, address->ss_family);
	else if (r == 0 && address->ss_family != AF_UNIX)
		r = names_add_address(ret, address);
	if (r == 0 && (address->ss_family == AF_UNIX || front_address_is_any(address) ||
		       address_is_loopback(address)))
		r = names_add(ret, "localhost");
	if (r == 0)
		names_add_host(ret);
	return r == 0 ? names_add(ret, FRONT_NAME_AURAE) : r;
}

/* ---- the process ---- */

static void front_release(struct front *f)
{
	issuer_forget(f->config.issuer, f);
	f->want = 0;
	f->waits_for_bundle = false;
	channel_done(&f->channel);
	loop_child_done(&f->watch);
	isolate_child_done(&f->child);
	f->listen_fd = fd_close(f->listen_fd);
	f->running = f->told = false;
}

/* How it ended is told when it is reaped. */
static void front_end(struct front *f)
{
	channel_done(&f->channel);
	if (f->running)
		(void)pidfd_kill(f->child.pidfd, SIGKILL);
}

static void front_child_end(struct loop_child *watch, int code, int status)
{
	struct front *f = container_of(watch, struct front, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	if (isolate_child_report(&f->child, &exit_code, &err) == 0)
		(void)error_refuse(&err, ERROR_FAULT, "it ended (%s %d)",
				   code == CLD_EXITED ? "status" : "signal", status);
	log_warn("the gate of a listener has ended; it is started again",
		 LOG_STR("address", f->address), LOG_ERR(&err));
	front_release(f);
	loop_timer_set(&f->retry, FRONT_RETRY);
}

/* Tells the process what it begins with, once all of it is known. */
static void front_tell(struct front *f)
{
	const struct gatemsg revoked = {
		.type = GATEMSG_REVOKED,
		.revoked = { .serials = { buf_data(&f->revoked), f->revoked.len } },
	};
	const struct gatemsg begin = {
		.type = GATEMSG_FRONT,
		.front = { .domain = issuer_domain(f->config.issuer),
			   .bundle = { f->bundle, f->bundle_len } },
	};
	struct error err = ERROR_INIT;

	if (!f->running || f->channel.fd < 0 || !f->bundle_len || !f->revoked_known)
		return;
	/* The list first: nobody is served without. */
	if (channel_send(&f->channel, &revoked, &err) < 0 ||
	    (!f->told && channel_send(&f->channel, &begin, &err) < 0)) {
		log_warn("the gate of a listener cannot be told whom to serve",
			 LOG_STR("address", f->address), LOG_ERR(&err));
		front_end(f);
		return;
	}
	f->told = true;
}

static void front_bundle(void *userdata, const struct gate_bytes *bytes, const struct error *err)
{
	struct front *f = userdata;

	f->waits_for_bundle = false;
	if (err) {
		log_warn("a listener has no certificate authority", LOG_STR("address", f->address),
			 LOG_ERR(err));
		front_end(f);
		return;
	}
	memcpy(f->bundle, bytes->data, bytes->len);
	f->bundle_len = bytes->len;
	front_tell(f);
}

/* FRONT again; one that is not told of it would let old certificates in. */
static void front_bundle_changed(struct issuer_watch *w, const struct gate_bytes *bundle)
{
	struct front *f = container_of(w, struct front, watch_bundle);

	memcpy(f->bundle, bundle->data, bundle->len);
	f->bundle_len = bundle->len;
	f->told = false;
	front_tell(f);
}

static void front_signed(void *userdata, const struct gate_bytes *chain,
			 const uint8_t serial[GATE_SERIAL_SIZE], const struct error *err)
{
	struct front *f = userdata;
	struct gatemsg m = { .type = GATEMSG_SIGNED, .signed_ = { .request = f->want } };

	if (err) {
		log_warn("a listener has got no certificate", LOG_STR("address", f->address),
			 LOG_ERR(err));
		m = (struct gatemsg){ .type = GATEMSG_DENIED,
				      .denied = { .request = f->want, .text = error_text(err) } };
	} else {
		m.signed_.chain = *chain;
		memcpy(m.signed_.serial, serial, GATE_SERIAL_SIZE);
	}
	f->want = 0;
	if (f->channel.fd >= 0)
		(void)channel_send(&f->channel, &m, NULL);
}

static void front_take_want(struct front *f, const struct gatemsg *m)
{
	static char names[GATE_NAMES_MAX + 1];
	uint64_t now = clock_real() / NSEC_PER_SEC;
	char id[SPIFFE_SIZE];
	const struct issuer_wish wish = { .spki = m->want.spki,
					  .id = id,
					  .names = names,
					  .not_before = now - ISSUER_BACKDATE_SECONDS,
					  .not_after = now + FRONT_LIFE_SECONDS };

	if (f->want || issuer_node_id(f->config.issuer, id, NULL) < 0 ||
	    front_names(&f->socket_address, f->names, names) < 0)
		return;
	if (issuer_sign_wish(f->config.issuer, &wish, front_signed, f) == 0)
		f->want = m->want.request;
}

static void front_take_visitor(struct front *f, const struct gatemsg *m)
{
	const struct front_visitor v = { .id = m->visitor.id,
					 .address = m->visitor.address,
					 .serial = m->visitor.serial,
					 .not_after = m->visitor.not_after };

	if (*f->channel.passed_fd < 0)
		return;
	f->config.on_visitor(f->config.userdata, TAKE_FD(*f->channel.passed_fd), &v);
}

static void front_message(struct channel *c, const struct gatemsg *m)
{
	struct front *f = container_of(c, struct front, channel);

	if (m->type == GATEMSG_WANT)
		front_take_want(f, m);
	else if (m->type == GATEMSG_VISITOR)
		front_take_visitor(f, m);
	else if (m->type == GATEMSG_NOTICE)
		log_info(m->notice.text, LOG_STR("listener", f->address));
}

static void front_channel_end(struct channel *c, const struct error *err)
{
	(void)err;
	front_end(container_of(c, struct front, channel));
}

/* ---- the socket ---- */

/* Open to each user of this host: who has no certificate comes no further. */
static int front_listen_path(struct front *f)
{
	int fd;

	if (unix_is_served(AT_FDCWD, f->address, SOCK_STREAM))
		return -EADDRINUSE;
	fd = unix_listen_mode(AT_FDCWD, f->address, SOCK_STREAM, 0666, NULL);
	f->listen_fd = fd;
	return MIN(fd, 0);
}

int front_listen_at(const struct sockaddr_storage *address, socklen_t len)
{
	_cleanup_fd_ int fd =
		socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	/* "[::]" is that family alone: the other has an address of its own. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    (address->ss_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
	    bind(fd, (const struct sockaddr *)address, len) < 0 || listen(fd, FRONT_BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int front_listen(struct front *f)
{
	if (f->socket_address.ss_family == AF_UNIX)
		return front_listen_path(f);
	f->listen_fd = front_listen_at(&f->socket_address, f->socket_len);
	return MIN(f->listen_fd, 0);
}

static int front_spawn(struct front *f, int sock_fd, struct error *err)
{
	const int fds[] = { sock_fd, f->listen_fd };

	return channel_spawn_role(f->program, "front", f->config.uid, f->config.gid, fds,
				  ARRAY_SIZE(fds), &f->child, err);
}

static int front_start(struct front *f, struct error *err)
{
	static const struct channel_ops ops = { .on_message = front_message,
						.on_end = front_channel_end };
	_cleanup_fd_ int ours = -1, theirs = -1;
	int r = channel_pair(&ours, &theirs, err);

	if (r < 0)
		return r;
	r = front_spawn(f, theirs, err);
	if (r < 0)
		return r;
	f->running = true;
	loop_child_init(&f->watch, f->config.loop, f->child.pidfd, front_child_end);
	channel_init(&f->channel, f->config.loop, TAKE_FD(ours), &ops);
	r = issuer_bundle(f->config.issuer, front_bundle, f);
	if (r < 0)
		front_end(f);
	f->waits_for_bundle = r == 0;
	return 0;
}

static void front_complain(struct front *f, const struct error *err)
{
	if (f->complained != err->code)
		log_error(
			"nobody can reach this node at an address that it should listen at; it is "
			"tried again",
			LOG_STR("address", f->address), LOG_ERR(err));
	f->complained = err->code;
	f->listen_fd = fd_close(f->listen_fd);
	loop_timer_set(&f->retry, FRONT_RETRY);
}

static void front_try(struct loop_timer *t)
{
	struct front *f = container_of(t, struct front, retry);
	struct error err = ERROR_INIT;
	int r = front_listen(f);

	if (r < 0)
		(void)error_set(&err, r, "listen at %s", f->address);
	else
		r = front_start(f, &err);
	if (r < 0) {
		front_complain(f, &err);
		return;
	}
	f->complained = 0;
	log_info("listening for users", LOG_STR("address", f->address));
}

/* ---- the interface ---- */

int front_new(struct front **ret, const struct front_config *config)
{
	struct front *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->config = *config;
	f->listen_fd = -1;
	f->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	f->channel = (struct channel)CHANNEL_INIT;
	f->revoked = (struct buf)BUF_INIT;
	loop_timer_init(&f->retry, config->loop, front_try);
	issuer_watch(config->issuer, &f->watch_bundle, front_bundle_changed);
	f->program = strdup(config->program);
	f->address = strdup(config->address);
	f->names = strdup(config->names);
	r = !f->program || !f->address || !f->names
		    ? -ENOMEM
		    : front_address_read(f->address, &f->socket_address, &f->socket_len);
	if (r < 0) {
		(void)front_free(f);
		return r;
	}
	loop_timer_set(&f->retry, 0);
	*ret = f;
	return 0;
}

struct front *front_free(struct front *f)
{
	if (!f)
		return NULL;
	loop_timer_done(&f->retry);
	issuer_unwatch(&f->watch_bundle);
	if (f->listen_fd >= 0 && f->socket_address.ss_family == AF_UNIX)
		(void)unlink(f->address);
	if (f->running) {
		(void)pidfd_kill(f->child.pidfd, SIGKILL);
		front_release(f);
	}
	f->listen_fd = fd_close(f->listen_fd);
	buf_done(&f->revoked);
	free(f->program);
	free(f->address);
	free(f->names);
	free(f);
	return NULL;
}

int front_set_revoked(struct front *f, const uint8_t *serials, size_t len)
{
	buf_clear(&f->revoked);
	f->revoked_known = len == 0 || buf_add(&f->revoked, serials, len) == 0;
	if (!f->revoked_known) {
		front_end(f);
		return -ENOMEM;
	}
	front_tell(f);
	return 0;
}

bool front_is_listening(const struct front *f)
{
	return f->running && f->told;
}

const char *front_address(const struct front *f)
{
	return f->address;
}
