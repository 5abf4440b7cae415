/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_CONTAINER_H
#define NACRE_CELL_CONTAINER_H

#include "base/log/error.h"
#include "cell/container/container_model.h"

/*
 * One container: its process, its output, its end. The states are those of spec.h.
 *
 * An end comes in this order: the process is reaped; its cgroup is empty and removed, so nothing of
 * it lives; what its pipes hold by then is the rest of its output, and when that is in the log, and
 * attached clients have taken it, the last state is entered.
 */

struct spare_process;

/* Takes the descriptors over, also on failure. In state STARTING, in the list of its cell; nothing
 * happens before container_launch(). spec was checked. user: may be NULL with spec->late, and is
 * looked up when the root is there. ahead: its process waits already, and is taken over with the
 * success (container_stand_in()); NULL: none does. */
int container_new(struct container **ret, const struct container_host *host, struct cell *cell,
		  const struct container_spec *spec, const struct isolate_user *user,
		  struct container_fds *fds, struct spare_process *ahead, struct error *err);
/* Listens to the process that waited, and makes cell and streams ready with what it has. A failure
 * comes back as state FAILED. */
void container_stand_in(struct container *c);
/* Instead of that: the process is not the container's any more. */
void container_give_back(struct container *c, struct spare_process *ret);
/* Makes a container that a handover is to fill (cell/layer/handover.h), in no list. -ENOMEM. */
int container_alloc(struct container **ret, const struct container_host *host, struct cell *cell);
/* Why it cannot be handed over now, or NULL. */
const char *container_busy(const struct container *c);
/* Takes up what was filled: listens to the process and its pipes, goes on with an end that was
 * begun. */
void container_resume(struct container *c);
/* Neither kills nor waits. */
struct container *container_free(struct container *c);

/* Spawns it, now or when its cell is ready. A failure comes back as state FAILED, never from here.
 */
void container_launch(struct container *c);

/* Of one whose spec was `late`: whether it waits for the rest of its descriptors; that rest, which
 * is taken over, and with which it is launched, or goes on where container_launch() has cloned it
 * ahead of that; and that it will not come, why. */
bool container_awaits(const struct container *c);
void container_supply(struct container *c, struct container_fds *fds);
void container_refuse(struct container *c, const struct error *err);

static inline bool container_is_over(const struct container *c)
{
	return c->status.state == CONTAINER_EXITED || c->status.state == CONTAINER_FAILED;
}

/* keeper_signal(). Before the program runs, SIGKILL acts at once and others are kept for it. */
int container_signal(struct container *c, int sig, bool all, struct error *err);
/* SIGKILL to all of it, and a log that cannot be written is given up. */
/* pump_change_log(). */
int container_change_log(struct container *c, int fd, void (*changed)(void *data), void *data);
void container_finish_off(struct container *c);

#endif
