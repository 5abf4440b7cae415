/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/svid_port.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "gates/channel.h"
#include "gates/issuer.h"
#include "io/unix.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

#define SVID_TELL_AGAIN (10 * NSEC_PER_SEC)
/* Certificates that are being made at once: half of what the issuer takes. */
#define SVID_WISHES_MAX 512
#define SVID_BACKOFF (100 * NSEC_PER_MSEC)

/* A connection that nacre-svid has. */
struct svid_caller {
	struct list siblings;
	struct svid_port *port;
	uint32_t number;
	int pidfd;
	pid_t pid;
	struct loop_fd ended;    /* of the process */
	char id[SPIFFE_MAX / 4]; /* "": it has none */
	char instance_id[SPIFFE_MAX / 4];
};

/* A certificate that the issuer was asked for. */
struct svid_wish {
	struct list siblings;
	struct svid_port *port;
	uint32_t request;
};

struct svid_port {
	struct svid_port_config config;
	char *program;
	int listen_fd;
	struct loop_fd listener;
	struct isolate_child child;
	struct loop_child watch;
	struct channel channel;
	bool running, waits_for_bundle;
	struct list callers, wishes;
	size_t n_callers, n_wishes;
	struct issuer_watch watch_bundle;
	struct loop_timer backoff; /* until connections are accepted again */
	uint32_t last;
	nsec_t told_at; /* clock_mono() of the last line of the log about a caller */
};

bool svid_port_is_possible(void)
{
	int pair[2], pidfd;
	bool possible;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	pidfd = unix_peer_process(pair[0], &pid);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
	possible = pidfd >= 0;
	(void)fd_close(pidfd);
	return possible;
}

/* ---- callers ---- */

static void svid_caller_free(struct svid_caller *c)
{
	list_remove(&c->siblings);
	c->port->n_callers--;
	loop_fd_done(&c->ended);
	(void)fd_close(c->pidfd);
	free(c);
}

static void svid_caller_ended(struct loop_fd *source, unsigned events)
{
	struct svid_caller *c = container_of(source, struct svid_caller, ended);
	const struct gatemsg m = { .type = GATEMSG_PART, .part = { c->number } };

	(void)events;
	(void)channel_send(&c->port->channel, &m, NULL);
	svid_caller_free(c);
}

static struct svid_caller *svid_port_find(struct svid_port *p, uint32_t number)
{
	struct svid_caller *c;

	list_for_each (c, &p->callers, struct svid_caller, siblings)
		if (c->number == number)
			return c;
	return NULL;
}

/* Of a process that is still the one of the pidfd: an id of a process that has ended may be another
 * one's by now, so it is looked at behind. */
static int svid_port_attest(struct svid_port *p, pid_t pid, int pidfd, struct svid_identity *ret,
			    struct error *err)
{
	int r = p->config.attest(p->config.userdata, pid, ret, err);

	if (pidfd_has_ended(pidfd))
		return error_refuse(err, ERROR_DENIED, "the caller has ended");
	return r;
}

/* ---- the process ---- */

static void svid_port_release(struct svid_port *p)
{
	struct svid_caller *c;
	struct svid_wish *w;

	list_for_each (c, &p->callers, struct svid_caller, siblings)
		svid_caller_free(c);
	list_for_each (w, &p->wishes, struct svid_wish, siblings) {
		issuer_forget(p->config.issuer, w);
		list_remove(&w->siblings);
		p->n_wishes--;
		free(w);
	}
	issuer_forget(p->config.issuer, p);
	p->waits_for_bundle = false;
	channel_done(&p->channel);
	loop_child_done(&p->watch);
	isolate_child_done(&p->child);
	p->running = false;
}

static void svid_port_kill(struct svid_port *p)
{
	channel_done(&p->channel);
	if (p->running)
		(void)pidfd_kill(p->child.pidfd, SIGKILL);
}

