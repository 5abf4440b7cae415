/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qmp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "base/text/parse.h"

/*
 * Bytes come in, lines are cut off and judged. A command is written whole before the next one is
 * looked at, its descriptor goes with its first byte. What ends the conversation is noted and told
 * from the loop (`ending`), so that no callback comes from within a call of the owner.
 *
 * A callback may free the conversation: then it is `freed`, calls nothing any more, and its memory
 * goes when the function that the loop has called (`busy`) returns.
 */

#define QMP_READ_SIZE 65536
#define QMP_READS_PER_TURN 8

struct qmp_question {
	struct list link;
	uint64_t id;
	char *text;
	size_t len, sent;
	int fd;
	qmp_fn fn;
	void *data;
};

struct qmp {
	const struct qmp_events *events;
	void *owner;
	int fd;
	struct loop_fd io;
	struct loop_timer patience;
	struct loop_defer ending;
	struct buf in;
	struct list waiting; /* the first is being asked once ready */
	size_t n_waiting;
	uint64_t last_id;
	bool greeted; /* the capabilities were asked for */
	bool ready;
	bool ended;
	bool late; /* nobody waits any more for the answer to the first */
	struct error err;
	bool busy;
	bool freed;
};

static void qmp_question_free(struct qmp_question *c)
{
	(void)fd_close(c->fd);
	free(c->text);
	free(c);
}

static void qmp_question_freep(struct qmp_question **c)
{
	if (*c)
		qmp_question_free(*c);
}

static void qmp_release(struct qmp *q)
{
	struct qmp_question *c;

	list_for_each (c, &q->waiting, struct qmp_question, link) {
		list_remove(&c->link);
		qmp_question_free(c);
	}
	buf_done(&q->in);
	(void)fd_close(q->fd);
	free(q);
}

/* The end of a function that the loop has called. */
static void qmp_leave(struct qmp *q)
{
	q->busy = false;
	if (q->freed)
		qmp_release(q);
}

/* Notes the end; err NULL: the other end has closed. */
static void qmp_end(struct qmp *q, const struct error *err)
{
	if (q->ended || q->freed)
		return;
	q->ended = true;
	if (err)
		q->err = *err;
	loop_fd_done(&q->io);
	loop_timer_stop(&q->patience);
	loop_defer_schedule(&q->ending);
}

/* Takes the first command off and calls its fn. */
static void qmp_answer(struct qmp *q, const struct json_value *answer, const struct error *err)
{
	struct qmp_question *c = list_first(&q->waiting, struct qmp_question, link);
	bool wanted = !q->late;

	list_remove(&c->link);
	q->n_waiting--;
	q->late = false;
	if (c->fn && wanted)
		c->fn(answer, err, c->data);
	qmp_question_free(c);
}

static void qmp_on_ending(struct loop_defer *source)
{
	struct qmp *q = container_of(source, struct qmp, ending);
	struct error over = ERROR_INIT;

	q->busy = true;
	(void)error_refuse(&over, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	while (!q->freed && !list_empty(&q->waiting))
		qmp_answer(q, NULL, &over);
	if (!q->freed && q->events->on_end)
		q->events->on_end(q, q->err.code ? &q->err : NULL, q->owner);
	qmp_leave(q);
}

static ssize_t qmp_send_some(const struct qmp *q, const struct qmp_question *c)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec io = { .iov_base = c->text + c->sent, .iov_len = c->len - c->sent };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (c->fd >= 0 && c->sent == 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof(room);
		header = CMSG_FIRSTHDR(&m);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &c->fd, sizeof(int));
	}
	return sendmsg(q->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Writes what can be written of the first command. */
static void qmp_write(struct qmp *q)
{
	struct qmp_question *c = list_first(&q->waiting, struct qmp_question, link);
	struct error err = ERROR_INIT;
	ssize_t n;

	while (c && c->sent < c->len) {
		if (c->sent == 0)
			loop_timer_set(&q->patience, QMP_PATIENCE);
		n = qmp_send_some(q, c);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			(void)error_set(&err, -errno, "write to the machine's monitor");
			qmp_end(q, &err);
			return;
		}
		c->sent += (size_t)n;
	}
	loop_fd_set(&q->io, LOOP_READ | (c && c->sent < c->len ? LOOP_WRITE : 0));
	if (!c)
		loop_timer_stop(&q->patience);
}

