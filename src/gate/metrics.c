/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/metrics.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "gate/drop.h"
#include "loop/loop.h"
#include "wire/format/exposition.h"
#include "wire/format/httphead.h"
#include "wire/message/gatemsg.h"
#include "wire/message/scrape.h"

/*
 * A client is READING until its request is there; then WAITING for the page, or ANSWERING. The page
 * has a count of those who still read it, and a new one takes its place for those who come later.
 */

#define METRICS_PIECE 65536

struct page {
	struct buf text;
	nsec_t at;
	unsigned refs;
};

enum client_state { CLIENT_READING, CLIENT_WAITING, CLIENT_ANSWERING };

struct client {
	struct list siblings; /* the oldest first */
	struct metrics *metrics;
	struct loop_fd source;
	struct loop_timer patience;
	int fd;
	enum client_state state;
	bool has_body; /* the request was no HEAD */
	struct buf in, head;
	struct page *page; /* sent behind the head; NULL: none */
	size_t at;         /* of it */
};

struct metrics {
	struct loop *loop;
	struct loop_fd control, listener;
	struct list clients;
	unsigned n_clients;
	struct page *page; /* the last one; NULL: none yet */
	/* The one that comes: -1, none was asked for. */
	int page_fd;
	struct loop_fd page_source;
	struct loop_timer page_patience;
	struct buf coming;
};

/* ---- pages ---- */

static struct page *page_unref(struct page *p)
{
	if (p && --p->refs == 0) {
		buf_done(&p->text);
		free(p);
	}
	return NULL;
}

/* Takes the text over. NULL without memory. */
static struct page *page_new(struct buf *text)
{
	struct page *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct page){ .text = *text, .at = clock_mono(), .refs = 1 };
	*text = (struct buf)BUF_INIT_LIMIT(SCRAPE_PAGE_MAX);
	return p;
}

/* ---- clients ---- */

static void client_free(struct client *c)
{
	list_remove(&c->siblings);
	c->metrics->n_clients--;
	loop_fd_done(&c->source);
	loop_timer_done(&c->patience);
	(void)fd_close(c->fd);
	c->page = page_unref(c->page);
	buf_done(&c->in);
	buf_done(&c->head);
	free(c);
}

static void client_patience_over(struct loop_timer *t)
{
	client_free(container_of(t, struct client, patience));
}

static bool client_is_served(const struct client *c)
{
	return c->state == CLIENT_ANSWERING && c->head.len == 0 &&
	       (!c->page || c->at == c->page->text.len);
}

