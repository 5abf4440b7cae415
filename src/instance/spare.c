/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "instance/model.h"
#include "instance/peer.h"
#include "instance/spawn.h"
#include "isolate/cgroup/cgroup.h"
#include "loop/loop.h"
#include "loop/pause.h"

/* After a pod has taken one, whose own start comes first: where nobody says that it is over. */
#define SPARE_DELAY (100 * NSEC_PER_MSEC)
/* After the start was answered: whoever waits for that goes first. Not longer: the next pod, and
 * the removal of this one before it, may come at once, and a keeper takes two milliseconds. */
#define SPARE_PAUSE (300 * NSEC_PER_USEC)
/* After one could not be made, or died. */
#define SPARE_RETRY (5 * NSEC_PER_SEC)
/* Between two looks whether the group of one that has ended can be removed: from, to. */
#define SPARE_CLEAN_FIRST (1 * NSEC_PER_MSEC)
#define SPARE_CLEAN_LAST (2 * NSEC_PER_SEC)
/* At the end of the daemon that is waited for, this long. */
#define SPARE_CLEAN_TRIES 200
#define SPARE_CLEAN_USEC 100

struct spare {
	struct instances *all;
	struct spare_keeper keeper;
	struct loop_child child;
	struct loop_timer timer;
	struct loop_pause pause;
	bool ordered; /* the timer runs for SPARE_DELAY */
	struct list rests;
};

/* What is left of one that is not needed, or has ended. */
struct spare_rest {
	struct list link;
	struct spare *spare;
	struct spare_keeper keeper;
	struct loop_child child;
	struct loop_timer timer;
	nsec_t delay;
};

static void spare_group(const struct spare_keeper *k, char ret[ID_SIZE + 16])
{
	(void)str_printf(ret, ID_SIZE + 16, SPARE_GROUP_PREFIX "%s", k->id);
}

static void spare_close(struct spare_keeper *k)
{
	if (k->peer)
		k->peer = k->peer->ops->free(k->peer);
	(void)fd_close(k->pidfd);
	(void)fd_close(k->report_fd);
	(void)fd_close(k->dir_fd);
	(void)fd_close(k->cgroup_fd);
	*k = (struct spare_keeper)SPARE_KEEPER_INIT;
}

/* -EBUSY while a process of it is still dying. */
static int spare_remove_group(const struct spare *s, const struct spare_keeper *k)
{
	char group[ID_SIZE + 16];

	spare_group(k, group);
	return cgroup_remove(s->all->config.cgroup_fd, group);
}

static void spare_remove_dir(const struct spare *s, const struct spare_keeper *k)
{
	if (rootfd_remove_tree(s->all->keepers_fd, k->id) < 0)
		log_warn("cannot remove the directory of a spare keeper", LOG_STR("id", k->id));
}

/* Waits for all of it: for the end of the daemon, and where there is no memory to come back. */
static void spare_clean_now(const struct spare *s, struct spare_keeper *k)
{
	siginfo_t info;

	if (k->pidfd >= 0) {
		(void)pidfd_kill(k->pidfd, SIGKILL);
		/* It holds nothing that could keep it: this is a matter of a millisecond. */
		(void)waitid(P_PIDFD, (id_t)k->pidfd, &info, WEXITED);
	}
	if (k->id[0]) {
		for (int i = 0; i < SPARE_CLEAN_TRIES && spare_remove_group(s, k) == -EBUSY; i++)
			(void)usleep(SPARE_CLEAN_USEC);
		spare_remove_dir(s, k);
	}
	spare_close(k);
}

static void spare_rest_free(struct spare_rest *rest)
{
	list_remove(&rest->link);
	loop_child_done(&rest->child);
	loop_timer_done(&rest->timer);
	spare_close(&rest->keeper);
	free(rest);
}

static void spare_rest_try(struct spare_rest *rest)
{
	if (spare_remove_group(rest->spare, &rest->keeper) == -EBUSY &&
	    rest->delay <= SPARE_CLEAN_LAST) {
		loop_timer_set(&rest->timer, rest->delay);
		rest->delay *= 2;
		return;
	}
	spare_remove_dir(rest->spare, &rest->keeper);
	spare_rest_free(rest);
}

static void spare_rest_on_timer(struct loop_timer *t)
{
	spare_rest_try(container_of(t, struct spare_rest, timer));
}