static void svid_port_child_end(struct loop_child *watch, int code, int status)
{
	struct svid_port *p = container_of(watch, struct svid_port, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	if (isolate_child_report(&p->child, &exit_code, &err) == 0)
		(void)error_refuse(&err, ERROR_FAULT, "it ended (%s %d)",
				   code == CLD_EXITED ? "status" : "signal", status);
	log_warn("the process that gives workloads their identities has ended; the next one who "
		 "asks has it started again",
		 LOG_ERR(&err));
	svid_port_release(p);
	loop_fd_set(&p->listener, LOOP_READ);
}

static void svid_port_tell_bundle(struct svid_port *p, const struct gate_bytes *bundle)
{
	const struct gatemsg m = { .type = GATEMSG_FRONT,
				   .front = { .domain = issuer_domain(p->config.issuer),
					      .bundle = *bundle } };

	if (p->running && channel_send(&p->channel, &m, NULL) < 0)
		svid_port_kill(p);
}

/* One that has not been told anything asks for itself. */
static void svid_port_bundle_changed(struct issuer_watch *w, const struct gate_bytes *bundle)
{
	struct svid_port *p = container_of(w, struct svid_port, watch_bundle);

	if (!p->waits_for_bundle)
		svid_port_tell_bundle(p, bundle);
}

static void svid_port_bundle(void *userdata, const struct gate_bytes *bytes,
			     const struct error *err)
{
	struct svid_port *p = userdata;

	p->waits_for_bundle = false;
	if (bytes) {
		svid_port_tell_bundle(p, bytes);
		return;
	}
	log_warn("workloads get no identities", LOG_ERR(err));
	if (p->running)
		svid_port_kill(p);
}

static void svid_port_signed(void *userdata, const struct gate_bytes *chain,
			     const uint8_t serial[GATE_SERIAL_SIZE], const struct error *err)
{
	struct svid_wish *w = userdata;
	struct svid_port *p = w->port;
	struct gatemsg m = { .type = GATEMSG_SIGNED, .signed_ = { .request = w->request } };

	if (err) {
		log_warn("a workload has got no certificate", LOG_ERR(err));
		m = (struct gatemsg){ .type = GATEMSG_DENIED,
				      .denied = { .request = w->request,
						  .text = error_text(err) } };
	} else {
		m.signed_.chain = *chain;
		memcpy(m.signed_.serial, serial, GATE_SERIAL_SIZE);
	}
	list_remove(&w->siblings);
	p->n_wishes--;
	free(w);
	if (p->channel.fd >= 0)
		(void)channel_send(&p->channel, &m, NULL);
}

static int svid_port_sign(struct svid_port *p, const struct gatemsg *m, struct error *err)
{
	static struct svid_identity who;
	const struct svid_caller *c = svid_port_find(p, m->wish.caller);
	uint64_t now = clock_real() / NSEC_PER_SEC;
	struct issuer_wish wish = { .spki = m->wish.spki,
				    .names = "",
				    .not_before = now - ISSUER_BACKDATE_SECONDS,
				    .not_after = now + p->config.life };
	struct svid_wish *w;
	int r;

	if (!c || !*c->id)
		return error_refuse(err, ERROR_DENIED, "the caller is gone");
	r = svid_port_attest(p, c->pid, c->pidfd, &who, err);
	if (r < 0)
		return r;
	/* A workload can be renamed: then it gets the new name when it connects again. */
	if (!str_eq(who.id, c->id) || !str_eq(who.instance_id, c->instance_id))
		return error_refuse(err, ERROR_DENIED, "the caller is another one by now");
	wish.id = m->wish.whose == GATE_SVID_STABLE ? c->id : c->instance_id;
	/* Those of machines stand in the same queue. */
	if (p->n_wishes >= SVID_WISHES_MAX)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "%d certificates are being made: try again", SVID_WISHES_MAX);
	w = malloc(sizeof(*w));
	if (!w)
		return error_set(err, -ENOMEM, "sign");
	*w = (struct svid_wish){ .port = p, .request = m->wish.request };
	list_init(&w->siblings);
	r = issuer_sign_wish(p->config.issuer, &wish, svid_port_signed, w);
	if (r < 0) {
		free(w);
		return error_set(err, r, "sign");
	}
	list_add_tail(&p->wishes, &w->siblings);
	p->n_wishes++;
	return 0;
}

