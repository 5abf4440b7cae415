/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/metadata.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "gate/control.h"
#include "gate/drop.h"
#include "gate/pod_svid.h"
#include "loop/loop.h"
#include "wire/document/imds.h"
#include "wire/format/httphead.h"
#include "wire/message/gatemsg.h"

/*
 * A client is READING until its request is there; then WAITING for the identity of its pod, or
 * ANSWERING.
 */

/* One for each family. */
#define DOOR_LISTENERS 2

struct door;

struct listener {
	struct door *door;
	struct loop_fd source;
	int fd; /* -1: there is none */
};

/* The service of a pod. */
struct door {
	struct list siblings;
	struct metadata *metadata;
	uint32_t number;
	struct listener listeners[DOOR_LISTENERS];
	struct buf page;
	uint8_t key[IMDS_KEY_SIZE];
	struct pod_svid svid;
	unsigned n_clients;
};

enum client_state { CLIENT_READING, CLIENT_WAITING, CLIENT_ANSWERING };

struct client {
	struct list siblings; /* the oldest first */
	struct door *door;
	struct loop_fd source;
	struct loop_timer patience;
	int fd;
	enum client_state state;
	struct buf in, out;
};

struct metadata {
	struct loop *loop;
	struct loop_fd control;
	struct list doors, clients;
	unsigned n_clients;
	struct pod_svids svids;
};

/* ---- clients ---- */

static void client_free(struct client *c)
{
	list_remove(&c->siblings);
	c->door->n_clients--;
	c->door->metadata->n_clients--;
	loop_fd_done(&c->source);
	loop_timer_done(&c->patience);
	(void)fd_close(c->fd);
	buf_done(&c->in);
	buf_done(&c->out);
	free(c);
}

static void client_patience_over(struct loop_timer *t)
{
	client_free(container_of(t, struct client, patience));
}

/* What the client still sends is read until it closes: a close before would be a reset, which can
 * overtake the answer. */
static void client_write(struct client *c)
{
	ssize_t n = 0;

	while (c->out.len > 0 && n >= 0) {
		n = send(c->fd, buf_data(&c->out), c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0)
			buf_consume(&c->out, (size_t)n);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_free(c);
		return;
	}
	loop_fd_set(&c->source, LOOP_READ | (c->out.len > 0 ? LOOP_WRITE : 0));
	if (c->out.len == 0)
		(void)shutdown(c->fd, SHUT_WR);
}

static void client_answer(struct client *c)
{
	c->state = CLIENT_ANSWERING;
	loop_timer_set(&c->patience, METADATA_PATIENCE);
	client_write(c);
}

/* The answer with the identity of the pod, or that there is none now. */
static void client_give_svid(struct client *c, const struct buf *text)
{
	static const char none[] = "the node has given no identity; try again\n";
	int r = text ? imds_reply(&c->out, "200 OK", "application/json", buf_data(text), text->len)
		     : imds_reply(&c->out, "503 Service Unavailable", "text/plain", none,
				  sizeof(none) - 1);

	if (r < 0)
		client_free(c);
	else
		client_answer(c);
}

static void client_want_svid(struct client *c)
{
	const struct buf *text;

	c->state = CLIENT_WAITING;
	text = pod_svid_get(&c->door->svid, c->door->number);
	if (text)
		client_give_svid(c, text);
}

static void client_request(struct client *c)
{
	const struct door *d = c->door;
	const struct imds page = { .page = buf_data(&d->page),
				   .len = d->page.len,
				   .key = d->key,
				   .now = clock_mono() / NSEC_PER_SEC };
	int r = imds_answer(&c->out, &page, buf_data(&c->in), c->in.len);

	if (r == IMDS_ANSWERED)
		client_answer(c);
	else if (r == IMDS_WANTS_SVID)
		client_want_svid(c);
	else if (r < 0)
		client_free(c);
}