/* One line. NULL without memory. */
static char *qmp_text(const struct qmp_command *command, uint64_t id)
{
	char *text = NULL;
	size_t len = 0;
	struct json j = { .compact = true };
	bool failed;

	j.to = open_memstream(&text, &len);
	if (!j.to)
		return NULL;
	json_put_object(&j, NULL);
	json_put_string(&j, "execute", command->name);
	json_put_unsigned(&j, "id", id);
	if (command->put) {
		json_put_object(&j, "arguments");
		command->put(&j, command->what);
		json_put_end(&j);
	}
	json_put_end(&j);
	failed = ferror(j.to);
	if (fclose(j.to) == 0 && !failed)
		return text;
	free(text);
	return NULL;
}

/* The command goes behind those that wait, or with `first` in front of them. */
static int qmp_queue(struct qmp *q, const struct qmp_command *command, qmp_fn fn, void *data,
		     bool first)
{
	_cleanup_(qmp_question_freep) struct qmp_question *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = -1;
	c->fn = fn;
	c->data = data;
	list_init(&c->link);
	c->id = ++q->last_id;
	c->text = qmp_text(command, c->id);
	if (!c->text)
		return -ENOMEM;
	c->len = strlen(c->text);
	if (c->len > QMP_COMMAND_MAX)
		return -E2BIG;
	if (command->fd >= 0) {
		c->fd = fd_copy(command->fd);
		if (c->fd < 0)
			return c->fd;
	}
	list_add_tail(first ? q->waiting.next : &q->waiting, &c->link);
	q->n_waiting++;
	TAKE_PTR(c);
	return 0;
}

int qmp_ask(struct qmp *q, const struct qmp_command *command, qmp_fn fn, void *data,
	    struct error *err)
{
	int r;

	if (q->ended)
		return error_refuse(err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	if (q->n_waiting >= QMP_WAITING_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%d questions to the machine's monitor wait already",
				    QMP_WAITING_MAX);
	r = qmp_queue(q, command, fn, data, false);
	if (r < 0)
		return error_set(err, r, "ask the machine's monitor");
	if (q->ready && q->n_waiting == 1)
		qmp_write(q);
	return 0;
}

static void qmp_on_capabilities(const struct json_value *answer, const struct error *err,
				void *data)
{
	struct qmp *q = data;

	if (err) {
		qmp_end(q, err);
		return;
	}
	q->ready = true;
	if (q->events->on_ready)
		q->events->on_ready(q, q->owner);
}

/* ---- what comes in: true where the conversation goes on ---- */

static bool qmp_goes_on(const struct qmp *q)
{
	return !q->ended && !q->freed;
}

static bool qmp_refuse(struct qmp *q, const char *what)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_FAULT, "the machine's monitor sent %s", what);
	qmp_end(q, &err);
	return false;
}

static bool qmp_take_greeting(struct qmp *q)
{
	static const struct qmp_command command = { .name = "qmp_capabilities", .fd = -1 };
	struct error err = ERROR_INIT;
	int r;

	if (q->greeted)
		return qmp_refuse(q, "a second greeting");
	q->greeted = true;
	r = qmp_queue(q, &command, qmp_on_capabilities, q, true);
	if (r < 0) {
		(void)error_set(&err, r, "greet the machine's monitor");
		qmp_end(q, &err);
		return false;
	}
	qmp_write(q);
	return !q->ended;
}

static bool qmp_take_event(struct qmp *q, const struct json_value *event,
			   const struct json_value *data)
{
	if (event->kind != JSON_STRING || (data && data->kind != JSON_OBJECT))
		return qmp_refuse(q, "an event that is none");
	if (q->events->on_event)
		q->events->on_event(q, event->text, data, q->owner);
	return qmp_goes_on(q);
}

static bool qmp_take_answer(struct qmp *q, const struct json_value *top,
			    const struct json_value *answer, const struct json_value *error)
{
	const struct qmp_question *c = list_first(&q->waiting, struct qmp_question, link);
	const struct json_value *id = json_member(top, "id");
	const struct json_value *text = error ? json_member(error, "desc") : NULL;
	struct error err = ERROR_INIT;
	uint64_t number;

	if (!c || !q->greeted || c->sent < c->len || !id || id->kind != JSON_NUMBER ||
	    parse_u64(id->text, 0, UINT64_MAX, &number) < 0 || number != c->id)
		return qmp_refuse(q, "an answer that nobody asked for");
	if (error && (error->kind != JSON_OBJECT || !text || text->kind != JSON_STRING))
		return qmp_refuse(q, "an error that is none");
	if (error)
		(void)error_refuse(&err, ERROR_FAULT, "the machine's monitor refused: %.300s",
				   text->text);
	qmp_answer(q, answer, error ? &err : NULL);
	if (qmp_goes_on(q))
		qmp_write(q);
	return qmp_goes_on(q);
}

