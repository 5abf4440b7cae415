/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_CONTAINER_PLAN_H
#define NACRE_CELL_CONTAINER_PLAN_H

#include "base/log/error.h"
#include "cell/container/container_model.h"

/* How a container's process is walled off: its plan, of what it was asked for, its cell and the
 * keeper's prepared set. */

/* The namespaces of a plain process, for its first program and its execs. */
void container_plan_host(const struct container *c, struct isolate_plan *plan);
/* Of its start, for as long as it lives; 0 or -ENOMEM. */
int container_keep_filter(struct container *c, const struct container_filter *filter);
/* Capabilities, filter and limits of its programs. They point into the container. */
void container_plan_security(struct container *c, struct isolate_plan *plan);
/* Its cell is made with the keeper's prepared set, where that fits: what container_launch() does
 * anyway. */
void container_adopt_prepared(struct container *c);

/* The clone, as planned: fills child and stdio. */
int container_clone(struct container *c, struct error *err);

/* Of a process that waited ahead of need: what it has goes to the cell, and its streams are opened;
 * then it gets its root and all that is its own. */
int container_prepare_rest(struct container *c, struct error *err);
int container_give_rest(struct container *c, struct error *err);

#endif