static void client_read(struct client *c)
{
	uint8_t *room;
	ssize_t n;

	if (buf_reserve(&c->in, HTTPHEAD_MAX, &room) < 0) {
		client_free(c);
		return;
	}
	n = recv(c->fd, room, HTTPHEAD_MAX, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Who sends no more may still read. */
	if (n < 0 || (n == 0 && (c->state == CLIENT_READING || c->out.len == 0))) {
		client_free(c);
		return;
	}
	if (n == 0)
		loop_fd_set(&c->source, c->state == CLIENT_ANSWERING ? LOOP_WRITE : 0);
	if (c->state != CLIENT_READING)
		return;
	buf_added(&c->in, (size_t)n);
	client_request(c);
}

static void client_event(struct loop_fd *source, unsigned events)
{
	struct client *c = container_of(source, struct client, source);

	if (c->state == CLIENT_ANSWERING && events & LOOP_WRITE)
		client_write(c);
	else if (events & LOOP_READ)
		client_read(c);
}

static void client_new(struct door *d, int fd)
{
	_cleanup_fd_ int owned = fd;
	struct metadata *m = d->metadata;
	struct client *c = malloc(sizeof(*c));

	if (!c)
		return;
	*c = (struct client){ .door = d,
			      .fd = TAKE_FD(owned),
			      .in = BUF_INIT_LIMIT(2 * HTTPHEAD_MAX),
			      .out = BUF_INIT };
	list_init(&c->siblings);
	list_add_tail(&m->clients, &c->siblings);
	d->n_clients++;
	m->n_clients++;
	loop_fd_init(&c->source, m->loop, c->fd, LOOP_READ, client_event);
	loop_timer_init(&c->patience, m->loop, client_patience_over);
	loop_timer_set(&c->patience, METADATA_PATIENCE);
}

/* ---- doors ---- */

/* The oldest of this pod's goes, or of all. */
static void door_make_room(const struct door *d)
{
	const struct metadata *m = d->metadata;
	bool of_one = d->n_clients >= METADATA_CLIENTS_OF_ONE;
	struct client *c;

	if (!of_one && m->n_clients < METADATA_CLIENTS_MAX)
		return;
	list_for_each (c, (struct list *)(uintptr_t)&m->clients, struct client, siblings) {
		if (of_one && c->door != d)
			continue;
		client_free(c);
		return;
	}
}

static void door_accept(struct loop_fd *source, unsigned events)
{
	struct listener *l = container_of(source, struct listener, source);
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd < 0)
		return;
	door_make_room(l->door);
	client_new(l->door, fd);
}

static struct door *door_free(struct door *d)
{
	struct client *c;

	if (!d)
		return NULL;
	list_for_each (c, &d->metadata->clients, struct client, siblings)
		if (c->door == d)
			client_free(c);
	for (size_t i = 0; i < DOOR_LISTENERS; i++) {
		if (d->listeners[i].fd < 0)
			continue;
		loop_fd_done(&d->listeners[i].source);
		(void)fd_close(d->listeners[i].fd);
	}
	pod_svid_done(&d->svid);
	list_remove(&d->siblings);
	buf_done(&d->page);
	free(d);
	return NULL;
}

static struct door *metadata_find(const struct metadata *m, uint32_t number)
{
	struct door *d;

	list_for_each (d, (struct list *)(uintptr_t)&m->doors, struct door, siblings)
		if (d->number == number)
			return d;
	return NULL;
}

static void door_on_svid(struct pod_svid *svid, const struct buf *text)
{
	struct door *d = container_of(svid, struct door, svid);
	struct client *c;

	list_for_each (c, &d->metadata->clients, struct client, siblings)
		if (c->door == d && c->state == CLIENT_WAITING)
			client_give_svid(c, text);
}

