/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cell/start/program.h"
#include "isolate/mount/bind.h"
#include "isolate/mount/generations.h"
#include "isolate/mount/scratch_dir.h"
#include "loop/pool.h"
#include "rpc/server/server.h"

/*
 * Theory of operation. The container is started as one whose descriptors come later; a thread makes
 * them, and keeper_supply() or keeper_withdraw() ends the wait. What the thread reads is a copy,
 * since the call may end before it. Whoever is the last to have a disk stays in the list until
 * nobody holds the device: the kernel lets go of it a moment after the last process of the
 * container.
 */

#define DISKS_THREADS_MAX 2
#define DISKS_RETRY_MIN (2 * NSEC_PER_MSEC)
#define DISKS_RETRY_MAX (200 * NSEC_PER_MSEC)

struct disk_share {
	char name[CONTAINER_SHARE_MAX + 1]; /* "": this mount is none */
	bool read_only, no_exec, scratch, one_file;
};

/*
 *   MAKING     a thread makes its mounts, or `timer` waits for the disk.
 *   USED       its container has them, or they could not be made.
 *   RELEASING  somebody waits until the device is free; a thread looks, or `timer` waits to.
 */
enum disk_state { DISK_MAKING, DISK_USED, DISK_RELEASING };

struct disk_start {
	struct list link;
	struct disks *all;
	enum disk_state state;
	struct rpc_call *call; /* NULL: answered */
	char id[ID_SIZE];
	char cell[NAME_LABEL_MAX + 1];
	struct disk_places places;
	char serial[CONTAINER_SERIAL_MAX + 1]; /* "": it has no disk */
	struct disk_root root;
	struct disk_file *files;
	struct disk_share *shares;
	size_t n_shares;
	int shares_fd; /* not owned */
	struct pool_work work;
	struct loop_timer timer;
	nsec_t delay, deadline;
	/* Of the thread. */
	char device[DISK_NAME_MAX + 1];
	struct container_fds fds;
	int result; /* of a look: 1 free, 0 held */
	struct error err;
};

struct disk_release {
	struct list link;
	char id[ID_SIZE], cell[NAME_LABEL_MAX + 1];
	disks_fn done;
	void *userdata;
	struct error err;
};

/* ---- the value ---- */

static void disk_start_free(struct disk_start *d)
{
	if (!d)
		return;
	list_remove(&d->link);
	if (d->timer.loop)
		loop_timer_done(&d->timer);
	container_fds_close(&d->fds);
	for (size_t i = 0; d->files && i < d->root.n_files; i++) {
		free((char *)(uintptr_t)d->files[i].path);
		free((void *)(uintptr_t)d->files[i].data);
	}
	free(d->files);
	free(d->shares);
	free(d);
}

static void disk_start_freep(struct disk_start **d)
{
	disk_start_free(*d);
}

static int disk_start_copy_files(struct disk_start *d, const struct container_spec *spec)
{
	d->files = calloc(spec->n_files + 1, sizeof(*d->files));
	if (!d->files)
		return -ENOMEM;
	d->root.files = d->files;
	for (size_t i = 0; i < spec->n_files; i++) {
		const struct container_file *from = &spec->files[i];
		void *data = malloc(from->len + 1);

		d->root.n_files = i + 1;
		d->files[i] = (struct disk_file){ .path = strdup(from->path),
						  .mode = from->mode,
						  .data = data,
						  .len = from->len };
		if (!data || !d->files[i].path)
			return -ENOMEM;
		if (from->len)
			memcpy(data, from->data, from->len);
	}
	return 0;
}

static int disk_start_copy_shares(struct disk_start *d, const struct container_spec *spec)
{
	d->shares = calloc(spec->n_mounts + 1, sizeof(*d->shares));
	if (!d->shares)
		return -ENOMEM;
	d->n_shares = spec->n_mounts;
	for (size_t i = 0; i < spec->n_mounts; i++) {
		(void)str_copy(d->shares[i].name, sizeof(d->shares[i].name),
			       spec->mounts[i].share ?: "");
		d->shares[i].read_only = spec->mounts[i].read_only;
		d->shares[i].no_exec = spec->mounts[i].no_exec;
		d->shares[i].scratch = spec->mounts[i].scratch;
		d->shares[i].one_file = spec->mounts[i].one_file;
	}
	return 0;
}

/* ---- on the thread ---- */

/* What is looked for when its user is, so that the loop need not wait for the disk. */
static void disk_start_warm(int root_fd)
{
	static const char *const names[] = { "etc/passwd", "etc/group" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT;

		(void)rootfd_read(root_fd, names[i], (size_t)1 << 20, &b);
	}
}

