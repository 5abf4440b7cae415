/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu_move.h"

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"

/*
 * A chain of commands, each asked when the one before was answered. The last one only begins what
 * is wanted; its end comes as an event, which may be read before or behind that answer. Memory that
 * is shared is left out: it is in a file already. Who loads has the same file, but privately, so
 * that what it changes is its own.
 */

#define MOVE_NAME "state"

static void move_put_capability(struct json *j, const char *name)
{
	json_put_object(j, NULL);
	json_put_string(j, "capability", name);
	json_put_bool(j, "state", true);
	json_put_end(j);
}

static void move_put_capabilities(struct json *j, const void *what)
{
	(void)what;
	json_put_array(j, "capabilities");
	move_put_capability(j, "x-ignore-shared");
	move_put_capability(j, "events");
	json_put_end(j);
}

static void move_put_name(struct json *j, const void *what)
{
	(void)what;
	json_put_string(j, "fdname", MOVE_NAME);
}

static void move_put_uri(struct json *j, const void *what)
{
	(void)what;
	json_put_string(j, "uri", "fd:" MOVE_NAME);
}

struct move_step {
	const char *command;
	void (*put)(struct json *j, const void *what);
	bool with_fd;
};

static const struct move_step move_save[] = {
	{ "stop", NULL, false },
	{ "migrate-set-capabilities", move_put_capabilities, false },
	{ "getfd", move_put_name, true },
	{ "migrate", move_put_uri, false },
	{ NULL, NULL, false },
};

static const struct move_step move_load[] = {
	{ "migrate-set-capabilities", move_put_capabilities, false },
	{ "getfd", move_put_name, true },
	{ "migrate-incoming", move_put_uri, false },
	{ NULL, NULL, false },
};

static const struct move_step *move_step(const struct move *m)
{
	return (m->kind == MOVE_SAVE ? move_save : move_load) + m->step;
}

static void move_finish(struct move *m, const struct error *err)
{
	if (!m->asked)
		return;
	m->asked = false;
	m->state_fd = fd_close(m->state_fd);
	m->fn(err, m->data);
}

/* Both the last answer and the event are here. */
static void move_check(struct move *m)
{
	struct error err = ERROR_INIT;

	if (!m->asked || !m->over || move_step(m)->command)
		return;
	if (!m->went_well)
		(void)error_refuse(&err, ERROR_FAULT, "the machine's monitor could not %s",
				   m->kind == MOVE_SAVE ? "save it" : "load it");
	move_finish(m, m->went_well ? NULL : &err);
}

static int move_ask(struct move *m, qmp_fn fn, struct error *err)
{
	const struct move_step *s = move_step(m);
	const struct qmp_command command = {
		.name = s->command,
		.put = s->put,
		.fd = s->with_fd ? m->state_fd : -1,
	};

	return qmp_ask(m->qmp, &command, fn, m, err);
}

static void move_on_answer(const struct json_value *answer, const struct error *err, void *data)
{
	struct move *m = data;
	struct error own = ERROR_INIT;

	(void)answer;
	if (!m->asked)
		return;
	if (err) {
		move_finish(m, err);
		return;
	}
	m->step++;
	if (!move_step(m)->command)
		move_check(m);
	else if (move_ask(m, move_on_answer, &own) < 0)
		move_finish(m, &own);
}

int move_begin(struct move *m, struct qmp *qmp, enum move_kind kind, int state_fd, move_fn fn,
	       void *data, struct error *err)
{
	int r;

	if (m->fn)
		return error_refuse(err, ERROR_ABORTED, "the machine was saved already");
	m->qmp = qmp;
	m->kind = kind;
	m->state_fd = fd_copy(state_fd);
	if (m->state_fd < 0)
		return error_set(err, m->state_fd, "copy the descriptor of a machine's state");
	r = move_ask(m, move_on_answer, err);
	if (r < 0) {
		m->state_fd = fd_close(m->state_fd);
		return r;
	}
	m->fn = fn;
	m->data = data;
	m->asked = true;
	return 0;
}

void move_take_event(struct move *m, const struct json_value *event)
{
	const struct json_value *status = event ? json_member(event, "status") : NULL;

	if (!m->asked || !status || status->kind != JSON_STRING)
		return;
	if (!str_eq(status->text, "completed") && !str_eq(status->text, "failed"))
		return;
	m->over = true;
	m->went_well = str_eq(status->text, "completed");
	move_check(m);
}

void move_break(struct move *m)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	move_finish(m, &err);
}

void move_done(struct move *m)
{
	m->asked = false;
	m->state_fd = fd_close(m->state_fd);
}