static struct door *door_new(struct metadata *m, uint32_t number)
{
	struct door *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	*d = (struct door){ .metadata = m,
			    .number = number,
			    .page = BUF_INIT_LIMIT(IMDS_PAGE_MAX) };
	for (size_t i = 0; i < DOOR_LISTENERS; i++)
		d->listeners[i] = (struct listener){ .door = d, .fd = -1 };
	pod_svid_init(&d->svid, &m->svids, door_on_svid);
	list_init(&d->siblings);
	list_add_tail(&m->doors, &d->siblings);
	/* A few bytes come whole. */
	if (getrandom(d->key, sizeof(d->key), 0) == (ssize_t)sizeof(d->key))
		return d;
	return door_free(d);
}

static int door_listen(struct door *d, int fd)
{
	_cleanup_fd_ int owned = fd;

	for (size_t i = 0; i < DOOR_LISTENERS && owned >= 0; i++) {
		struct listener *l = &d->listeners[i];

		if (l->fd >= 0)
			continue;
		l->fd = TAKE_FD(owned);
		loop_fd_init(&l->source, d->metadata->loop, l->fd, LOOP_READ, door_accept);
		return 0;
	}
	return -EPROTO;
}

/* ---- the daemon ---- */

static int metadata_take_page(struct metadata *m, const struct gatemsg *msg)
{
	const struct gate_bytes *page = &msg->metadata.page;
	struct door *d = metadata_find(m, msg->metadata.caller);
	bool is_new = !d;

	if (is_new)
		d = door_new(m, msg->metadata.caller);
	if (!d)
		return -ENOMEM;
	buf_clear(&d->page);
	return imds_check(page->data, page->len) < 0 ? -EPROTO
						     : buf_add(&d->page, page->data, page->len);
}

static int metadata_take(struct metadata *m, const struct gatemsg *msg, int fd)
{
	_cleanup_fd_ int owned = fd;
	struct door *d;

	switch ((unsigned)msg->type) {
	case GATEMSG_FRONT:
		return pod_svids_know(&m->svids, &msg->front.bundle);
	case GATEMSG_METADATA:
		return metadata_take_page(m, msg);
	case GATEMSG_LISTEN:
		d = metadata_find(m, msg->listen.caller);
		return d && owned >= 0 ? door_listen(d, TAKE_FD(owned)) : -EPROTO;
	case GATEMSG_PART:
		(void)door_free(metadata_find(m, msg->part.caller));
		return 0;
	case GATEMSG_SIGNED:
		pod_svids_signed(&m->svids, msg);
		return 0;
	case GATEMSG_DENIED:
		pod_svids_denied(&m->svids, msg);
		return 0;
	default:
		return -EPROTO;
	}
}

/* What the daemon says that is none of this ends the process, which is started again. */
static void metadata_on_control(struct loop_fd *source, unsigned events)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct metadata *m = container_of(source, struct metadata, control);
	struct gatemsg msg;
	int fd;
	ssize_t n = control_receive(METADATA_FD_CONTROL, packet, sizeof(packet), &fd);

	(void)events;
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0 || gatemsg_decode(&msg, packet, (size_t)n, NULL) < 0 ||
	    metadata_take(m, &msg, fd) < 0)
		loop_quit(m->loop, 0);
}

static void metadata_tell(void *userdata, const struct gatemsg *msg)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct metadata *m = userdata;
	int len = gatemsg_encode(msg, packet, NULL);

	if (len < 0 || send(METADATA_FD_CONTROL, packet, (size_t)len, MSG_NOSIGNAL) != len)
		loop_quit(m->loop, 0);
}

int metadata_run(uid_t uid, gid_t gid, struct error *err)
{
	static struct metadata m;
	int r;

	list_init(&m.doors);
	list_init(&m.clients);
	r = fd_set_nonblock(METADATA_FD_CONTROL, true);
	if (r == 0)
		r = loop_new(&m.loop);
	if (r < 0)
		return error_set(err, r, "make a loop");
	pod_svids_init(&m.svids, m.loop, metadata_tell, &m);
	loop_fd_init(&m.control, m.loop, METADATA_FD_CONTROL, LOOP_READ, metadata_on_control);
	r = drop_privilege(DROP_METADATA, uid, gid, err);
	return r < 0 ? r : loop_run(m.loop);
}
