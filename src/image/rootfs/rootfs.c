/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/model.h"
#include "image/rootfs/limited.h"
#include "image/rootfs/lower.h"
#include "image/rootfs/overlay.h"
#include "isolate/disk/quota.h"
#include "isolate/mount/mount.h"
#include "store/root.h"

#define ROOTFS_RETRY_FIRST (100 * NSEC_PER_MSEC)
/* The working directory of the overlays of a container that has ended. */
#define ROOTFS_COPY_WORK "copying"
#define ROOTFS_RETRY_LAST (60 * NSEC_PER_SEC)

/* A container that has, or had, directories. */
struct image_container {
	struct image_store *store;
	char id[64];
	bool leaving;
	struct lower *lower; /* that its root lies on; NULL: directories, or an earlier daemon's */
	struct pool_work work;
	struct loop_timer retry;
	nsec_t delay;
	int result;
};

/* ---- what is known ---- */

static bool rootfs_id_fits(const char *id)
{
	return *id && *id != '.' && !strchr(id, '/') && str_is_clean(id) &&
	       strlen(id) < sizeof(((struct image_container *)NULL)->id);
}

static void container_free(struct image_container *c)
{
	loop_timer_done(&c->retry);
	(void)map_remove(&c->store->containers, c->id);
	free(c);
}

static void container_run(struct pool_work *work)
{
	struct image_container *c = container_of(work, struct image_container, work);

	c->result = FAILPOINT("rootfs.remove");
	/* Of a daemon that was killed in the middle of image_rootfs_make(). */
	limited_detach(c->store->containers_fd, c->id);
	if (c->result == 0)
		c->result = limited_remove(c->store->containers_fd, c->id);
	FAILPOINT_AFTER("rootfs.remove");
}

static void container_removed(struct pool_work *work)
{
	struct image_container *c = container_of(work, struct image_container, work);

	if (c->result == 0) {
		container_free(c);
		return;
	}
	log_debug("cannot remove the files of a container yet", LOG_STR("container", c->id),
		  LOG_INT("errno", -c->result));
	loop_timer_set(&c->retry, c->delay);
	c->delay = MIN(c->delay * 2, ROOTFS_RETRY_LAST);
}

static void container_retry(struct loop_timer *timer)
{
	struct image_container *c = container_of(timer, struct image_container, retry);

	pool_submit(c->store->config.pool, &c->work);
}

static int container_know(struct image_store *s, const char *id, struct image_container **ret)
{
	struct image_container *c = map_get(&s->containers, id);

	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			return -ENOMEM;
		*c = (struct image_container){
			.store = s,
			.work = { .run = container_run, .done = container_removed },
			.delay = ROOTFS_RETRY_FIRST,
		};
		loop_timer_init(&c->retry, s->config.loop, container_retry);
		if (str_copy(c->id, sizeof(c->id), id) < 0 ||
		    map_add(&s->containers, c->id, c) < 0) {
			loop_timer_done(&c->retry);
			free(c);
			return -ENOMEM;
		}
	}
	*ret = c;
	return 0;
}

static void container_leave(struct image_container *c)
{
	if (c->leaving)
		return;
	c->leaving = true;
	c->lower = lower_drop(c->lower);
	pool_submit(c->store->config.pool, &c->work);
}

void rootfs_free_all(struct image_store *s)
{
	size_t pos = 0;

	for (;;) {
		struct image_container *c = map_next(&s->containers, &pos);

		if (!c)
			break;
		container_free(c);
	}
	map_done(&s->containers);
}

void rootfs_inventory(const struct image_store *s, struct inventory *t)
{
	const struct image_container *c;
	size_t pos = 0;

	for (c = map_next(&s->containers, &pos); c; c = map_next(&s->containers, &pos))
		if (c->leaving)
			inventory_may(t, "rootfs", c->id);
}

/* ---- directories ---- */

/* The root of the merged tree looks as the highest layer's does. */
static int rootfs_make_upper(struct image_store *s, const struct image *image, int dir_fd,
			     struct error *err)
{
	int64_t top = image->n_layers ? image->layers[image->n_layers - 1] : 0;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	char name[24];