static bool qmp_take_value(struct qmp *q, const struct json_value *top)
{
	const struct json_value *event, *answer, *error;

	if (top->kind != JSON_OBJECT)
		return qmp_refuse(q, "something else than an object");
	if (json_member(top, "QMP"))
		return qmp_take_greeting(q);
	event = json_member(top, "event");
	answer = json_member(top, "return");
	error = json_member(top, "error");
	if (!!event + !!answer + !!error != 1)
		return qmp_refuse(q, "neither an answer nor an event");
	if (event)
		return qmp_take_event(q, event, json_member(top, "data"));
	return qmp_take_answer(q, top, answer, error);
}

static bool qmp_take_line(struct qmp *q, const uint8_t *line, size_t len)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(QMP_COST_MAX);
	struct error err = ERROR_INIT;
	struct json_value *top;
	int r = json_parse(&top, &arena, line, len, &err);

	if (r < 0) {
		(void)error_wrap(&err, r, "read what the machine's monitor sent");
		qmp_end(q, &err);
		return false;
	}
	return qmp_take_value(q, top);
}

/* All whole lines of the buffer; false where the conversation, or q, is at its end. */
static bool qmp_take_lines(struct qmp *q, size_t fresh)
{
	size_t from = q->in.len - fresh;

	for (;;) {
		const uint8_t *data = buf_data(&q->in);
		const uint8_t *end =
			q->in.len > from ? memchr(data + from, '\n', q->in.len - from) : NULL;

		if (!end)
			break;
		if (!qmp_take_line(q, data, (size_t)(end - data)))
			return false;
		buf_consume(&q->in, (size_t)(end - data) + 1);
		from = 0;
	}
	return q->in.len < QMP_LINE_MAX || qmp_refuse(q, "too long a line");
}

/* One read: false where nothing is left, or the conversation is at its end. */
static bool qmp_read(struct qmp *q)
{
	struct error err = ERROR_INIT;
	uint8_t *room;
	ssize_t n;
	int r = buf_reserve(&q->in, QMP_READ_SIZE, &room);

	if (r < 0) {
		(void)error_set(&err, r, "read from the machine's monitor");
		qmp_end(q, &err);
		return false;
	}
	do
		n = recv(q->fd, room, QMP_READ_SIZE, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0 && errno != ECONNRESET) {
		(void)error_set(&err, -errno, "read from the machine's monitor");
		qmp_end(q, &err);
		return false;
	}
	if (n <= 0) {
		qmp_end(q, NULL);
		return false;
	}
	buf_added(&q->in, (size_t)n);
	return qmp_take_lines(q, (size_t)n);
}

static void qmp_on_io(struct loop_fd *source, unsigned events)
{
	struct qmp *q = container_of(source, struct qmp, io);

	q->busy = true;
	if (events & LOOP_WRITE && q->greeted)
		qmp_write(q);
	for (int i = 0; i < QMP_READS_PER_TURN && !q->ended; i++)
		if (!qmp_read(q))
			break;
	qmp_leave(q);
}

/* The first command gets no answer in time; the others are not asked before it has one. */
static void qmp_on_patience(struct loop_timer *source)
{
	struct qmp *q = container_of(source, struct qmp, patience);
	struct qmp_question *c = list_first(&q->waiting, struct qmp_question, link);
	struct error err = ERROR_INIT;

	q->busy = true;
	(void)error_refuse(&err, ERROR_DEADLINE, "the machine's monitor does not answer");
	if (!q->ready) {
		qmp_end(q, &err);
	} else if (c && !q->late) {
		q->late = true;
		if (c->fn)
			c->fn(NULL, &err, c->data);
	}
	qmp_leave(q);
}

int qmp_new(struct qmp **ret, struct loop *l, int sock_fd, const struct qmp_events *events,
	    void *owner, struct error *err)
{
	struct qmp *q = calloc(1, sizeof(*q));

	if (!q)
		return error_set(err, -ENOMEM, "speak to the machine's monitor");
	*q = (struct qmp){
		.events = events,
		.owner = owner,
		.fd = sock_fd,
		.in = BUF_INIT_LIMIT(QMP_LINE_MAX + QMP_READ_SIZE),
		.err = ERROR_INIT,
	};
	list_init(&q->waiting);
	loop_fd_init(&q->io, l, sock_fd, LOOP_READ, qmp_on_io);
	loop_timer_init(&q->patience, l, qmp_on_patience);
	loop_timer_set(&q->patience, QMP_PATIENCE);
	loop_defer_init(&q->ending, l, qmp_on_ending);
	*ret = q;
	return 0;
}

struct qmp *qmp_free(struct qmp *q)
{
	if (!q)
		return NULL;
	loop_fd_done(&q->io);
	loop_timer_done(&q->patience);
	loop_defer_done(&q->ending);
	q->freed = true;
	if (!q->busy)
		qmp_release(q);
	return NULL;
}