static int disk_start_make_root(struct disk_start *d)
{
	int r;

	if (!d->serial[0])
		return 0;
	r = disk_find(&d->places, d->serial, d->device);
	if (r == -ENODEV) {
		(void)error_field(&d->err, ERROR_PRECONDITION, "root_disk",
				  "there is no disk with the serial %s", d->serial);
		return r;
	}
	if (r < 0)
		return error_set(&d->err, r, "look for the disk %s", d->serial);
	d->fds.rootfs = disk_mount_root(&d->places, d->device, &d->root, &d->err);
	if (d->fds.rootfs < 0)
		return error_wrap_field(&d->err, d->fds.rootfs, "root_disk");
	disk_start_warm(d->fds.rootfs);
	return 0;
}

static int disk_start_open_scratch(struct disk_start *d, const struct disk_share *s)
{
	_cleanup_fd_ int fd = scratch_dir_open(d->places.own_fd, s->name, s->one_file, &d->err);

	return fd < 0 ? fd
		      : isolate_bind(fd,
				     (s->read_only ? ISOLATE_BIND_READ_ONLY : 0) |
					     (s->no_exec ? ISOLATE_BIND_NO_EXEC : 0),
				     &d->err);
}

/* A file is the one of the generation that is in force now: who has it mounted keeps it. */
static int disk_start_open_files(const struct disk_start *d, const struct disk_share *s)
{
	_cleanup_fd_ int fd = generations_open(d->places.own_fd, s->name);

	if (fd < 0 || !s->one_file)
		return TAKE_FD(fd);
	return rootfd_open(fd, SCRATCH_DIR_FILE, O_PATH, 0);
}

/* A volume is one of the machine's own, or what was given as files, or else what the machine is
 * given. */
static int disk_start_open_share(struct disk_start *d, const struct disk_share *s)
{
	_cleanup_fd_ int fd = -1;

	if (s->scratch)
		return disk_start_open_scratch(d, s);
	fd = disk_start_open_files(d, s);
	if (fd == -ENOENT)
		return disk_open_share(d->shares_fd, s->name, s->read_only, s->no_exec, &d->err);
	if (fd < 0)
		return error_set(&d->err, fd, "open the volume %s", s->name);
	return isolate_bind(fd, ISOLATE_BIND_READ_ONLY | (s->no_exec ? ISOLATE_BIND_NO_EXEC : 0),
			    &d->err);
}

static int disk_start_make(struct disk_start *d)
{
	int r = disk_start_make_root(d);

	for (size_t i = 0; i < d->n_shares && r == 0; i++) {
		const struct disk_share *s = &d->shares[i];

		if (!s->name[0])
			continue;
		r = disk_start_open_share(d, s);
		if (r < 0)
			return error_wrap_field(&d->err, r, "mounts");
		d->fds.mounts[i] = r;
		r = 0;
	}
	return r;
}

static void disk_start_run(struct pool_work *work)
{
	struct disk_start *d = container_of(work, struct disk_start, work);

	if (d->state == DISK_MAKING)
		d->result = disk_start_make(d);
	else
		d->result = disk_is_free(&d->places, d->device);
}

/* ---- who waits for a disk ---- */

static bool release_is_about(const struct disk_release *r, const struct disk_start *d)
{
	return r->id[0] ? str_eq(r->id, d->id) : str_eq(r->cell, d->cell);
}

static bool disk_start_is_awaited(const struct disk_start *d)
{
	const struct disk_release *r;

	list_for_each (r, &d->all->releases, struct disk_release, link)
		if (release_is_about(r, d))
			return true;
	return false;
}

/* Whether somebody else has the same disk and keeps it: it is not going to be free then, and need
 * not be. */
static bool disk_start_is_not_the_last(const struct disk_start *d)
{
	const struct disk_start *other;

	list_for_each (other, &d->all->starts, struct disk_start, link)
		if (other != d && str_eq(other->serial, d->serial) && !disk_start_is_awaited(other))
			return true;
	return false;
}

static bool release_waits(const struct disks *all, const struct disk_release *r)
{
	const struct disk_start *d;

	list_for_each (d, &all->starts, struct disk_start, link)
		if (release_is_about(r, d))
			return true;
	return false;
}

static void disk_start_again(struct disk_start *d)
{
	d->delay = d->delay ? MIN(d->delay * 2, DISKS_RETRY_MAX) : DISKS_RETRY_MIN;
	loop_timer_set(&d->timer, d->delay);
}

