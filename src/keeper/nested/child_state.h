/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CHILD_STATE_H
#define NACRE_KEEPER_CHILD_STATE_H

#include "base/log/error.h"
#include "base/process/handover.h"
#include "keeper/nested/child.h"

/*
 * A nested instance on its way to the next program of the keeper around it
 * (base/process/handover.h): its process stays a child, and its sockets are connected to again.
 */

/* While child_busy() says nothing. 0, -ENOMEM or -ENOBUFS. */
int child_write_state(struct handover_writer *w, const struct child *c) _must_check_;
/* In no list, and nothing is listened to yet (child_resume()). */
int child_read_state(struct handover_reader *r, const struct child_config *config,
		     struct child **ret, struct error *err);

#endif
