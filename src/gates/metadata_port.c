/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/metadata_port.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "gates/channel.h"
#include "gates/issuer.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

/*
 * What the process does not know yet is pushed: pages and sockets in this order. Where its socket
 * is full that goes on when the timer comes, as it does after the end of a process.
 */

#define METADATA_PORT_DOORS 2
#define METADATA_PORT_AGAIN (20 * NSEC_PER_MSEC)
#define METADATA_PORT_RETRY (500 * NSEC_PER_MSEC)

/* The service of a pod. */
struct metadata_door {
	struct list siblings;
	char id[ID_SIZE];
	uint32_t number;
	int fds[METADATA_PORT_DOORS];
	struct buf page;
	bool page_told, fd_told[METADATA_PORT_DOORS];
	uint32_t request; /* of the process, that the issuer was asked for; 0: none */
	struct metadata_port *port;
};

struct metadata_port {
	struct metadata_port_config config;
	char *program;
	struct isolate_child child;
	struct loop_child watch;
	struct channel channel;
	bool running;
	struct list doors;
	size_t n_doors;
	uint32_t last;
	struct loop_timer push;
	struct issuer_watch watch_bundle;
};

static struct metadata_door *metadata_port_find(const struct metadata_port *p, const char *id)
{
	struct metadata_door *d;

	list_for_each (d, (struct list *)(uintptr_t)&p->doors, struct metadata_door, siblings)
		if (str_eq(d->id, id))
			return d;
	return NULL;
}

static struct metadata_door *metadata_port_find_number(const struct metadata_port *p,
						       uint32_t number)
{
	struct metadata_door *d;

	list_for_each (d, (struct list *)(uintptr_t)&p->doors, struct metadata_door, siblings)
		if (d->number == number)
			return d;
	return NULL;
}

/* ---- the process ---- */

static void metadata_port_kill(struct metadata_port *p)
{
	channel_done(&p->channel);
	if (p->running)
		(void)pidfd_kill(p->child.pidfd, SIGKILL);
}

static void metadata_port_release(struct metadata_port *p)
{
	struct metadata_door *d;

	list_for_each (d, &p->doors, struct metadata_door, siblings) {
		issuer_forget(p->config.issuer, d);
		d->request = 0;
		d->page_told = false;
		memset(d->fd_told, 0, sizeof(d->fd_told));
	}
	issuer_forget(p->config.issuer, p);
	channel_done(&p->channel);
	loop_child_done(&p->watch);
	isolate_child_done(&p->child);
	p->running = false;
}