/* Begins to look after what somebody waits for, and ends those that wait for nothing any more. */
static void disks_on_turn(struct loop_defer *defer)
{
	struct disks *all = container_of(defer, struct disks, turn);
	struct disk_release *r;
	struct disk_start *d;

	list_for_each (d, &all->starts, struct disk_start, link) {
		if (d->state != DISK_USED || !disk_start_is_awaited(d))
			continue;
		if (!d->device[0] || disk_start_is_not_the_last(d)) {
			disk_start_free(d);
			continue;
		}
		d->state = DISK_RELEASING;
		d->delay = 0;
		d->deadline = clock_mono() + DISKS_RELEASE;
		loop_timer_set(&d->timer, 0);
	}
	list_for_each (r, &all->releases, struct disk_release, link) {
		if (release_waits(all, r))
			continue;
		list_remove(&r->link);
		r->done(r->userdata, r->err.code ? &r->err : NULL);
		free(r);
	}
}

static void disk_start_looked(struct disk_start *d)
{
	struct disks *all = d->all;
	struct disk_release *r;

	bool held = d->result == 0 && !disk_start_is_not_the_last(d);

	if (held && clock_mono() < d->deadline) {
		disk_start_again(d);
		return;
	}
	list_for_each (r, &all->releases, struct disk_release, link)
		if (held && release_is_about(r, d))
			(void)error_refuse(&r->err, ERROR_FAULT, "the disk %s is still held",
					   d->serial);
	disk_start_free(d);
	loop_defer_schedule(&all->turn);
}

void disks_release(struct disks *all, const char *id, const char *cell, disks_fn done,
		   void *userdata)
{
	struct disk_release *r;
	struct error err = ERROR_INIT;

	if (list_empty(&all->starts)) {
		done(userdata, NULL);
		return;
	}
	r = malloc(sizeof(*r));
	if (!r) {
		(void)error_set(&err, -ENOMEM, "wait for a disk");
		done(userdata, &err);
		return;
	}
	*r = (struct disk_release){ .done = done, .userdata = userdata, .err = ERROR_INIT };
	list_init(&r->link);
	(void)str_copy(r->id, sizeof(r->id), id ?: "");
	(void)str_copy(r->cell, sizeof(r->cell), cell ?: "");
	list_add_tail(&all->releases, &r->link);
	loop_defer_schedule(&all->turn);
}

/* ---- the start ---- */

static void disk_start_started(void *userdata, const struct container_view *view)
{
	struct disk_start *d = userdata;
	struct rpc_call *call = TAKE_PTR(d->call);

	rpc_call_on_cancel(call, NULL, NULL);
	d->all->started(call, view);
}

static void disk_start_made(struct disk_start *d)
{
	struct disks *all = d->all;

	if (d->result == -ENODEV && clock_mono() < d->deadline && d->call) {
		d->err = (struct error)ERROR_INIT;
		disk_start_again(d);
		return;
	}
	d->state = DISK_USED;
	if (d->result < 0)
		keeper_withdraw(all->keeper, d->id, &d->err);
	else
		keeper_supply(all->keeper, d->id, &d->fds);
	/* Also those that nobody waits for. */
	container_fds_close(&d->fds);
	loop_defer_schedule(&all->turn);
}

static void disk_start_ran(struct pool_work *work)
{
	struct disk_start *d = container_of(work, struct disk_start, work);

	if (d->state == DISK_MAKING)
		disk_start_made(d);
	else
		disk_start_looked(d);
}

static void disk_start_on_timer(struct loop_timer *t)
{
	struct disk_start *d = container_of(t, struct disk_start, timer);

	pool_submit(d->all->pool, &d->work);
}

static void disk_start_on_cancel(struct rpc_call *call, void *data)
{
	struct disk_start *d = data;
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_CANCELLED, "its start was taken back");
	keeper_withdraw(d->all->keeper, d->id, &err);
}

