/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log/log_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"

#define EVENTS_SIZE 4096
/* Reads of the queue before the loop gets its turn again. */
#define EVENTS_READS_MAX 8

struct log_dir {
	char id[ID_SIZE];
	char wd_text[16];
	int wd;
	struct list watched;
};

void log_watch_done(struct log_watch *w)
{
	loop_fd_done(&w->source);
	w->fd = fd_close(w->fd);
	map_done(&w->by_id);
	map_done(&w->by_wd);
}

/* name "": all of them. */
static void log_dir_tell(struct log_dir *d, const char *name)
{
	struct log_watched *w;

	list_for_each (w, &d->watched, struct log_watched, link)
		if (!*name || str_eq(name, w->file))
			w->fn(w);
}

static void log_watch_event(struct log_watch *w, const struct inotify_event *e)
{
	struct log_dir *d;
	char text[16];
	size_t pos = 0;

	if (e->mask & IN_Q_OVERFLOW) {
		for (d = map_next(&w->by_id, &pos); d; d = map_next(&w->by_id, &pos))
			log_dir_tell(d, "");
		return;
	}
	(void)str_printf(text, sizeof(text), "%d", e->wd);
	d = map_get(&w->by_wd, text);
	if (d)
		log_dir_tell(d, e->len ? e->name : "");
}

static void log_watch_readable(struct loop_fd *source, unsigned events)
{
	struct log_watch *w = container_of(source, struct log_watch, source);
	_Alignas(struct inotify_event) char buffer[EVENTS_SIZE];

	(void)events;
	for (int i = 0; i < EVENTS_READS_MAX; i++) {
		ssize_t n = read(w->fd, buffer, sizeof(buffer));

		if (n <= 0)
			return;
		for (char *p = buffer; p < buffer + n;) {
			const struct inotify_event *e = (const void *)p;

			log_watch_event(w, e);
			p += sizeof(*e) + e->len;
		}
	}
}

static int log_watch_open(struct log_watch *w)
{
	if (w->fd >= 0)
		return 0;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0)
		return -errno;
	loop_fd_init(&w->source, w->loop, w->fd, LOOP_READ, log_watch_readable);
	return 0;
}

void log_watch_init(struct log_watch *w, struct loop *l, int logs_fd)
{
	*w = (struct log_watch){
		.loop = l, .logs_fd = logs_fd, .fd = -1, .by_id = MAP_INIT, .by_wd = MAP_INIT
	};
	/* Early, since closing one takes the kernel long; where it fails the next watch tries. */
	(void)log_watch_open(w);
}

static void log_dir_drop(struct log_watch *w, struct log_dir *d)
{
	if (map_get(&w->by_id, d->id) == d)
		(void)map_remove(&w->by_id, d->id);
	if (map_get(&w->by_wd, d->wd_text) == d)
		(void)map_remove(&w->by_wd, d->wd_text);
	/* It is gone already where the directory is. */
	if (d->wd >= 0)
		(void)inotify_rm_watch(w->fd, d->wd);
	free(d);
}

static int log_dir_new(struct log_watch *w, const char *id, struct log_dir **ret)
{
	struct log_dir *d = calloc(1, sizeof(*d));
	char name[64];
	int r;

	if (!d)
		return -ENOMEM;
	list_init(&d->watched);
	(void)str_copy(d->id, sizeof(d->id), id);
	(void)str_printf(name, sizeof(name), "/proc/self/fd/%d/%s", w->logs_fd, d->id);
	d->wd = inotify_add_watch(w->fd, name,
				  IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
	r = d->wd < 0 ? -errno : 0;
	(void)str_printf(d->wd_text, sizeof(d->wd_text), "%d", d->wd);
	if (r == 0)
		r = map_add(&w->by_id, d->id, d);
	if (r == 0)
		r = map_add(&w->by_wd, d->wd_text, d);
	if (r < 0) {
		log_dir_drop(w, d);
		return r;
	}
	*ret = d;
	return 0;
}

int log_watch_add(struct log_watch *w, struct log_watched *watched, const char *id,
		  const char *file)
{
	struct log_dir *d;
	int r;

	r = log_watch_open(w);
	if (r < 0)
		return r;
	d = map_get(&w->by_id, id);
	if (!d) {
		r = log_dir_new(w, id, &d);
		if (r < 0)
			return r;
	}
	watched->dir = d;
	watched->file = file;
	list_add_tail(&d->watched, &watched->link);
	return 0;
}

void log_watch_remove(struct log_watch *w, struct log_watched *watched)
{
	struct log_dir *d = watched->dir;

	watched->dir = NULL;
	list_remove(&watched->link);
	if (d && list_empty(&d->watched))
		log_dir_drop(w, d);
}
