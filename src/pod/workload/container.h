/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CONTAINER_H
#define NACRE_POD_CONTAINER_H

#include "pod/workload/model.h"

/*
 * The operations on one container of a workload, and the status that its keeper tells. Private to
 * this area.
 */

struct container_view;
struct etc;

/* Writes its record; a failure is logged. */
void pod_container_save(struct pod_container *c);
/* Asks its keeper to start it, with its descriptors or (late) before they are there. etc: of one
 * without descriptors. done is called with c. */
void pod_container_launch(struct pod_container *c, const struct etc *etc, bool late,
			  void (*done)(void *userdata, const struct container_view *view,
				       const struct error *err));
/* Tells it to end: with the signal that its image wants, or all of it with SIGKILL. Nothing is said
 * to one whose start is not answered yet. */
void pod_container_end(struct pod_container *c, bool kill);
/* Sends its first process a signal; 0: the one that its image wants to be stopped with. */
void pod_container_signal(struct pod_container *c, int sig);
/* Takes the status that its keeper has sent. */
void pod_container_update(struct pod_container *c, const struct container_status *status);
/* It was not started, and never will be: it has ended with 0, for this reason. */
void pod_container_skip(struct pod_container *c, const char *reason);
/* It never will end, or run: its keeper is gone. Nothing where it has ended. */
void pod_container_lose(struct pod_container *c, const char *reason);
void pod_container_drop_root(struct pod_container *c);

#endif
