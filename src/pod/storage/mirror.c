/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/storage/mirror.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "instance/peer.h"
#include "loop/pool.h"
#include "pod/storage/mirror_read.h"

/*
 * Theory of operation. A mirror goes round: something has changed, it waits until that has settled,
 * a thread reads it, it is given to the peer, it rests. What changes meanwhile sends it round once
 * more. The thread has watched what it has read since before it read it, but the loop learns which
 * watches those are when the thread is back: an event of a watch that nobody has (a stray) counts
 * as one of each that was being read.
 */

#define MIRROR_EVENTS_SIZE 4096
/* Reads of the queue before the loop gets its turn again. */
#define MIRROR_EVENTS_READS 8

/*
 *   RESTING  nothing is known to have changed.
 *   WAITING  `timer` is set.
 *   READING  a thread has its job.
 *   GIVING   the peer was asked.
 */
enum mirror_state { MIRROR_RESTING, MIRROR_WAITING, MIRROR_READING, MIRROR_GIVING };

struct mirror {
	struct list link;
	struct mirrors *all;
	enum mirror_state state;
	const struct mirror_ops *ops;
	void *userdata;
	char name[CONTAINER_SHARE_MAX + 1];
	char *source;
	int fd; /* -1: the source is still to be opened */
	bool one_file;
	bool is_new;  /* done() is to be called */
	bool changed; /* while it was read or given */
	bool free;    /* when the peer has answered */
	nsec_t since; /* when the first change came that is waited for */
	nsec_t given; /* when it was given last */
	struct mirror_watches watches;
	struct mirror_job *job;
	struct loop_timer timer;
	struct error said; /* by kept() */
};

/* What a thread has in hand, whatever becomes of its mirror meanwhile. */
struct mirror_job {
	struct pool_work work;
	struct list link;
	struct mirrors *all;
	struct mirror *mirror; /* NULL: it is gone */
	struct volume_guard guard;
	char *source; /* NULL: it is open */
	bool one_file;
	int fd, inotify_fd;
	uint64_t n_strays;
	struct tree_list files;
	struct mirror_watches watches;
	int r;
	struct error err;
};

/* ---- watches ---- */

static bool mirror_has_wd(const struct mirror *m, int wd)
{
	for (size_t i = 0; i < m->watches.n; i++)
		if (m->watches.wds[i] == wd)
			return true;
	return false;
}

/* One directory may be in two mirrors, and has one watch. */
static void mirrors_unwatch(struct mirrors *all, struct mirror_watches *w)
{
	const struct mirror *m;

	for (size_t i = 0; i < w->n; i++) {
		bool used = false;

		list_for_each (m, &all->list, struct mirror, link)
			used = used || mirror_has_wd(m, w->wds[i]);
		/* It is gone already where the directory is. */
		if (!used && all->inotify_fd >= 0)
			(void)inotify_rm_watch(all->inotify_fd, w->wds[i]);
	}
	mirror_watches_done(w);
}

/* ---- waiting ---- */

static void mirror_wait(struct mirror *m, nsec_t delay)
{
	nsec_t now = clock_mono();

	/* Not before the one that was given last has had its time. */
	if (m->given && m->given + MIRROR_PAUSE > now + delay)
		delay = m->given + MIRROR_PAUSE - now;
	m->state = MIRROR_WAITING;
	loop_timer_set(&m->timer, delay);
}

static void mirror_change(struct mirror *m)
{
	nsec_t now = clock_mono();

	if (m->state == MIRROR_READING || m->state == MIRROR_GIVING) {
		m->changed = true;
		return;
	}
	if (m->state == MIRROR_RESTING)
		m->since = now;
	if (now - m->since < MIRROR_SETTLE_MAX - MIRROR_SETTLE)
		mirror_wait(m, MIRROR_SETTLE);
	else if (m->state == MIRROR_RESTING)
		mirror_wait(m, 0);
}

static void mirror_rest(struct mirror *m)
{
	m->state = MIRROR_RESTING;
	if (m->changed) {
		m->changed = false;
		mirror_change(m);
	}
}

/* ---- what went wrong ---- */

static bool mirror_is_for_good(const struct error *err)
{
	return err->kind == ERROR_EXHAUSTED || err->kind == ERROR_PRECONDITION ||
	       err->kind == ERROR_NOT_FOUND || err->kind == ERROR_INVALID;
}

