/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"

/* What it is called by the kernel. */
#define VM_VOLUMES_COMM "virtiofsd"

/* A mount on its way in or out. It outlives what it is put into until it is back from its thread.
 */
struct vm_volume {
	struct share_change change;
	struct list link;
	struct vm_volumes *all; /* NULL: nobody is to be told */
	peer_done_fn done;      /* NULL: out, for which nobody waits */
	void *userdata;
};

/* ---- its life ---- */

static void volumes_check_idle(struct vm_volumes *v)
{
	if (vm_volumes_are_idle(v))
		v->on_idle(v);
}

static void volumes_on_patience(struct loop_timer *t)
{
	struct vm_volumes *v = container_of(t, struct vm_volumes, patience);

	v->on_lost(v, v->end);
}

static void volumes_on_end(struct share *s, const struct error *err)
{
	struct vm_volumes *v = container_of(s, struct vm_volumes, share);

	v->running = false;
	(void)str_printf(v->end, sizeof(v->end), "what serves its volumes has ended: %.150s",
			 err ? error_text(err) : "virtiofsd has let go of its machine");
	loop_timer_set(&v->patience, VM_VOLUMES_PATIENCE);
	volumes_check_idle(v);
}

static void volumes_on_up(struct share *s)
{
	(void)s;
}

static const struct share_ops volumes_ops = { .on_up = volumes_on_up, .on_end = volumes_on_end };

void vm_volumes_init(struct vm_volumes *v, struct loop *loop,
		     void (*on_lost)(struct vm_volumes *v, const char *reason),
		     void (*on_idle)(struct vm_volumes *v))
{
	*v = (struct vm_volumes){ .on_lost = on_lost, .on_idle = on_idle };
	list_init(&v->puts);
	loop_timer_init(&v->patience, loop, volumes_on_patience);
}

int vm_volumes_start(struct vm_volumes *v, const struct share_config *config, int group_fd,
		     int *ret_fd, struct error *err)
{
	_cleanup_fd_ int leaf_fd = -1;
	struct share_config own = *config;
	int r;

	r = FAILPOINT("vm.volumes");
	if (r < 0)
		return error_set(err, r, "serve the volumes of a machine");
	leaf_fd = cgroup_make(group_fd, VM_VOLUMES_LEAF, err);
	if (leaf_fd < 0)
		return leaf_fd;
	own.cgroup_fd = leaf_fd;
	r = share_start(&v->share, &own, &volumes_ops, ret_fd, err);
	v->running = r == 0;
	FAILPOINT_AFTER("vm.volumes");
	return r;
}

static int volumes_find(int group_fd, pid_t *ret, struct error *err)
{
	_cleanup_fd_ int leaf_fd = sysio_openat(group_fd, VM_VOLUMES_LEAF,
						O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int r;

	*ret = 0;
	if (leaf_fd < 0)
		return errno == ENOENT ? 0 : error_set(err, -errno, "open the group of virtiofsd");
	r = cgroup_find_one(leaf_fd, VM_VOLUMES_COMM, ret, err);
	if (r < 0 || *ret)
		return r;
	return error_refuse(err, ERROR_UNAVAILABLE,
			    "what serves its volumes ended while the daemon was away");
}

int vm_volumes_adopt(struct vm_volumes *v, const struct share_config *config, int group_fd,
		     struct error *err)
{
	unsigned long long start = 0;
	struct error own = ERROR_INIT;
	pid_t pid;
	int r = volumes_find(group_fd, &pid, err);

	if (r < 0 || !pid)
		return r;
	r = process_start_time(config->proc_fd, pid, &start);
	if (r == 0)
		r = share_adopt(&v->share, config, &volumes_ops, pid, start, &own);
	v->running = r == 0;
	return r < 0 ? error_refuse(err, ERROR_UNAVAILABLE, "what serves its volumes: %s",
				    error_text(&own))
		     : 0;
}

void vm_volumes_rest(struct vm_volumes *v)
{
	loop_timer_stop(&v->patience);
}

void vm_volumes_done(struct vm_volumes *v)
{
	struct vm_volume *put;

	list_for_each (put, &v->puts, struct vm_volume, link) {
		list_remove(&put->link);
		put->all = NULL;
	}
	loop_timer_done(&v->patience);
	if (v->running)
		share_done(&v->share);
	v->running = false;
}

/* ---- what is put there ---- */

static void volume_put(struct share_change *c, int r, const struct error *err)
{
	struct vm_volume *put = container_of(c, struct vm_volume, change);
	struct vm_volumes *v;

	if (put->all && put->done)
		put->done(put->userdata, r < 0 ? err : NULL);
	v = put->all;
	list_remove(&put->link);
	free(put);
	if (v)
		volumes_check_idle(v);
}

/* NULL without memory. */
static struct vm_volume *volume_new(struct vm_volumes *v, peer_done_fn done, void *userdata)
{
	struct vm_volume *put = calloc(1, sizeof(*put));

	if (!put)
		return NULL;
	put->all = v;
	put->done = done;
	put->userdata = userdata;
	list_init(&put->link);
	return put;
}

int vm_volumes_put(struct vm_volumes *v, const char *name, int mount_fd, bool read_only,
		   peer_done_fn done, void *userdata, struct error *err)
{
	_cleanup_fd_ int fd = mount_fd;
	struct vm_volume *put;
	int r;

	if (!v->running)
		return error_refuse(err, ERROR_PRECONDITION,
				    "its machine was made without volumes");
	put = volume_new(v, done, userdata);
	if (!put)
		return error_set(err, -ENOMEM, "a volume");
	r = share_add(&v->share, &put->change, name, TAKE_FD(fd), read_only, volume_put, err);
	if (r < 0)
		free(put);
	else
		list_add_tail(&v->puts, &put->link);
	return r;
}

void vm_volumes_drop(struct vm_volumes *v, const char *name)
{
	struct vm_volume *out = v->running ? volume_new(v, NULL, NULL) : NULL;

	/* What cannot be taken out goes with the machine. */
	if (out && share_remove(&v->share, &out->change, name, volume_put, NULL) == 0)
		list_add_tail(&v->puts, &out->link);
	else
		free(out);
}