static int disk_start_new(struct disk_start **ret, struct disks *all, const struct cell_spec *cell,
			  const struct container_spec *spec)
{
	_cleanup_(disk_start_freep) struct disk_start *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	*d = (struct disk_start){ .all = all,
				  .places = all->places,
				  .shares_fd = all->shares_fd,
				  .fds = CONTAINER_FDS_NONE,
				  .work = { .run = disk_start_run, .done = disk_start_ran },
				  .deadline = clock_mono() + DISKS_PATIENCE,
				  .err = ERROR_INIT };
	list_init(&d->link);
	(void)str_copy(d->id, sizeof(d->id), spec->id);
	(void)str_copy(d->cell, sizeof(d->cell), cell->name);
	d->root.name = d->id;
	r = disk_start_copy_shares(d, spec);
	if (r == 0 && spec->root_disk) {
		d->root.upper_bytes = spec->root_disk->upper_bytes;
		r = str_copy(d->serial, sizeof(d->serial), spec->root_disk->serial);
		if (r == 0)
			r = disk_start_copy_files(d, spec);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < d->n_shares; i++)
		d->fds.mounts[i] = -1;
	d->fds.n_mounts = d->n_shares;
	loop_timer_init(&d->timer, all->loop, disk_start_on_timer);
	*ret = TAKE_PTR(d);
	return 0;
}

static int disks_open(struct disks *all, struct error *err)
{
	int own_fd = all->places.own_fd, r;

	if (!all->pool) {
		r = pool_new(&all->pool, all->loop, DISKS_THREADS_MAX);
		if (r < 0)
			return error_set(err, r, "make threads for disks");
	}
	if (all->places.sys_fd >= 0)
		return 0;
	r = disk_places_open(&all->places, err);
	all->places.own_fd = own_fd;
	return r;
}

static bool disks_has_share(const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!str_empty(spec->mounts[i].share))
			return true;
	return false;
}

/* Whether one of them is not there as files (keeper/server/files.h). */
static bool disks_needs_shares(const struct disks *all, const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!str_empty(spec->mounts[i].share) && !spec->mounts[i].scratch &&
		    !generations_has(all->places.own_fd, spec->mounts[i].share))
			return true;
	return false;
}

/* The volumes of the machine, for the first that has one. Nobody is waited for. */
static int disks_open_shares(struct disks *all, const struct container_spec *spec,
			     struct error *err)
{
	int r;

	if (all->shares_fd >= 0 || !disks_needs_shares(all, spec))
		return 0;
	r = disk_mount_shares(all->places.own_fd, err);
	if (r < 0)
		return error_wrap_field(err, r, "mounts");
	all->shares_fd = r;
	return 0;
}

int disks_start(struct disks *all, struct rpc_call *call, const struct cell_spec *cell,
		const struct container_spec *spec, struct container_fds *fds, struct error *err)
{
	struct container_spec late = *spec;
	struct disk_start *d;
	int r;

	r = program_check_container(cell, spec, err);
	if (r == 0)
		r = disks_open(all, err);
	if (r == 0)
		r = disks_open_shares(all, spec, err);
	if (r < 0)
		return r;
	r = disk_start_new(&d, all, cell, spec);
	if (r < 0)
		return error_set(err, r, "start container %s", spec->name);
	late.late = true;
	d->call = call;
	r = keeper_start(all->keeper, cell, &late, fds, disk_start_started, d, err);
	if (r < 0) {
		disk_start_free(d);
		return r;
	}
	list_add_tail(&all->starts, &d->link);
	pool_submit(all->pool, &d->work);
	rpc_call_on_cancel(call, disk_start_on_cancel, d);
	if (rpc_call_cancelled(call))
		disk_start_on_cancel(call, d);
	return 0;
}

bool disks_wants(const struct container_spec *spec)
{
	return spec->root_disk || disks_has_share(spec);
}

/* ---- the object ---- */

void disks_init(struct disks *all, struct loop *loop, struct keeper *keeper, int own_fd,
		const struct disk_places *places,
		void (*started)(void *call, const struct container_view *view))
{
	*all = (struct disks){ .loop = loop,
			       .keeper = keeper,
			       .places = DISK_PLACES_NONE,
			       .opened = places == NULL,
			       .shares_fd = -1,
			       .started = started };
	if (places)
		all->places = *places;
	all->places.own_fd = own_fd;
	list_init(&all->starts);
	list_init(&all->releases);
	loop_defer_init(&all->turn, loop, disks_on_turn);
}

void disks_done(struct disks *all)
{
	struct disk_release *r;
	struct disk_start *d;
	bool busy = false;

	if (!all->loop)
		return;
	list_for_each (d, &all->starts, struct disk_start, link) {
		busy = busy || d->work.busy;
		if (!d->work.busy)
			disk_start_free(d);
	}
	list_for_each (r, &all->releases, struct disk_release, link)
		free(r);
	all->pool = busy ? pool_leave(all->pool) : pool_free(all->pool);
	loop_defer_done(&all->turn);
	if (!busy)
		all->shares_fd = fd_close(all->shares_fd);
	if (all->opened)
		disk_places_close(&all->places);
}