/* 1: all was sent; 0: more can be later; negative: nobody reads it. */
static int client_send(struct client *c)
{
	ssize_t n;

	while (c->head.len > 0) {
		n = send(c->fd, buf_data(&c->head), c->head.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		buf_consume(&c->head, (size_t)n);
	}
	while (c->page && c->at < c->page->text.len) {
		n = send(c->fd, buf_data(&c->page->text) + c->at, c->page->text.len - c->at,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		c->at += (size_t)n;
	}
	return 1;
}

/* What the client still sends is read until it closes: a close before would be a reset, which can
 * overtake the answer. */
static void client_write(struct client *c)
{
	int r = client_send(c);

	if (r < 0) {
		client_free(c);
		return;
	}
	loop_fd_set(&c->source, LOOP_READ | (r == 0 ? LOOP_WRITE : 0));
	if (r > 0)
		(void)shutdown(c->fd, SHUT_WR);
}

/* fields: of the head, each with its end. */
static void client_answer(struct client *c, const char *status, const char *fields,
			  struct page *page, const char *words)
{
	size_t len = page ? page->text.len : strlen(words);

	c->state = CLIENT_ANSWERING;
	loop_timer_set(&c->patience, METRICS_PATIENCE);
	if (buf_addf(&c->head, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
		     status, fields, len) < 0 ||
	    (!page && c->has_body && buf_add_str(&c->head, words) < 0)) {
		client_free(c);
		return;
	}
	if (page && c->has_body) {
		c->page = page;
		page->refs++;
	}
	client_write(c);
}

static void client_refuse(struct client *c, const char *status, const char *fields,
			  const char *words)
{
	char all[128];

	(void)str_printf(all, sizeof(all), "Content-Type: text/plain; charset=utf-8\r\n%s", fields);
	client_answer(c, status, all, NULL, words);
}

static void client_give_page(struct client *c, struct page *p)
{
	client_answer(c, "200 OK", "Content-Type: " EXPOSITION_TYPE "\r\n", p, "");
}

/* ---- the page from the daemon ---- */

static void metrics_tell(struct metrics *m, struct page *p)
{
	struct client *c;

	list_for_each (c, &m->clients, struct client, siblings) {
		if (c->state != CLIENT_WAITING)
			continue;
		if (p)
			client_give_page(c, p);
		else
			client_refuse(c, "503 Service Unavailable", "",
				      "the daemon has told nothing; its log may say why\n");
	}
}

static void metrics_page_end(struct metrics *m)
{
	static const char end[] = EXPOSITION_END;
	size_t len = sizeof(end) - 1;
	struct page *p = NULL;

	loop_fd_done(&m->page_source);
	loop_timer_stop(&m->page_patience);
	m->page_fd = fd_close(m->page_fd);
	if (m->coming.len >= len &&
	    memcmp(buf_data(&m->coming) + m->coming.len - len, end, len) == 0)
		p = page_new(&m->coming);
	buf_clear(&m->coming);
	m->page = page_unref(m->page);
	m->page = p;
	metrics_tell(m, p);
}

static void metrics_page_over(struct loop_timer *t)
{
	struct metrics *m = container_of(t, struct metrics, page_patience);

	buf_clear(&m->coming);
	metrics_page_end(m);
}

static void metrics_page_read(struct loop_fd *source, unsigned events)
{
	struct metrics *m = container_of(source, struct metrics, page_source);
	uint8_t *room;
	ssize_t n;

	(void)events;
	if (buf_reserve(&m->coming, METRICS_PIECE, &room) < 0) {
		buf_clear(&m->coming);
		metrics_page_end(m);
		return;
	}
	n = recv(m->page_fd, room, METRICS_PIECE, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		buf_added(&m->coming, (size_t)n);
	else
		metrics_page_end(m);
}

static int metrics_send_scrape(int fd)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	const struct gatemsg scrape = { .type = GATEMSG_SCRAPE };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = packet };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	int len = gatemsg_encode(&scrape, packet, NULL);

	if (len < 0)
		return len;
	iov.iov_len = (size_t)len;
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(METRICS_FD_CONTROL, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int metrics_ask(struct metrics *m)
{
	_cleanup_fd_ int ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	r = metrics_send_scrape(theirs);
	if (r < 0)
		return r;
	m->page_fd = TAKE_FD(ours);
	loop_fd_init(&m->page_source, m->loop, m->page_fd, LOOP_READ, metrics_page_read);
	loop_timer_set(&m->page_patience, METRICS_PAGE_PATIENCE);
	return 0;
}

/* ---- requests ---- */

static void client_wait_page(struct client *c)
{
	struct metrics *m = c->metrics;

	if (m->page && clock_mono() - m->page->at < METRICS_FRESH) {
		client_give_page(c, m->page);
		return;
	}
	c->state = CLIENT_WAITING;
	loop_timer_stop(&c->patience);
	if (m->page_fd < 0 && metrics_ask(m) < 0)
		client_refuse(c, "503 Service Unavailable", "", "the daemon cannot be asked\n");
}

static void client_request(struct client *c, struct httphead *h)
{
	struct http_text path = http_text_cut(&h->target, '?');
	bool is_get = str_eq(h->method, "GET"), is_head = str_eq(h->method, "HEAD");
	char name[16] = "";

	c->has_body = !is_head;
	(void)http_text_keep(path, name, sizeof(name));
	if (!str_eq(name, "/metrics"))
		client_refuse(c, "404 Not Found", "", "there is /metrics here, and nothing else\n");
	else if (!is_get && !is_head)
		client_refuse(c, "405 Method Not Allowed", "Allow: GET, HEAD\r\n",
			      "GET and HEAD only\n");
	else
		client_wait_page(c);
}

static void client_read(struct client *c)
{
	struct httphead h;
	uint8_t *room;
	size_t used;
	ssize_t n;
	int r;

	if (buf_reserve(&c->in, HTTPHEAD_MAX, &room) < 0) {
		client_free(c);
		return;
	}
	n = recv(c->fd, room, HTTPHEAD_MAX, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Who sends no more may still read. */
	if (n < 0 || (n == 0 && (c->state == CLIENT_READING || client_is_served(c)))) {
		client_free(c);
		return;
	}
	if (n == 0)
		loop_fd_set(&c->source, c->state == CLIENT_ANSWERING ? LOOP_WRITE : 0);
	if (c->state != CLIENT_READING)
		return;
	buf_added(&c->in, (size_t)n);
	r = httphead_take(buf_data(&c->in), c->in.len, &used, &h);
	if (r > 0)
		client_request(c, &h);
	else if (r < 0)
		client_refuse(c, "400 Bad Request", "", "this is no request of HTTP/1.1\n");
}

static void client_event(struct loop_fd *source, unsigned events)
{
	struct client *c = container_of(source, struct client, source);

	if (c->state == CLIENT_ANSWERING && events & LOOP_WRITE)
		client_write(c);
	else if (events & LOOP_READ)
		client_read(c);
}

/* Of those who have asked for nothing yet the oldest goes. */
static bool metrics_make_room(struct metrics *m)
{
	struct client *c;

	if (m->n_clients < METRICS_CLIENTS_MAX)
		return true;
	list_for_each (c, &m->clients, struct client, siblings) {
		if (c->state != CLIENT_READING)
			continue;
		client_free(c);
		return true;
	}
	return false;
}

static void client_new(struct metrics *m, int fd)
{
	_cleanup_fd_ int owned = fd;
	struct client *c = metrics_make_room(m) ? malloc(sizeof(*c)) : NULL;

	if (!c)
		return;
	*c = (struct client){ .metrics = m,
			      .fd = TAKE_FD(owned),
			      .in = BUF_INIT_LIMIT(2 * HTTPHEAD_MAX),
			      .head = BUF_INIT };
	list_init(&c->siblings);
	list_add_tail(&m->clients, &c->siblings);
	m->n_clients++;
	loop_fd_init(&c->source, m->loop, c->fd, LOOP_READ, client_event);
	loop_timer_init(&c->patience, m->loop, client_patience_over);
	loop_timer_set(&c->patience, METRICS_PATIENCE);
}

static void metrics_accept(struct loop_fd *source, unsigned events)
{
	struct metrics *m = container_of(source, struct metrics, listener);
	int fd = accept4(METRICS_FD_LISTEN, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd >= 0)
		client_new(m, fd);
}

/* The daemon says nothing: it is there, or it has hung up. */
static void metrics_on_control(struct loop_fd *source, unsigned events)
{
	struct metrics *m = container_of(source, struct metrics, control);
	uint8_t byte;
	ssize_t n = recv(METRICS_FD_CONTROL, &byte, sizeof(byte), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_quit(m->loop, 0);
}

static int metrics_begin(struct metrics *m, struct error *err)
{
	int r;

	*m = (struct metrics){ .page_fd = -1, .coming = BUF_INIT_LIMIT(SCRAPE_PAGE_MAX) };
	list_init(&m->clients);
	r = fd_set_nonblock(METRICS_FD_CONTROL, true);
	if (r == 0)
		r = fd_set_nonblock(METRICS_FD_LISTEN, true);
	if (r == 0)
		r = loop_new(&m->loop);
	if (r < 0)
		return error_set(err, r, "make a loop");
	loop_fd_init(&m->control, m->loop, METRICS_FD_CONTROL, LOOP_READ, metrics_on_control);
	loop_fd_init(&m->listener, m->loop, METRICS_FD_LISTEN, LOOP_READ, metrics_accept);
	loop_timer_init(&m->page_patience, m->loop, metrics_page_over);
	return 0;
}

int metrics_run(uid_t uid, gid_t gid, struct error *err)
{
	static struct metrics m;
	int r = metrics_begin(&m, err);

	if (r == 0)
		r = drop_privilege(DROP_FRONT, uid, gid, err);
	if (r < 0)
		return r;
	return loop_run(m.loop);
}
