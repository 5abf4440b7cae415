/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_STATE_H
#define NACRE_INSTANCE_STATE_H

#include "instance/model.h"

/*
 * The states of an instance and who waits for them; private to this area.
 */

enum instance_event {
	INSTANCE_HELLO,  /* its keeper answers */
	INSTANCE_STOP,   /* somebody wants it to end */
	INSTANCE_END,    /* its keeper is no more */
	INSTANCE_CLEAN,  /* nothing of it is left */
	INSTANCE_REMOVE, /* somebody wants its record to go */
	INSTANCE_EVENT_COUNT
};

/* The only writer of the state. Waiters are told by instance_tell(), from the loop. */
void instance_event(struct instance *i, enum instance_event event);

/* 0 or -ENOMEM. done NULL: nobody waits. */
int instance_wait(struct instance *i, bool until_ended, instance_done_fn done, void *userdata);
/* Tells those whose time has come. */
void instance_tell(struct instance *i);
/* Takes the waiters of this userdata back. */
void instance_forget_waiter(struct instance *i, const void *userdata);
/* Tells all of them that the daemon ends. */
void instance_tell_end(struct instance *i);

/* Closes what belongs to a living keeper. */
void instance_close(struct instance *i);
/* Tells nobody. */
struct instance *instance_free(struct instance *i);

#endif
