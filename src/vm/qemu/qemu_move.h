/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QEMU_MOVE_H
#define NACRE_VM_QEMU_MOVE_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/text/json.h"
#include "vm/qemu/qmp.h"

/*
 * QEMU's migration, used within one host: the state of a machine, all but its memory, is written to
 * a file or read from one. It goes by descriptor, since QEMU's sandbox lets it start no program and
 * its jail shows it no file. A value; one of them per conversation, and one move in its life.
 */

enum move_kind { MOVE_SAVE, MOVE_LOAD };

/* err: NULL where the state is there whole. */
typedef void (*move_fn)(const struct error *err, void *data);

struct move {
	struct qmp *qmp;
	enum move_kind kind;
	unsigned step;
	int state_fd;
	bool asked; /* begun, and not answered yet */
	bool over;  /* QEMU has told its end, said whether it went well */
	bool went_well;
	move_fn fn;
	void *data;
};

#define MOVE_INIT                                                                                  \
	{                                                                                          \
		.state_fd = -1                                                                     \
	}

/*
 * MOVE_SAVE stops the machine's processors first; MOVE_LOAD is for a QEMU that was told to wait for
 * it, and leaves it with its processors standing. The descriptor is copied. fn follows where this
 * returns 0, not before it has returned; with an error where the conversation ends meanwhile.
 */
int move_begin(struct move *m, struct qmp *qmp, enum move_kind kind, int state_fd, move_fn fn,
	       void *data, struct error *err);
/* Takes the data of QEMU's event MIGRATION. */
void move_take_event(struct move *m, const struct json_value *event);
/* The conversation is over: calls fn, where that is still to come. */
void move_break(struct move *m);
/* Calls nothing. */
void move_done(struct move *m);

#endif
