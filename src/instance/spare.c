/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/rootfd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "instance/model.h"
#include "instance/spawn.h"
#include "isolate/cgroup.h"
#include "loop/loop.h"

/* After a pod has taken one: its own start comes first. */
#define SPARE_DELAY (4 * NSEC_PER_MSEC)
/* After one could not be made, or died. */
#define SPARE_RETRY (5 * NSEC_PER_SEC)
#define SPARE_CLEAN_TRIES 200

struct spare {
	struct instances *all;
	struct spare_keeper keeper;
	struct loop_child child;
	struct loop_timer timer;
};

static void spare_group(const struct spare_keeper *k, char ret[ID_SIZE + 16])
{
	(void)str_printf(ret, ID_SIZE + 16, SPARE_GROUP_PREFIX "%s", k->id);
}

/* Takes away what the keeper had; it has ended, or is killed here. */
static void spare_clean(struct spare *s)
{
	struct spare_keeper *k = &s->keeper;
	char group[ID_SIZE + 16];
	siginfo_t info;

	loop_child_done(&s->child);
	if (k->pidfd >= 0) {
		(void)pidfd_kill(k->pidfd, SIGKILL);
		/* It holds nothing that could keep it: this is a matter of a millisecond. */
		(void)waitid(P_PIDFD, (id_t)k->pidfd, &info, WEXITED);
	}
	if (k->id[0]) {
		spare_group(k, group);
		for (int i = 0; i < SPARE_CLEAN_TRIES; i++) {
			if (cgroup_remove(s->all->config.cgroup_fd, group) != -EBUSY)
				break;
			(void)usleep(100);
		}
		if (rootfd_remove_tree(s->all->keepers_fd, k->id) < 0)
			log_warn("cannot remove the directory of a spare keeper",
				 LOG_STR("id", k->id));
	}
	(void)fd_close(k->pidfd);
	(void)fd_close(k->report_fd);
	(void)fd_close(k->dir_fd);
	(void)fd_close(k->cgroup_fd);
	*k = (struct spare_keeper)SPARE_KEEPER_INIT;
}

static void spare_on_child(struct loop_child *child, int code, int status)
{
	struct spare *s = container_of(child, struct spare, child);

	log_warn("a spare keeper has ended", LOG_STR("id", s->keeper.id), LOG_INT("code", code),
		 LOG_INT("status", status));
	/* It is reaped already. */
	s->keeper.pidfd = fd_close(s->keeper.pidfd);
	spare_clean(s);
	loop_timer_set(&s->timer, SPARE_RETRY);
}

static int spare_make_places(struct spare *s, struct error *err)
{
	struct spare_keeper *k = &s->keeper;
	char group[ID_SIZE + 16];
	int r;

	r = id_new(k->id);
	if (r < 0)
		return error_set(err, r, "draw an id");
	if (sysio_mkdirat(s->all->keepers_fd, k->id, 0700) < 0)
		return error_set(err, -errno, "make the directory of a spare keeper");
	k->dir_fd = sysio_openat(s->all->keepers_fd, k->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (k->dir_fd < 0)
		return error_set(err, -errno, "open the directory of a spare keeper");
	spare_group(k, group);
	k->cgroup_fd = cgroup_make(s->all->config.cgroup_fd, group, err);
	return k->cgroup_fd < 0 ? k->cgroup_fd : 0;
}

static int spare_make(struct spare *s, struct error *err)
{
	_cleanup_(isolate_child_done) struct isolate_child child = ISOLATE_CHILD_INIT;
	struct spare_keeper *k = &s->keeper;
	struct instance_spawn spec = {
		.title = "spare",
		.exe_fd = s->all->exe_fd,
		.walled = true,
		.unnamed = true,
	};
	int r;

	r = spare_make_places(s, err);
	if (r < 0)
		return r;
	spec.dir_fd = k->dir_fd;
	spec.cgroup_fd = k->cgroup_fd;
	r = instance_spawn(&spec, &child, err);
	if (r < 0)
		return r;
	k->pid = child.pid;
	k->pidfd = TAKE_FD(child.pidfd);
	k->report_fd = TAKE_FD(child.report_fd);
	(void)process_start_time(-1, k->pid, &k->start_time);
	loop_child_init(&s->child, s->all->config.loop, k->pidfd, spare_on_child);
	return 0;
}

static void spare_on_timer(struct loop_timer *t)
{
	struct spare *s = container_of(t, struct spare, timer);
	struct error err = ERROR_INIT;

	if (s->keeper.id[0] || spare_make(s, &err) == 0)
		return;
	log_warn("cannot make a spare keeper", LOG_ERR(&err));
	spare_clean(s);
	loop_timer_set(&s->timer, SPARE_RETRY);
}

int spare_new(struct spare **ret, struct instances *all)
{
	struct spare *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->all = all;
	s->keeper = (struct spare_keeper)SPARE_KEEPER_INIT;
	loop_timer_init(&s->timer, all->config.loop, spare_on_timer);
	*ret = s;
	return 0;
}

struct spare *spare_free(struct spare *s)
{
	if (!s)
		return NULL;
	spare_clean(s);
	loop_timer_done(&s->timer);
	free(s);
	return NULL;
}

void spare_order(struct spare *s)
{
	if (s && !s->keeper.id[0])
		loop_timer_set(&s->timer, SPARE_DELAY);
}

bool spare_take(struct spare *s, struct spare_keeper *ret)
{
	if (!s || !s->keeper.id[0]) {
		spare_order(s);
		return false;
	}
	loop_child_done(&s->child);
	*ret = s->keeper;
	s->keeper = (struct spare_keeper)SPARE_KEEPER_INIT;
	spare_order(s);
	return true;
}

const char *spare_id(const struct spare *s)
{
	return s && s->keeper.id[0] ? s->keeper.id : NULL;
}

void spare_return(struct spare *s, struct spare_keeper *k)
{
	if (!k->id[0])
		return;
	if (s->keeper.id[0])
		spare_clean(s);
	s->keeper = *k;
	*k = (struct spare_keeper)SPARE_KEEPER_INIT;
	loop_child_init(&s->child, s->all->config.loop, s->keeper.pidfd, spare_on_child);
}
