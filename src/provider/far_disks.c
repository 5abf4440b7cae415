/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/far_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "instance/model.h"
#include "loop/pool.h"

/*
 * Theory of operation. A disk is read piece by piece on a thread, and each piece is sent when the
 * machine has taken the one before it: one piece of memory for each disk that is on its way. The
 * serial is from the name of the image, which is that of its content: what is there already is
 * found to be there, also after a restart of the daemon.
 */

struct far_disk_waiter {
	struct list link;
	peer_done_fn done;
	void *userdata;
};

struct far_disk {
	struct list link;
	struct far_vm *vm; /* NULL: it is only the thread's */
	char name[128], serial[INSTANCE_SERIAL_SIZE];
	unsigned users;
	bool there;
	int fd;
	uint64_t size, at;
	uint8_t *piece;
	size_t len;
	int r; /* of the thread */
	struct pool_work work;
	struct loop_defer defer; /* to tell of one that is there */
	struct list waiters;
};

static void far_disk_free(struct far_disk *d)
{
	struct far_disk_waiter *w;

	list_for_each (w, &d->waiters, struct far_disk_waiter, link)
		free(w);
	list_remove(&d->link);
	loop_defer_done(&d->defer);
	(void)fd_close(d->fd);
	free(d->piece);
	free(d);
}

static void far_disk_tell(struct far_disk *d, const struct error *err)
{
	struct list waiters;
	struct far_disk_waiter *w;

	list_init(&waiters);
	while (!list_empty(&d->waiters)) {
		w = list_first(&d->waiters, struct far_disk_waiter, link);
		list_remove(&w->link);
		list_add_tail(&waiters, &w->link);
	}
	while (!list_empty(&waiters)) {
		w = list_first(&waiters, struct far_disk_waiter, link);
		list_remove(&w->link);
		w->done(w->userdata, err);
		free(w);
	}
}

/* It is there (err NULL), or did not come. */
static void far_disk_over(struct far_disk *d, const struct error *err)
{
	free(TAKE_PTR(d->piece));
	d->fd = fd_close(d->fd);
	d->there = !err;
	if (err)
		list_remove(&d->link);
	far_disk_tell(d, err);
	if (err)
		far_disk_free(d);
}

static void far_disk_on_sent(void *userdata, const struct error *err)
{
	struct far_disk *d = userdata;
	struct error own = ERROR_INIT;

	if (err && err->kind == ERROR_EXISTS) {
		far_disk_over(d, NULL);
		return;
	}
	if (err) {
		(void)error_copy(&own, err);
		(void)error_wrap(&own, own.code, "bring an image to the machine");
		far_disk_over(d, &own);
		return;
	}
	d->at += d->len;
	if (d->at == d->size)
		far_disk_over(d, NULL);
	else
		pool_submit(d->vm->all->config.pool, &d->work);
}

static void far_disk_run(struct pool_work *work)
{
	struct far_disk *d = container_of(work, struct far_disk, work);
	size_t want = (size_t)MIN((uint64_t)PEER_PIECE_MAX, d->size - d->at);

	d->r = 0;
	for (d->len = 0; d->len < want;) {
		ssize_t n = sysio_pread(d->fd, d->piece + d->len, want - d->len,
					(off_t)(d->at + d->len));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			d->r = n < 0 ? -errno : -ENODATA;
			return;
		}
		d->len += (size_t)n;
	}
}

static void far_disk_ran(struct pool_work *work)
{
	struct far_disk *d = container_of(work, struct far_disk, work);
	const struct peer_piece piece = { .serial = d->serial,
					  .offset = d->at,
					  .size = d->size,
					  .data = d->piece,
					  .len = d->len };
	struct error err = ERROR_INIT;
	struct peer *peer;

	if (!d->vm) {
		far_disk_free(d);
		return;
	}
	peer = d->vm->instance ? d->vm->instance->peer : NULL;
	if (d->r < 0)
		(void)error_set(&err, d->r, "read the disk of an image");
	else if (!peer)
		(void)error_refuse(&err, ERROR_UNAVAILABLE, "the keeper is not there");
	if (err.code)
		far_disk_over(d, &err);
	else
		peer->ops->put_disk(peer, &piece, far_disk_on_sent, d);
}