/* May free it. */
static void mirror_fail(struct mirror *m, const struct error *err)
{
	bool again = !mirror_is_for_good(err);

	if (m->is_new) {
		m->is_new = false;
		m->state = MIRROR_RESTING;
		m->ops->done(m->userdata, err);
		return;
	}
	if (again) {
		m->changed = false;
		m->since = clock_mono();
		mirror_wait(m, MIRROR_AGAIN);
	} else {
		mirror_rest(m);
	}
	if (str_eq(m->said.text, err->text) || err->kind == ERROR_UNAVAILABLE)
		return;
	(void)error_copy(&m->said, err);
	m->ops->kept(m->userdata, err);
}

/* ---- giving ---- */

static void mirror_release(struct mirror *m)
{
	list_remove(&m->link);
	free(m->source);
	free(m);
}

static void mirror_on_given(void *userdata, const struct error *err)
{
	struct mirror *m = userdata;

	if (m->free) {
		mirror_release(m);
		return;
	}
	m->given = clock_mono();
	if (err) {
		mirror_fail(m, err);
		return;
	}
	m->said = (struct error)ERROR_INIT;
	mirror_rest(m);
	if (!m->is_new)
		return;
	m->is_new = false;
	m->ops->done(m->userdata, NULL);
}

static void mirror_give(struct mirror *m, const struct tree_list *files)
{
	struct peer *peer = m->ops->peer(m->userdata);
	struct error err = ERROR_INIT;

	if (!peer) {
		(void)error_refuse(&err, ERROR_UNAVAILABLE, "its keeper is not there");
		mirror_fail(m, &err);
		return;
	}
	m->state = MIRROR_GIVING;
	peer->ops->put_files(peer, m->name, files, mirror_on_given, m);
}

void mirror_lose_peer(struct mirror *m)
{
	if (m->state != MIRROR_GIVING)
		return;
	/* Found to be gone by who asks again. */
	m->changed = false;
	m->state = MIRROR_WAITING;
	loop_timer_set(&m->timer, 0);
}

/* ---- reading ---- */

static void mirror_job_free(struct mirror_job *j)
{
	list_remove(&j->link);
	tree_list_done(&j->files);
	mirror_watches_done(&j->watches);
	(void)fd_close(j->fd);
	(void)fd_close(j->inotify_fd);
	free(j->source);
	free(j);
}

static void mirror_job_run(struct pool_work *work)
{
	struct mirror_job *j = container_of(work, struct mirror_job, work);

	if (j->source) {
		j->fd = volume_open(&j->guard,
				    &(struct pod_mount_spec){ .field = "source",
							      .source = j->source,
							      .read_only = true },
				    &j->err);
		j->r = j->fd < 0 ? j->fd : 0;
	}
	if (j->r == 0)
		j->r = mirror_read(j->fd, j->one_file ? MIRROR_ONE_FILE : 0, j->inotify_fd,
				   &j->files, &j->watches, &j->err);
}

static void mirror_job_done(struct pool_work *work)
{
	struct mirror_job *j = container_of(work, struct mirror_job, work);
	struct mirror_watches old;
	struct mirror *m = j->mirror;

	if (!m) {
		mirrors_unwatch(j->all, &j->watches);
		mirror_job_free(j);
		return;
	}
	m->job = NULL;
	if (m->fd < 0)
		m->fd = TAKE_FD(j->fd);
	old = m->watches;
	m->watches = j->watches;
	j->watches = (struct mirror_watches){ .wds = NULL };
	mirrors_unwatch(m->all, &old);
	if (m->all->n_strays != j->n_strays)
		m->changed = true;
	if (j->r < 0)
		mirror_fail(m, &j->err);
	else
		mirror_give(m, &j->files);
	mirror_job_free(j);
}

static int mirror_job_new(struct mirror_job **ret, struct mirror *m)
{
	struct mirror_job *j = calloc(1, sizeof(*j));
	int r = 0;

	if (!j)
		return -ENOMEM;
	*j = (struct mirror_job){ .all = m->all,
				  .mirror = m,
				  .guard = m->all->guard,
				  .one_file = m->one_file,
				  .fd = -1,
				  .n_strays = m->all->n_strays,
				  .work = { .run = mirror_job_run, .done = mirror_job_done } };
	list_init(&j->link);
	j->inotify_fd = fd_copy(m->all->inotify_fd);
	if (m->fd >= 0)
		j->fd = fd_copy(m->fd);
	else
		j->source = strdup(m->source);
	if (j->inotify_fd < 0)
		r = j->inotify_fd;
	else if (m->fd >= 0)
		r = j->fd < 0 ? j->fd : 0;
	else
		r = j->source ? 0 : -ENOMEM;
	if (r < 0)
		mirror_job_free(j);
	else
		*ret = j;
	return r;
}

