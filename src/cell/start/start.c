/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/start.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cell/start/mounts.h"

struct container_start *start_free(struct container_start *s)
{
	if (!s)
		return NULL;
	strv_free(s->argv);
	strv_free(s->hidden);
	strv_free(s->read_only);
	s->pids_fd = fd_close(s->pids_fd);
	s->mounts = mounts_free(s->mounts, s->n_mounts);
	container_fds_close(&s->fds);
	free(s->user);
	free(s->image);
	isolate_prepared_done(&s->prepared);
	free(s);
	return NULL;
}

/* A root that the keeper makes by itself has not even begun, and what is mounted into it, or covers
 * something of it, comes with the root. */
static bool start_is_prefetched(const struct container_spec *spec)
{
	return spec->late && !spec->root_disk && spec->n_mounts == 0 && !spec->masks.hidden &&
	       !spec->masks.read_only;
}

struct container_start *start_new(const struct container_spec *spec, struct container_fds *fds)
{
	struct container_start *s = malloc(sizeof(*s));

	if (!s) {
		container_fds_close(fds);
		return NULL;
	}
	*s = (struct container_start){ .argv = strv_copy(spec->argv),
				       .fds = container_fds_take(fds),
				       .log = spec->log,
				       .stdin_open = spec->stdin_open,
				       .tty = spec->tty,
				       .terminal = spec->terminal,
				       .hold_output = spec->hold_output,
				       .n_mounts = spec->n_mounts,
				       .read_only_root = spec->read_only_root,
				       .new_proc = spec->new_proc,
				       .pids_fd = -1,
				       .prepared = ISOLATE_PREPARED_NONE,
				       .awaits = spec->late,
				       .ahead = start_is_prefetched(spec) };
	s->logged = s->fds.log >= 0 || (spec->late && spec->log_token);
	if (mounts_copy(&s->mounts, spec->mounts, spec->n_mounts) < 0)
		return start_free(s);
	if (spec->masks.hidden)
		s->hidden = strv_copy(spec->masks.hidden);
	if (spec->masks.read_only)
		s->read_only = strv_copy(spec->masks.read_only);
	if ((spec->masks.hidden && !s->hidden) || (spec->masks.read_only && !s->read_only))
		return start_free(s);
	s->user = spec->late ? strdup(spec->user ?: "") : NULL;
	s->image = spec->late ? strdup(spec->image ?: "") : NULL;
	return spec->late && (!s->user || !s->image) ? start_free(s) : s;
}