static void far_disk_on_defer(struct loop_defer *defer)
{
	far_disk_tell(container_of(defer, struct far_disk, defer), NULL);
}

static struct far_disk *far_disk_find(const struct far_vm *m, const char *name)
{
	struct far_disk *d;

	list_for_each (d, &m->disks, struct far_disk, link)
		if (str_eq(d->name, name))
			return d;
	return NULL;
}

static struct far_disk *far_disk_new(struct far_vm *m, const char *name)
{
	static const char algorithm[] = "sha256:";
	struct far_disk *d = calloc(1, sizeof(*d));
	const char *digits = str_has_prefix(name, algorithm) ? name + strlen(algorithm) : name;

	if (!d || str_copy(d->name, sizeof(d->name), name) < 0) {
		free(d);
		return NULL;
	}
	(void)str_printf(d->serial, sizeof(d->serial), "%.*s", INSTANCE_SERIAL_SIZE - 1, digits);
	d->vm = m;
	d->fd = -1;
	d->work = (struct pool_work){ .run = far_disk_run, .done = far_disk_ran };
	loop_defer_init(&d->defer, m->all->config.loop, far_disk_on_defer);
	list_init(&d->waiters);
	list_init(&d->link);
	list_add_tail(&m->disks, &d->link);
	return d;
}

static int far_disk_begin(struct far_disk *d, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -ENODATA;
	d->fd = fd_copy(fd);
	if (d->fd < 0)
		return d->fd;
	d->piece = malloc(PEER_PIECE_MAX);
	d->size = (uint64_t)st.st_size;
	return d->piece ? 0 : -ENOMEM;
}

int far_disk_put(struct far_vm *m, const char *name, int fd, char ret_serial[INSTANCE_SERIAL_SIZE],
		 peer_done_fn done, void *userdata, struct error *err)
{
	struct far_disk_waiter *w = calloc(1, sizeof(*w));
	struct far_disk *d = far_disk_find(m, name);
	bool fresh = !d;
	int r = 0;

	if (!d)
		d = w ? far_disk_new(m, name) : NULL;
	if (!w || !d)
		r = -ENOMEM;
	else if (fresh)
		r = far_disk_begin(d, fd);
	if (r < 0) {
		free(w);
		if (fresh && d)
			far_disk_free(d);
		return error_set(err, r, "bring an image to the machine");
	}
	*w = (struct far_disk_waiter){ .done = done, .userdata = userdata };
	list_init(&w->link);
	list_add_tail(&d->waiters, &w->link);
	d->users++;
	(void)str_copy(ret_serial, INSTANCE_SERIAL_SIZE, d->serial);
	if (fresh)
		pool_submit(m->all->config.pool, &d->work);
	else if (d->there)
		loop_defer_schedule(&d->defer);
	return 0;
}

int far_disk_claim(struct far_vm *m, const char *name, struct error *err)
{
	struct far_disk *d = far_disk_find(m, name);

	if (!d)
		d = far_disk_new(m, name);
	if (!d)
		return error_set(err, -ENOMEM, "the disk of an image");
	d->there = true;
	d->users++;
	return 0;
}

/* It stays in the machine, for the next container of that image: what a pod has had, it has soon
 * again. One that did not come has gone with its error. */
void far_disk_drop(struct far_vm *m, const char *name)
{
	struct far_disk *d = far_disk_find(m, name);

	if (d && d->users > 0)
		d->users--;
}

void far_disks_leave(struct far_vm *m, const struct error *err)
{
	while (!list_empty(&m->disks)) {
		struct far_disk *d = list_first(&m->disks, struct far_disk, link);

		list_remove(&d->link);
		d->vm = NULL;
		if (err)
			far_disk_tell(d, err);
		/* What a thread reads into is the thread's. */
		if (!d->work.busy)
			far_disk_free(d);
	}
}