static void mirror_on_timer(struct loop_timer *t)
{
	struct mirror *m = container_of(t, struct mirror, timer);
	struct error err = ERROR_INIT;
	int r = mirror_job_new(&m->job, m);

	if (r < 0) {
		(void)error_set(&err, r, "read it");
		mirror_fail(m, &err);
		return;
	}
	m->state = MIRROR_READING;
	list_add_tail(&m->all->jobs, &m->job->link);
	pool_submit(m->all->pool, &m->job->work);
}

/* ---- events ---- */

static void mirrors_on_event(struct mirrors *all, const struct inotify_event *e)
{
	bool known = false;
	struct mirror *m;

	list_for_each (m, &all->list, struct mirror, link) {
		if (m->free || (!(e->mask & IN_Q_OVERFLOW) && !mirror_has_wd(m, e->wd)))
			continue;
		known = true;
		mirror_change(m);
	}
	if (!known)
		all->n_strays++;
}

static void mirrors_readable(struct loop_fd *source, unsigned events)
{
	struct mirrors *all = container_of(source, struct mirrors, source);
	_Alignas(struct inotify_event) char buffer[MIRROR_EVENTS_SIZE];

	(void)events;
	for (int i = 0; i < MIRROR_EVENTS_READS; i++) {
		ssize_t n = read(all->inotify_fd, buffer, sizeof(buffer));

		if (n <= 0)
			return;
		for (char *p = buffer; p < buffer + n;) {
			const struct inotify_event *e = (const void *)p;

			mirrors_on_event(all, e);
			p += sizeof(*e) + e->len;
		}
	}
}

/* ---- the objects ---- */

static int mirrors_open(struct mirrors *all)
{
	if (!all->pool) {
		int r = pool_new(&all->pool, all->loop, MIRROR_THREADS);

		if (r < 0)
			return r;
	}
	if (all->inotify_fd >= 0)
		return 0;
	all->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (all->inotify_fd < 0)
		return -errno;
	loop_fd_init(&all->source, all->loop, all->inotify_fd, LOOP_READ, mirrors_readable);
	return 0;
}

int mirror_new(struct mirror **ret, struct mirrors *all, const struct mirror_spec *spec)
{
	struct mirror *m;
	int r = mirrors_open(all);

	if (r < 0)
		return r;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = (struct mirror){ .all = all,
			      .ops = spec->ops,
			      .userdata = spec->userdata,
			      .source = strdup(spec->source),
			      .fd = -1,
			      .one_file = spec->one_file,
			      .is_new = spec->fd >= 0 };
	if (!m->source) {
		free(m);
		return -ENOMEM;
	}
	(void)str_copy(m->name, sizeof(m->name), spec->name);
	m->fd = spec->fd;
	list_init(&m->link);
	list_add_tail(&all->list, &m->link);
	loop_timer_init(&m->timer, all->loop, mirror_on_timer);
	m->since = clock_mono();
	mirror_wait(m, 0);
	*ret = m;
	return 0;
}

struct mirror *mirror_free(struct mirror *m)
{
	struct mirror_watches watches;

	if (!m)
		return NULL;
	loop_timer_done(&m->timer);
	m->fd = fd_close(m->fd);
	if (m->job)
		m->job->mirror = NULL;
	m->free = true;
	watches = m->watches;
	m->watches = (struct mirror_watches){ .wds = NULL };
	mirrors_unwatch(m->all, &watches);
	if (m->state != MIRROR_GIVING)
		mirror_release(m);
	return NULL;
}

void mirrors_init(struct mirrors *all, struct loop *l, const struct volume_guard *guard)
{
	*all = (struct mirrors){ .loop = l, .guard = *guard, .inotify_fd = -1 };
	list_init(&all->list);
	list_init(&all->jobs);
}

void mirrors_done(struct mirrors *all)
{
	struct mirror_job *j;
	struct mirror *m;

	if (all->pool)
		all->pool = pool_leave(all->pool);
	/* A thread that is not back has its own for as long as this process lives. */
	list_for_each (j, &all->jobs, struct mirror_job, link) {
		if (!j->work.busy)
			mirror_job_free(j);
	}
	/* Those whose peer has not answered, and will not. */
	list_for_each (m, &all->list, struct mirror, link)
		mirror_release(m);
	if (all->inotify_fd >= 0)
		loop_fd_done(&all->source);
	all->inotify_fd = fd_close(all->inotify_fd);
}