static void svid_port_message(struct channel *channel, const struct gatemsg *m)
{
	struct svid_port *p = container_of(channel, struct svid_port, channel);
	struct error err = ERROR_INIT;
	struct svid_caller *c;

	if (m->type == GATEMSG_PART) {
		c = svid_port_find(p, m->part.caller);
		if (c)
			svid_caller_free(c);
	} else if (m->type == GATEMSG_WISH && svid_port_sign(p, m, &err) < 0) {
		const struct gatemsg denied = { .type = GATEMSG_DENIED,
						.denied = { .request = m->wish.request,
							    .text = error_text(&err) } };

		(void)channel_send(&p->channel, &denied, NULL);
	}
}

static void svid_port_channel_end(struct channel *channel, const struct error *err)
{
	(void)err;
	svid_port_kill(container_of(channel, struct svid_port, channel));
}

static int svid_port_start(struct svid_port *p, struct error *err)
{
	static const struct channel_ops ops = { .on_message = svid_port_message,
						.on_end = svid_port_channel_end };
	_cleanup_fd_ int ours = -1, theirs = -1;
	int r = channel_pair(&ours, &theirs, err);

	if (r == 0)
		r = channel_spawn_role(p->program, NULL, p->config.uid, p->config.gid, &theirs, 1,
				       &p->child, err);
	if (r < 0)
		return r;
	p->running = true;
	loop_child_init(&p->watch, p->config.loop, p->child.pidfd, svid_port_child_end);
	channel_init(&p->channel, p->config.loop, TAKE_FD(ours), &ops);
	r = issuer_bundle(p->config.issuer, svid_port_bundle, p);
	p->waits_for_bundle = r == 0;
	if (r < 0)
		svid_port_kill(p);
	return r < 0 ? error_set(err, r, "ask the certificate authority") : 0;
}

/* ---- connections ---- */

/* Callers decide how often there is something to tell. */
static bool svid_port_may_tell(struct svid_port *p)
{
	nsec_t now = clock_mono();

	if (p->told_at && now - p->told_at < SVID_TELL_AGAIN)
		return false;
	p->told_at = now;
	return true;
}

static bool svid_port_has_room(struct svid_port *p, const struct svid_caller *for_whom)
{
	const struct svid_caller *c;
	size_t n = 0;

	list_for_each (c, &p->callers, struct svid_caller, siblings)
		n += str_eq(c->instance_id, for_whom->instance_id);
	return p->n_callers < SVID_CALLERS_MAX && n < SVID_CALLERS_SAME_MAX;
}

static int svid_port_hand_over(struct svid_port *p, const struct svid_caller *c, int fd,
			       const struct error *refusal, struct error *err)
{
	const struct gatemsg m = { .type = GATEMSG_CALLER,
				   .caller = { .caller = c->number,
					       .id = c->id,
					       .instance_id = c->instance_id,
					       .refusal = *c->id ? "" : error_text(refusal) } };

	return channel_send_fd(&p->channel, &m, fd, err);
}