static void metadata_port_child_end(struct loop_child *watch, int code, int status)
{
	struct metadata_port *p = container_of(watch, struct metadata_port, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	if (isolate_child_report(&p->child, &exit_code, &err) == 0)
		(void)error_refuse(&err, ERROR_FAULT, "it ended (%s %d)",
				   code == CLD_EXITED ? "status" : "signal", status);
	log_warn("the process of the metadata services has ended; it is started again",
		 LOG_ERR(&err));
	metadata_port_release(p);
	loop_timer_set(&p->push, METADATA_PORT_RETRY);
}

static void metadata_port_bundle_changed(struct issuer_watch *w, const struct gate_bytes *bundle)
{
	struct metadata_port *p = container_of(w, struct metadata_port, watch_bundle);
	const struct gatemsg m = { .type = GATEMSG_FRONT,
				   .front = { .domain = issuer_domain(p->config.issuer),
					      .bundle = *bundle } };

	if (p->running && channel_send(&p->channel, &m, NULL) < 0)
		metadata_port_kill(p);
}

static void metadata_port_bundle(void *userdata, const struct gate_bytes *bytes,
				 const struct error *err)
{
	struct metadata_port *p = userdata;

	if (err)
		log_warn("pods get no identities from their metadata service", LOG_ERR(err));
	else
		metadata_port_bundle_changed(&p->watch_bundle, bytes);
}

static void metadata_port_signed(void *userdata, const struct gate_bytes *chain,
				 const uint8_t serial[GATE_SERIAL_SIZE], const struct error *err)
{
	struct metadata_door *d = userdata;
	struct gatemsg m = { .type = GATEMSG_SIGNED, .signed_ = { .request = d->request } };

	if (err) {
		log_warn("a pod has got no identity", LOG_STR("id", d->id), LOG_ERR(err));
		m = (struct gatemsg){ .type = GATEMSG_DENIED,
				      .denied = { .request = d->request,
						  .text = error_text(err) } };
	} else {
		m.signed_.chain = *chain;
		memcpy(m.signed_.serial, serial, GATE_SERIAL_SIZE);
	}
	d->request = 0;
	if (d->port->channel.fd >= 0)
		(void)channel_send(&d->port->channel, &m, NULL);
}

static int metadata_port_sign(struct metadata_port *p, const struct gatemsg *m, struct error *err)
{
	struct metadata_door *d = metadata_port_find_number(p, m->wish.caller);
	uint64_t now = clock_real() / NSEC_PER_SEC;
	char id[SPIFFE_SIZE];
	struct issuer_wish wish = { .spki = m->wish.spki,
				    .id = id,
				    .names = "",
				    .not_before = now - ISSUER_BACKDATE_SECONDS,
				    .not_after = now + p->config.life };
	int r;

	if (!d || d->request)
		return error_refuse(err, ERROR_DENIED, "the pod is gone, or has asked already");
	r = p->config.identify(p->config.userdata, d->id, id, err);
	if (r == 0)
		r = issuer_sign_wish(p->config.issuer, &wish, metadata_port_signed, d);
	if (r < 0)
		return err->code ? r : error_set(err, r, "sign");
	d->request = m->wish.request;
	return 0;
}

static void metadata_port_message(struct channel *channel, const struct gatemsg *m)
{
	struct metadata_port *p = container_of(channel, struct metadata_port, channel);
	struct error err = ERROR_INIT;

	if (m->type == GATEMSG_WISH && metadata_port_sign(p, m, &err) < 0) {
		const struct gatemsg denied = { .type = GATEMSG_DENIED,
						.denied = { .request = m->wish.request,
							    .text = error_text(&err) } };

		(void)channel_send(&p->channel, &denied, NULL);
	}
}

static void metadata_port_channel_end(struct channel *channel, const struct error *err)
{
	(void)err;
	metadata_port_kill(container_of(channel, struct metadata_port, channel));
}

static int metadata_port_start(struct metadata_port *p, struct error *err)
{
	static const struct channel_ops ops = { .on_message = metadata_port_message,
						.on_end = metadata_port_channel_end };
	_cleanup_fd_ int ours = -1, theirs = -1;
	int r = channel_pair(&ours, &theirs, err);

	if (r == 0)
		r = channel_spawn_role(p->program, "metadata", p->config.uid, p->config.gid,
				       &theirs, 1, &p->child, err);
	if (r < 0)
		return r;
	p->running = true;
	loop_child_init(&p->watch, p->config.loop, p->child.pidfd, metadata_port_child_end);
	channel_init(&p->channel, p->config.loop, TAKE_FD(ours), &ops);
	/* Without memory pods get no identities, and everything else. */
	(void)issuer_bundle(p->config.issuer, metadata_port_bundle, p);
	return 0;
}

/* ---- what it is to know ---- */

/* All of it: 0; -EAGAIN and others: not now. */
static int metadata_door_push(struct metadata_door *d)
{
	struct channel *c = &d->port->channel;
	const struct gatemsg page = { .type = GATEMSG_METADATA,
				      .metadata = { d->number,
						    { buf_data(&d->page), d->page.len } } };
	const struct gatemsg listen = { .type = GATEMSG_LISTEN, .listen = { d->number } };
	int r = d->page_told ? 0 : channel_send(c, &page, NULL);

	d->page_told = d->page_told || r == 0;
	for (size_t i = 0; i < METADATA_PORT_DOORS && r == 0; i++) {
		if (d->fds[i] < 0 || d->fd_told[i])
			continue;
		r = channel_send_fd(c, &listen, d->fds[i], NULL);
		d->fd_told[i] = r == 0;
	}
	return r;
}

static void metadata_port_push(struct metadata_port *p)
{
	struct error err = ERROR_INIT;
	struct metadata_door *d;

	if (p->n_doors == 0)
		return;
	if (!p->running && metadata_port_start(p, &err) < 0) {
		log_error("no pod is served its metadata; it is tried again", LOG_ERR(&err));
		loop_timer_set(&p->push, METADATA_PORT_RETRY);
		return;
	}
	/* It has ended, which is told soon. */
	if (p->channel.fd < 0)
		return;
	list_for_each (d, &p->doors, struct metadata_door, siblings)
		if (metadata_door_push(d) < 0) {
			loop_timer_set(&p->push, METADATA_PORT_AGAIN);
			return;
		}
}

static void metadata_port_push_due(struct loop_timer *t)
{
	metadata_port_push(container_of(t, struct metadata_port, push));
}

/* ---- the interface ---- */

static struct metadata_door *metadata_door_free(struct metadata_door *d)
{
	struct metadata_port *p = d->port;

	issuer_forget(p->config.issuer, d);
	list_remove(&d->siblings);
	p->n_doors--;
	for (size_t i = 0; i < METADATA_PORT_DOORS; i++)
		(void)fd_close(d->fds[i]);
	buf_done(&d->page);
	free(d);
	return NULL;
}

int metadata_port_open(struct metadata_port *p, const char *id, const int fds[2],
		       const uint8_t *page, size_t len, struct error *err)
{
	_cleanup_fd_ int fd4 = fds[0], fd6 = fds[1];
	struct metadata_door *d;

	metadata_port_close(p, id);
	if (p->n_doors == METADATA_DOORS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%d pods have a metadata service, the limit",
				    METADATA_DOORS_MAX);
	d = calloc(1, sizeof(*d));
	if (!d || str_copy(d->id, sizeof(d->id), id) < 0) {
		free(d);
		return error_set(err, -ENOMEM, "the metadata service");
	}
	d->port = p;
	list_init(&d->siblings);
	list_add_tail(&p->doors, &d->siblings);
	p->n_doors++;
	if (++p->last == 0)
		p->last = 1;
	d->number = p->last;
	d->fds[0] = TAKE_FD(fd4);
	d->fds[1] = TAKE_FD(fd6);
	if (buf_add(&d->page, page, len) < 0) {
		(void)metadata_door_free(d);
		return error_set(err, -ENOMEM, "the metadata service");
	}
	metadata_port_push(p);
	return 0;
}

int metadata_port_change(struct metadata_port *p, const char *id, const uint8_t *page, size_t len)
{
	struct metadata_door *d = metadata_port_find(p, id);

	if (!d)
		return 0;
	d->page_told = false;
	buf_clear(&d->page);
	if (buf_add(&d->page, page, len) < 0)
		return -ENOMEM;
	metadata_port_push(p);
	return 0;
}

void metadata_port_close(struct metadata_port *p, const char *id)
{
	struct metadata_door *d = metadata_port_find(p, id);
	struct gatemsg m = { .type = GATEMSG_PART };

	if (!d)
		return;
	m.part.caller = d->number;
	/* One that cannot be told keeps sockets of a namespace that is gone. */
	if (p->channel.fd >= 0 && channel_send(&p->channel, &m, NULL) < 0)
		metadata_port_kill(p);
	(void)metadata_door_free(d);
}

int metadata_port_new(struct metadata_port **ret, const struct metadata_port_config *config)
{
	struct metadata_port *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	p->channel = (struct channel)CHANNEL_INIT;
	list_init(&p->doors);
	loop_timer_init(&p->push, config->loop, metadata_port_push_due);
	issuer_watch(config->issuer, &p->watch_bundle, metadata_port_bundle_changed);
	p->program = strdup(config->program);
	if (!p->program) {
		(void)metadata_port_free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

struct metadata_port *metadata_port_free(struct metadata_port *p)
{
	struct metadata_door *d;

	if (!p)
		return NULL;
	loop_timer_done(&p->push);
	issuer_unwatch(&p->watch_bundle);
	if (p->running) {
		(void)pidfd_kill(p->child.pidfd, SIGKILL);
		metadata_port_release(p);
	}
	list_for_each (d, &p->doors, struct metadata_door, siblings)
		(void)metadata_door_free(d);
	free(p->program);
	free(p);
	return NULL;
}