	(void)str_printf(name, sizeof(name), "%" PRId64, top);
	if (fstatat(s->layers_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return error_set(err, -errno, "look at layer %s", name);
	if (sysio_mkdirat(dir_fd, "upper", 0755) < 0 || sysio_mkdirat(dir_fd, "work", 0700) < 0)
		return error_set(err, -errno, "make its directories");
	fd = sysio_openat(dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open its directory");
	if (fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 07777) < 0)
		return error_set(err, -errno, "set the mode of its root");
	return 0;
}

/* How the writable layer is limited (limited.h). */
struct rootfs_limit {
	bool own;     /* by a file system of its own */
	bool project; /* by a quota */
};

static int rootfs_make_dirs(struct image_store *s, const struct image *image, const char *id,
			    const struct image_limit *limit, struct rootfs_limit *ret,
			    struct error *err)
{
	_cleanup_fd_ int dir_fd = -1, fs_fd = -1;

	if (sysio_mkdirat(s->containers_fd, id, 0700) < 0)
		return error_set(err, -errno, "make its directory");
	dir_fd = sysio_openat(s->containers_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			      0);
	if (dir_fd < 0)
		return error_set(err, -errno, "open its directory");
	if (!limit || !limit->bytes)
		return rootfs_make_upper(s, image, dir_fd, err);
	fs_fd = limited_make(s, dir_fd, id, limit, &ret->own, err);
	ret->project = !ret->own;
	return fs_fd < 0 ? fs_fd : rootfs_make_upper(s, image, fs_fd, err);
}

/* ---- roots ---- */

/* The directories of one with a file system of its own are on containers/ID/fs, which is not
 * mounted any more behind this. */
static int rootfs_mount(struct image_store *s, const struct image *image, const char *id,
			const char *work, const struct rootfs_limit *limit,
			const struct lower *lower, const struct isolate_ids *ids, struct error *err)
{
	char place[sizeof(((struct image_container *)NULL)->id) + sizeof("/fs")];
	const struct overlay_upper upper = { place, work, limit->project };
	int r;

	(void)str_printf(place, sizeof(place), "%s%s", id, limit->own ? "/fs" : "");
	r = overlay_mount(s, image, &upper, lower ? lower_fd(lower) : -1, ids, err);
	if (limit->own)
		limited_detach(s->containers_fd, id);
	return r;
}

int image_rootfs_make(struct image_store *s, struct image *image, const char *container_id,
		      const struct image_limit *limit, const struct isolate_ids *ids,
		      struct error *err)
{
	struct rootfs_limit how = { .own = false };
	struct image_container *c;
	int r;

	if (!rootfs_id_fits(container_id))
		return error_refuse(err, ERROR_INVALID, "\"%.64s\" is no id of a container",
				    container_id);
	if (map_get(&s->containers, container_id))
		return error_refuse(err, ERROR_EXISTS, "container %s has a root file system",
				    container_id);
	r = container_know(s, container_id, &c);
	if (r < 0)
		return error_set(err, r, "root file system of container %s", container_id);
	r = FAILPOINT("container.rootfs");
	if (r < 0)
		(void)error_set(err, r, "make it");
	else
		r = rootfs_make_dirs(s, image, container_id, limit, &how, err);
	if (r == 0)
		r = lower_take(s, image, &c->lower, err);
	if (r == 0)
		r = rootfs_mount(s, image, c->id, "work", &how, c->lower, ids, err);
	if (r < 0) {
		container_leave(c);
		return error_wrap(err, r, "root file system of container %s", container_id);
	}
	image->n_users++;
	FAILPOINT_AFTER("container.rootfs");
	return r;
}

int image_view_open(struct image_store *s, const struct image *image, const struct isolate_ids *ids,
		    struct error *err)
{
	int r = overlay_mount(s, image, NULL, -1, ids, err);

	return r < 0 ? error_wrap(err, r, "read the files of the image") : r;
}

int image_mount_open(struct image_store *s, const struct image *image,
		     const struct isolate_ids *ids, const char *sub_path, bool no_exec,
		     struct error *err)
{
	const struct mount_attr attr = { .attr_clr = no_exec ? 0 : MOUNT_ATTR_NOEXEC };
	_cleanup_fd_ int fd = image_view_open(s, image, ids, err);
	int r = fd < 0 ? fd : mount_change(fd, &attr, false, err);

	if (r < 0 || !sub_path)
		return r < 0 ? r : TAKE_FD(fd);
	return overlay_below(s, fd, sub_path, err);
}

/* An overlay that does not sync marks its working directory, and is not made with it again. */
static int rootfs_make_work(int dir_fd, const char *name, struct error *err)
{
	int r = rootfd_remove_tree(dir_fd, name);

	if (r == 0 && sysio_mkdirat(dir_fd, name, 0700) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "make a working directory for it") : 0;
}

/* Where its directories are: its own file system, mounted for this, or its directory. */
static int rootfs_open_dirs(struct image_store *s, const char *id, struct rootfs_limit *ret,
			    struct error *err)
{
	_cleanup_fd_ int dir_fd = sysio_openat(s->containers_fd, id,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int r;

	if (dir_fd < 0)
		return error_set(err, -errno, "open its directory");
	r = limited_open(dir_fd, err);
	ret->own = r != -ENOENT;
	ret->project = !ret->own && quota_project(dir_fd);
	return r == -ENOENT ? TAKE_FD(dir_fd) : r;
}

/* Its root once more; *lower is taken where it is not held yet. */
static int rootfs_mount_again(struct image_store *s, const struct image *image, const char *id,
			      const char *work, struct lower **lower, const struct isolate_ids *ids,
			      struct error *err)
{
	const struct image_container *c = map_get(&s->containers, id);
	struct rootfs_limit limit = { .own = false };
	_cleanup_fd_ int dir_fd = -1;
	int r;

	if (!c || c->leaving)
		return error_refuse(err, ERROR_PRECONDITION, "its files are gone");
	if (!image)
		return error_refuse(err, ERROR_PRECONDITION, "its image is gone");
	dir_fd = rootfs_open_dirs(s, id, &limit, err);
	r = dir_fd < 0 ? dir_fd : rootfs_make_work(dir_fd, work, err);
	if (r == 0 && !*lower)
		r = lower_take(s, image, lower, err);
	/* An overlay makes directories of its own. */
	if (r == 0 && limit.project)
		(void)quota_stretch(dir_fd);
	if (r == 0)
		r = rootfs_mount(s, image, id, work, &limit, *lower, ids, err);
	else if (limit.own)
		limited_detach(s->containers_fd, id);
	if (limit.project)
		(void)quota_restore(dir_fd);
	return r < 0 ? error_wrap(err, r, "root file system of container %s", id) : r;
}

int image_rootfs_again(struct image_store *s, struct image *image, const char *container_id,
		       const struct isolate_ids *ids, struct error *err)
{
	struct image_container *c = map_get(&s->containers, container_id);
	struct lower *none = NULL;
	int r = FAILPOINT("container.rootfs");

	if (r < 0)
		return error_set(err, r, "root file system of container %s", container_id);
	r = rootfs_mount_again(s, image, container_id, "work", c ? &c->lower : &none, ids, err);
	FAILPOINT_AFTER("container.rootfs");
	return r;
}

int image_rootfs_open(struct image_store *s, const struct image *image, const char *container_id,
		      struct error *err)
{
	struct lower *lower = NULL;
	int r = rootfs_mount_again(s, image, container_id, ROOTFS_COPY_WORK, &lower, NULL, err);

	/* The overlay holds what it lies upon. */
	(void)lower_drop(lower);
	return r;
}

int image_rootfs_open_changes(struct image_store *s, const char *container_id, struct error *err)
{
	const struct image_container *c = map_get(&s->containers, container_id);
	struct rootfs_limit limit = { .own = false };
	_cleanup_fd_ int dir_fd = -1;
	int fd;

	if (!c || c->leaving)
		return error_refuse(err, ERROR_PRECONDITION, "its files are gone");
	dir_fd = rootfs_open_dirs(s, container_id, &limit, err);
	if (dir_fd < 0)
		return dir_fd;
	fd = sysio_openat(dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		(void)error_set(err, -errno, "open the directory of its changes");
	if (limit.own)
		limited_detach(s->containers_fd, container_id);
	return fd < 0 ? err->code : fd;
}

void image_rootfs_remove(struct image_store *s, struct image *image, const char *container_id)
{
	struct image_container *c;

	if (!rootfs_id_fits(container_id) || container_know(s, container_id, &c) < 0)
		return;
	if (c->leaving)
		return;
	if (image && image->n_users > 0)
		image->n_users--;
	container_leave(c);
}

void image_rootfs_adopt(struct image_store *s, struct image *image, const char *container_id)
{
	struct image_container *c;

	if (!rootfs_id_fits(container_id) || container_know(s, container_id, &c) < 0)
		return;
	if (image)
		image->n_users++;
}

/* One whose record stays is found again at the next start. */
static void rootfs_drop_lost(struct image_store *s)
{
	for (size_t i = 0; s->lost && s->lost[i]; i++)
		(void)root_store_drop_image(s->config.store, s->lost[i], NULL, NULL, NULL);
	strv_free(TAKE_PTR(s->lost));
}

static void rootfs_sweep_roots(struct image_store *s)
{
	int fd = sysio_openat(s->containers_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		(void)fd_close(fd);
		return;
	}
	for (;;) {
		const struct dirent *e = readdir(dir);
		struct image_container *c;

		if (!e)
			break;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
		    map_get(&s->containers, e->d_name))
			continue;
		if (!rootfs_id_fits(e->d_name))
			trash_add(s, s->containers_fd, e->d_name, NULL);
		else if (container_know(s, e->d_name, &c) == 0)
			container_leave(c);
	}
	(void)closedir(dir);
	s->swept = true;
}

void image_rootfs_sweep(struct image_store *s)
{
	rootfs_drop_lost(s);
	rootfs_sweep_roots(s);
}
