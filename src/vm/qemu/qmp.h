/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QMP_H
#define NACRE_VM_QMP_H

#include "base/log/error.h"
#include "base/text/json.h"
#include "loop/loop.h"
#include "wire/document/jsonread.h"

/*
 * A conversation with QEMU by its machine protocol (QMP): greeting, capabilities, commands with
 * their answers, events. The other end is a stranger's: what it says is a line of at most
 * QMP_LINE_MAX bytes of strict JSON, costs at most QMP_COST_MAX bytes while it is looked at, and
 * must be one of greeting, answer to the command that was asked last, and event. Anything else ends
 * the conversation.
 *
 * One command is asked at a time, further ones wait in order.
 */

#define QMP_LINE_MAX (256 * 1024)
#define QMP_COST_MAX (4 * 1024 * 1024)
#define QMP_WAITING_MAX 64
#define QMP_COMMAND_MAX 4096
/* Without an answer for so long, a command has failed; so has a greeting that does not come. */
#define QMP_PATIENCE (60 * NSEC_PER_SEC)

struct qmp;

struct qmp_events {
	/* Commands are taken from here on; those that were asked before go out now. */
	void (*on_ready)(struct qmp *q, void *owner);
	/* data: an object, or NULL. Lives as long as the call. */
	void (*on_event)(struct qmp *q, const char *name, const struct json_value *data,
			 void *owner);
	/* Once and last. err: NULL where the other end has closed. */
	void (*on_end)(struct qmp *q, const struct error *err, void *owner);
};

/*
 * answer: what "return" has, for as long as the call lasts, NULL with an err: QEMU's refusal
 * (ERROR_FAULT, its words cleaned), ERROR_DEADLINE, or ERROR_UNAVAILABLE at the end of the
 * conversation.
 */
typedef void (*qmp_fn)(const struct json_value *answer, const struct error *err, void *data);

/* Takes sock_fd over, a connected and non-blocking stream, where it succeeds. */
int qmp_new(struct qmp **ret, struct loop *l, int sock_fd, const struct qmp_events *events,
	    void *owner, struct error *err);

/* A command. put() writes the members of "arguments" and fills a JSON document that ends with its
 * stream: it need not look for errors. */
struct qmp_command {
	const char *name;
	void (*put)(struct json *j, const void *what); /* NULL: no arguments */
	const void *what;
	int fd; /* goes along, and is copied; -1: none */
};

/*
 * Asks a command. fn may be NULL, and is never called from within this. ERROR_EXHAUSTED where
 * QMP_WAITING_MAX wait already; ERROR_UNAVAILABLE once the conversation has ended.
 */
int qmp_ask(struct qmp *q, const struct qmp_command *command, qmp_fn fn, void *data,
	    struct error *err);

/* Calls nothing any more. May be called from within any of the calls. */
struct qmp *qmp_free(struct qmp *q);
static inline void qmp_freep(struct qmp **q)
{
	*q = qmp_free(*q);
}

#endif