static int svid_port_take(struct svid_port *p, struct svid_caller *c, int fd, struct error *err)
{
	static struct svid_identity who;
	struct error refusal = ERROR_INIT;
	int r = unix_peer_process(fd, &c->pid);

	if (r < 0)
		return error_set(err, r, "ask who has connected");
	c->pidfd = r;
	if (svid_port_attest(p, c->pid, c->pidfd, &who, &refusal) == 0 &&
	    (str_copy(c->id, sizeof(c->id), who.id) < 0 ||
	     str_copy(c->instance_id, sizeof(c->instance_id), who.instance_id) < 0)) {
		c->id[0] = c->instance_id[0] = '\0';
		(void)error_refuse(&refusal, ERROR_DENIED, "its id would be too long");
	}
	if (!*c->id && svid_port_may_tell(p))
		log_info("a process was refused an identity", LOG_INT("pid", c->pid),
			 LOG_ERR(&refusal));
	if (!svid_port_has_room(p, c))
		return error_set(err, -ENOSPC, "%d connections", SVID_CALLERS_SAME_MAX);
	r = p->running ? 0 : svid_port_start(p, err);
	if (r < 0)
		return r;
	if (++p->last == 0)
		p->last = 1;
	c->number = p->last;
	return svid_port_hand_over(p, c, fd, &refusal, err);
}

static void svid_port_backoff_over(struct loop_timer *t)
{
	loop_fd_set(&container_of(t, struct svid_port, backoff)->listener, LOOP_READ);
}

static void svid_port_accept(struct loop_fd *source, unsigned events)
{
	struct svid_port *p = container_of(source, struct svid_port, listener);
	_cleanup_fd_ int fd = accept4(p->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	bool full = fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
	struct svid_caller *c = fd < 0 ? NULL : malloc(sizeof(*c));
	struct error err = ERROR_INIT;

	(void)events;
	/* No descriptor is left: who waits would be told of again and again. */
	if (full) {
		loop_fd_set(&p->listener, 0);
		loop_timer_set(&p->backoff, SVID_BACKOFF);
	}
	if (!c)
		return;
	*c = (struct svid_caller){ .port = p, .pidfd = -1 };
	if (svid_port_take(p, c, fd, &err) < 0) {
		if (svid_port_may_tell(p))
			log_warn("a connection of a workload that asks for its identity is closed",
				 LOG_ERR(&err));
		(void)fd_close(c->pidfd);
		free(c);
		return;
	}
	list_init(&c->siblings);
	list_add_tail(&p->callers, &c->siblings);
	p->n_callers++;
	loop_fd_init(&c->ended, p->config.loop, c->pidfd, LOOP_READ, svid_caller_ended);
}

/* ---- the interface ---- */

int svid_port_new(struct svid_port **ret, const struct svid_port_config *config, struct error *err)
{
	struct svid_port *p = calloc(1, sizeof(*p));

	if (!p)
		return error_set(err, -ENOMEM, "listen for workloads");
	p->config = *config;
	p->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	p->channel = (struct channel)CHANNEL_INIT;
	list_init(&p->callers);
	list_init(&p->wishes);
	p->program = strdup(config->program);
	p->listen_fd =
		p->program ? unix_listen_mode(config->dir_fd, SVID_SOCKET, SOCK_STREAM, 0666, err)
			   : error_set(err, -ENOMEM, "listen for workloads");
	if (p->listen_fd < 0) {
		int r = p->listen_fd;

		free(p->program);
		free(p);
		return r;
	}
	loop_fd_init(&p->listener, config->loop, p->listen_fd, LOOP_READ, svid_port_accept);
	loop_timer_init(&p->backoff, config->loop, svid_port_backoff_over);
	issuer_watch(config->issuer, &p->watch_bundle, svid_port_bundle_changed);
	*ret = p;
	return 0;
}

struct svid_port *svid_port_free(struct svid_port *p)
{
	if (!p)
		return NULL;
	loop_fd_done(&p->listener);
	loop_timer_done(&p->backoff);
	issuer_unwatch(&p->watch_bundle);
	if (p->running) {
		(void)pidfd_kill(p->child.pidfd, SIGKILL);
		svid_port_release(p);
	}
	(void)fd_close(p->listen_fd);
	free(p->program);
	free(p);
	return NULL;
}
