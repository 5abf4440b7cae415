/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/restart/container_reset.h"

#include "cell/start/mounts.h"
#include "pod/storage/image_mounts.h"
#include "pod/workload/health.h"

static void reset_swap_words(char ***a, char ***b)
{
	char **words = *a;

	*a = *b;
	*b = words;
}

void container_reset_move(struct pod_container *to, struct pod_container *from)
{
	struct container_mount *mounts = to->mounts;
	size_t n_mounts = to->n_mounts;
	struct image_mount *image_mounts = to->image_mounts;
	size_t n_image_mounts = to->n_image_mounts;
	char *cwd = to->cwd;

	container_fds_close(&to->fds);
	to->fds = from->fds;
	from->fds = (struct container_fds)CONTAINER_FDS_NONE;
	to->mounts = from->mounts;
	to->n_mounts = from->n_mounts;
	from->mounts = mounts;
	from->n_mounts = n_mounts;
	to->image_mounts = from->image_mounts;
	to->n_image_mounts = from->n_image_mounts;
	from->image_mounts = image_mounts;
	from->n_image_mounts = n_image_mounts;
	to->cwd = from->cwd;
	from->cwd = cwd;
	reset_swap_words(&to->argv, &from->argv);
	reset_swap_words(&to->env, &from->env);
	reset_swap_words(&to->limits, &from->limits);
	reset_swap_words(&to->hidden, &from->hidden);
	reset_swap_words(&to->read_only, &from->read_only);
	buf_done(&to->filter);
	to->filter = from->filter;
	to->filter_flags = from->filter_flags;
	from->filter = (struct buf)BUF_INIT;
	to->terminal = from->terminal;
	to->hold_output = from->hold_output;
	to->is_init = from->is_init;
	to->restart = from->restart;
	to->requires = from->requires;
	to->read_only_root = from->read_only_root;
	to->disk = from->disk;
	to->security = from->security;
}

void container_reset(struct pod_container *c)
{
	health_reset(c);
	c->status = (struct container_status){ .state = CONTAINER_STARTING };
	c->phase = POD_CONTAINER_STARTED;
	c->host_pid = 0;
	c->paused = c->seen = c->starting = c->unanswered = c->late = false;
	c->names = 0;
	c->has_old_names = false;
	c->log_dropped = 0;
	c->log_over = false;
	c->restarting = c->stopped = c->ending = false;
	c->restart_count = 0;
	c->restart_delay = 0;
	c->ran_at = 0;
	c->stop_by = 0;
	loop_timer_stop(&c->stop);
	loop_timer_stop(&c->again);
	c->restart_at = 0;
}
