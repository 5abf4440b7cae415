/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_END_H
#define NACRE_INSTANCE_END_H

#include "instance/state.h"

/*
 * How an instance ends; private to this area and to providers.
 */

#define INSTANCE_STOP_GRACE (5 * NSEC_PER_SEC)
/* The same of a machine in a machine: longer than its keeper above waits for it. */
#define INSTANCE_MACHINE_STOP_GRACE (180 * NSEC_PER_SEC)
/* A keeper that closed its connection should end in a moment, and its end says why. */
#define INSTANCE_LOST_GRACE (1 * NSEC_PER_SEC)

/* Arms what belongs to an instance for its whole life. */
void instance_init_sources(struct instance *i);

/* It has ended, or there never was one: what follows is done when the loop turns. Its waiters are
 * told an error of the kind of `err`, with its field; with a mere reason: ERROR_UNAVAILABLE. */
void instance_note_end(struct instance *i, const char *reason);
void instance_note_failure(struct instance *i, const struct error *err);
/* It is there but cannot be used: it is made to end, and has ended for this reason then, or with
 * this error. */
void instance_break(struct instance *i, const char *reason);
void instance_fail(struct instance *i, const struct error *err);
/* Asks the keeper above to end it: instance_note_end() when that has answered. */
void instance_end_nested(struct instance *i);
/* Its keeper is no more. Takes everything below along: what lived in its namespaces died with it.
 */
void instance_ended(struct instance *i, const char *reason);
/* Kills and removes what is left of one that has ended, in several tries where it must be. */
void instance_clean(struct instance *i);

#endif