static void spare_rest_on_child(struct loop_child *child, int code, int status)
{
	struct spare_rest *rest = container_of(child, struct spare_rest, child);

	(void)code;
	(void)status;
	/* It is reaped already. */
	rest->keeper.pidfd = fd_close(rest->keeper.pidfd);
	spare_rest_try(rest);
}

/* Takes away what the keeper had, when it has ended; it is killed here where it lives. */
static void spare_clean(struct spare *s)
{
	struct spare_rest *rest;

	loop_child_done(&s->child);
	if (!s->keeper.id[0])
		return;
	rest = calloc(1, sizeof(*rest));
	if (!rest) {
		spare_clean_now(s, &s->keeper);
		return;
	}
	*rest = (struct spare_rest){ .spare = s, .keeper = s->keeper, .delay = SPARE_CLEAN_FIRST };
	s->keeper = (struct spare_keeper)SPARE_KEEPER_INIT;
	list_init(&rest->link);
	list_add_tail(&s->rests, &rest->link);
	loop_timer_init(&rest->timer, s->all->config.loop, spare_rest_on_timer);
	if (rest->keeper.pidfd < 0) {
		spare_rest_try(rest);
		return;
	}
	(void)pidfd_kill(rest->keeper.pidfd, SIGKILL);
	loop_child_init(&rest->child, s->all->config.loop, rest->keeper.pidfd, spare_rest_on_child);
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
	k->dir_fd = sysio_openat(s->all->keepers_fd, k->id,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (k->dir_fd < 0)
		return error_set(err, -errno, "open the directory of a spare keeper");
	spare_group(k, group);
	k->cgroup_fd = cgroup_make_inner(s->all->config.cgroup_fd, group, err);
	return k->cgroup_fd < 0 ? k->cgroup_fd : 0;
}

/* So that this is done, too, when it is needed. */
static int spare_connect(struct spare *s, struct error *err)
{
	const struct instances_config *config = &s->all->config;
	_cleanup_fd_ int rpc_fd = -1, fd_fd = -1;
	int r;

	r = instance_connect(s->keeper.dir_fd, &rpc_fd, &fd_fd, err);
	if (r < 0)
		return r;
	r = config->connect(config->userdata, TAKE_FD(rpc_fd), TAKE_FD(fd_fd), &s->keeper.peer);
	return r < 0 ? error_set(err, r, "connect to a spare keeper") : 0;
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
	return spare_connect(s, err);
}

static void spare_on_timer(struct loop_timer *t)
{
	struct spare *s = container_of(t, struct spare, timer);
	struct error err = ERROR_INIT;

	s->ordered = false;
	if (s->keeper.id[0] || spare_make(s, &err) == 0)
		return;
	log_warn("cannot make a spare keeper", LOG_ERR(&err));
	spare_clean(s);
	loop_timer_set(&s->timer, SPARE_RETRY);
}

static void spare_on_pause(struct loop_pause *p)
{
	struct spare *s = container_of(p, struct spare, pause);

	spare_on_timer(&s->timer);
}

int spare_new(struct spare **ret, struct instances *all)
{
	struct spare *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = loop_pause_init(&s->pause, all->config.loop, spare_on_pause);
	if (r < 0) {
		free(s);
		return r;
	}
	s->all = all;
	s->keeper = (struct spare_keeper)SPARE_KEEPER_INIT;
	list_init(&s->rests);
	loop_timer_init(&s->timer, all->config.loop, spare_on_timer);
	*ret = s;
	return 0;
}

struct spare *spare_free(struct spare *s)
{
	if (!s)
		return NULL;
	loop_child_done(&s->child);
	spare_clean_now(s, &s->keeper);
	while (!list_empty(&s->rests)) {
		struct spare_rest *rest = list_first(&s->rests, struct spare_rest, link);

		loop_child_done(&rest->child);
		spare_clean_now(s, &rest->keeper);
		spare_rest_free(rest);
	}
	loop_timer_done(&s->timer);
	loop_pause_done(&s->pause);
	free(s);
	return NULL;
}

void spare_order(struct spare *s)
{
	if (!s || s->keeper.id[0])
		return;
	s->ordered = true;
	loop_timer_set(&s->timer, SPARE_DELAY);
}

void spare_hurry(struct spare *s)
{
	if (!s || !s->ordered)
		return;
	s->ordered = false;
	loop_timer_stop(&s->timer);
	loop_pause_begin(&s->pause, SPARE_PAUSE);
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
