/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All directories of an overlay are named relative to layers/ ("12", "../containers/ID/upper"),
 * since a value that fsconfig() takes has at most 255 bytes; so the working directory of this
 * process stands there for the length of the call (nothing else in this process uses a relative
 * path).
 *
 * From 6.5 on each layer is a value of its own (lowerdir+). Before, all of them are one value,
 * which holds about 60 of them.
 */

#include "image/rootfs/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "isolate/disk/erofs_file.h"
#include "isolate/disk/quota.h"
#include "isolate/mount/idmap.h"

#define OVERLAY_VALUE_MAX 255
#define OVERLAY_OPAQUE "user.overlay.opaque"

static int overlay_set(int fs_fd, const char *key, const char *value, struct error *err)
{
	unsigned command = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

	if (sysio_fsconfig(fs_fd, command, key, value, 0) < 0)
		return error_set(err, -errno, "set the overlay's %s", key);
	return 0;
}

/* Whether a layer hides all that lies below it. The kernel asks no layer's root for that, so that
 * the layers below are left out. */
static bool overlay_is_bottom(const char *layer)
{
	return lgetxattr(layer, OVERLAY_OPAQUE, NULL, 0) > 0;
}

/* alone: there is no upper directory, which one layer is too few for. */
static int overlay_set_layers_new(int fs_fd, const struct image *image, bool alone,
				  struct error *err)
{
	int r = 0;

	for (size_t i = image->n_layers; i > 0; i--) {
		char name[24];

		(void)str_printf(name, sizeof(name), "%" PRId64, image->layers[i - 1]);
		r = overlay_set(fs_fd, "lowerdir+", name, err);
		if (r < 0)
			return r;
		if (overlay_is_bottom(name))
			break;
	}
	if (alone || !image->n_layers)
		r = overlay_set(fs_fd, "lowerdir+", "0", err);
	return r;
}

static int overlay_set_layers_old(int fs_fd, const struct image *image, bool alone,
				  struct error *err)
{
	char value[OVERLAY_VALUE_MAX + 1] = "0";
	size_t len = 0;

	for (size_t i = image->n_layers; i > 0; i--) {
		char name[24];
		int n;

		(void)str_printf(name, sizeof(name), "%" PRId64, image->layers[i - 1]);
		n = str_printf(value + len, sizeof(value) - len, "%s%s", len ? ":" : "", name);
		if (n < 0)
			return error_refuse(err, ERROR_UNSUPPORTED,
					    "the kernel cannot join %zu layers (Linux 6.5 can)",
					    image->n_layers);
		len += (size_t)n;
		if (overlay_is_bottom(name))
			break;
	}
	if (alone && len > 0 && str_printf(value + len, sizeof(value) - len, ":0") < 0)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the kernel cannot join %zu layers (Linux 6.5 can)",
				    image->n_layers);
	return overlay_set(fs_fd, "lowerdir", value, err);
}

/* Inodes have one device number and keep theirs when they are written to, as they do where all
 * layers are directories of one file system: so xino, by which the overlay uses their highest bits.
 */
static int overlay_set_lower(int fs_fd, int lower_fd, struct error *err)
{
	int r = erofs_file_add_layer(fs_fd, lower_fd, err);

	return r < 0 ? r : overlay_set(fs_fd, "xino", "on", err);
}

struct overlay_form {
	const struct image *image;
	const char *id; /* NULL: the layers alone, read-only */
	const char *work;
	int lower_fd; /* -1: directories */
	int upper_fd; /* a mount with the container's directories; -1: "../containers/ID" */
	bool old;     /* for a kernel without lowerdir+ */
	bool obeys;   /* struct overlay_upper */
};

static int overlay_set_upper(int fs_fd, const struct overlay_form *f, const char *key,
			     const char *dir, struct error *err)
{
	char value[OVERLAY_VALUE_MAX + 1];

	if (f->upper_fd >= 0)
		(void)str_printf(value, sizeof(value), "/proc/self/fd/%d/%s", f->upper_fd, dir);
	else
		(void)str_printf(value, sizeof(value), "../containers/%s/%s", f->id, dir);
	return overlay_set(fs_fd, key, value, err);
}

static int overlay_set_layers(int fs_fd, const struct overlay_form *f, struct error *err)
{
	if (f->lower_fd >= 0)
		return overlay_set_lower(fs_fd, f->lower_fd, err);
	return (f->old ? overlay_set_layers_old : overlay_set_layers_new)(fs_fd, f->image, !f->id,
									  err);
}

/* Writes are made with the capabilities that this thread has now. */
static int overlay_create(int fs_fd, bool obeys, struct error *err)
{
	int had = 0;
	int r = obeys ? quota_obey(&had) : 0;

	if (r < 0)
		return error_set(err, r, "give up CAP_SYS_RESOURCE for the overlay");
	if (sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = error_set(err, -errno, "make the overlay");
	if (obeys)
		quota_ignore(had);
	return r;
}

static int overlay_mount_form(const struct overlay_form *f, struct error *err)
{
	const char *id = f->id;
	unsigned attrs = MOUNT_ATTR_NODEV;
	_cleanup_fd_ int fs_fd = sysio_fsopen("overlay", FSOPEN_CLOEXEC);
	int fd, r;

	if (fs_fd < 0)
		return error_set(err, -errno, "open the overlay file system");
	r = overlay_set(fs_fd, "source", "nacre", err);
	if (r == 0)
		r = overlay_set_layers(fs_fd, f, err);
	if (r == 0 && id)
		r = overlay_set_upper(fs_fd, f, "upperdir", "upper", err);
	if (r == 0 && id)
		r = overlay_set_upper(fs_fd, f, "workdir", f->work, err);
	/* What the layers say to the overlay is in user.overlay.*; nobody needs a container's
	 * changes after a crash of the machine. */
	if (r == 0)
		r = overlay_set(fs_fd, "userxattr", NULL, err);
	if (r == 0 && id)
		r = overlay_set(fs_fd, "volatile", NULL, err);
	if (r == 0)
		r = overlay_create(fs_fd, f->obeys, err);
	if (r < 0)
		return r;
	if (!id)
		attrs |= MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? error_set(err, -errno, "mount the overlay") : fd;
}

/*
 * Mapped ids. The overlay itself cannot map ids, but what it lies upon can: so it is made of a copy
 * of the mount that all directories are in, with the ids of the user namespace, by a thread whose
 * files are those of the root in there. What the container writes is on the disk with the ids that
 * it sees itself: another range, or none, finds the same files.
 */
struct overlay_base {
	int user_fd;   /* -1: nothing is mapped */
	int mount_fd;  /* of the node's root directory */
	int layers_fd; /* where the names begin */
	int lower_fd, upper_fd;
};

static void overlay_base_done(struct overlay_base *b)
{
	(void)fd_close(b->user_fd);
	(void)fd_close(b->mount_fd);
	(void)fd_close(b->layers_fd);
	(void)fd_close(b->lower_fd);
	(void)fd_close(b->upper_fd);
}

static int overlay_map(int dir_fd, const char *name, int user_fd, struct error *err)
{
	_cleanup_fd_ int fd =
		sysio_open_tree(dir_fd, name,
				OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW |
					(*name ? 0 : AT_EMPTY_PATH));
	int r;

	if (fd < 0)
		return error_set(err, -errno, "copy the mount of the layers");
	r = isolate_idmap_apply(fd, user_fd, false, err);
	return r < 0 ? error_wrap(err, r, "the node's root directory") : TAKE_FD(fd);
}

static int overlay_base_open(struct overlay_base *b, struct image_store *s, const char *id,
			     int lower_fd, const struct isolate_ids *ids, struct error *err)
{
	int users[ISOLATE_NS_COUNT];
	int r = isolate_users_new(ids, NULL, users, err);

	if (r < 0)
		return r;
	b->user_fd = users[ISOLATE_NS_USER];
	b->mount_fd = overlay_map(s->config.root_fd, "", b->user_fd, err);
	if (b->mount_fd < 0)
		return b->mount_fd;
	b->layers_fd = sysio_openat(b->mount_fd, "layers",
				    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (b->layers_fd < 0)
		return error_set(err, -errno, "go to the layers");
	if (lower_fd >= 0)
		b->lower_fd = overlay_map(lower_fd, "", b->user_fd, err);
	if (lower_fd >= 0 && b->lower_fd < 0)
		return b->lower_fd;
	/* A file system of its own is no part of the copy. */
	if (id && strchr(id, '/'))
		b->upper_fd = overlay_map(s->containers_fd, id, b->user_fd, err);
	return id && strchr(id, '/') && b->upper_fd < 0 ? b->upper_fd : 0;
}

/* In the directory of the layers, which `layers_fd` is. */
static int overlay_mount_in(struct image_store *s, struct overlay_form *form, int layers_fd,
			    struct error *err)
{
	_cleanup_fd_ int cwd_fd = sysio_openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	struct error fault = ERROR_INIT;
	int fd;

	if (cwd_fd < 0)
		return error_set(err, -errno, "open the working directory");
	if (fchdir(layers_fd) < 0)
		return error_set(err, -errno, "go to the layers");
	fd = overlay_mount_form(form, &fault);
	if (fd == -EINVAL && !form->old && form->lower_fd < 0) {
		fault = (struct error)ERROR_INIT;
		form->old = true;
		fd = overlay_mount_form(form, &fault);
		s->old_overlay = fd >= 0;
	}
	if (fchdir(cwd_fd) < 0)
		log_debug("cannot go back to the working directory", LOG_INT("errno", errno));
	return fd < 0 ? error_copy(err, &fault) : fd;
}

/* Where mounts with mapped ids lie for a moment, below the node's root directory. */
static const char *const overlay_places[] = { "mapped", "mapped-upper" };

static void overlay_leave_place(struct image_store *s, const char *name)
{
	_cleanup_fd_ int fd = sysio_openat(s->config.root_fd, name,
					   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	char path[32];

	if (fd < 0)
		return;
	(void)str_printf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* -EINVAL: nothing is mounted there. */
	(void)umount2(path, MNT_DETACH);
	fd = fd_close(fd);
	(void)sysio_unlinkat(s->config.root_fd, name, AT_REMOVEDIR);
}

static int overlay_take_place(struct image_store *s, const char *name, int mount_fd,
			      struct error *err)
{
	/* Of a daemon that was killed meanwhile. */
	overlay_leave_place(s, name);
	if (sysio_mkdirat(s->config.root_fd, name, 0700) < 0)
		return error_set(err, -errno, "make the directory %s", name);
	if (sysio_move_mount(mount_fd, "", s->config.root_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_set(err, -errno, "attach a mount to %s", name);
	return 0;
}

/* Before Linux 6.15 an overlay takes no mount that is attached nowhere. It holds copies of them, so
 * that they lie in this process's tree for the length of the call alone. */
static int overlay_mount_attached(struct image_store *s, struct overlay_form *form,
				  const struct overlay_base *base, const struct isolate_ids *ids,
				  struct error *err)
{
	int r = overlay_take_place(s, overlay_places[0], base->mount_fd, err);

	if (r == 0 && base->upper_fd >= 0)
		r = overlay_take_place(s, overlay_places[1], base->upper_fd, err);
	if (r == 0)
		r = isolate_ids_enter(ids, err);
	if (r == 0) {
		r = overlay_mount_in(s, form, base->layers_fd, err);
		isolate_ids_leave(ids);
	}
	for (size_t i = 0; i < ARRAY_SIZE(overlay_places); i++)
		overlay_leave_place(s, overlay_places[i]);
	return r;
}

static int overlay_mount_mapped(struct image_store *s, struct overlay_form *form,
				const struct isolate_ids *ids, struct error *err)
{
	_cleanup_(overlay_base_done) struct overlay_base base = {
		.user_fd = -1, .mount_fd = -1, .layers_fd = -1, .lower_fd = -1, .upper_fd = -1
	};
	int r = overlay_base_open(&base, s, form->id, form->lower_fd, ids, err);

	if (r == 0)
		r = isolate_ids_enter(ids, err);
	if (r < 0)
		return r;
	form->lower_fd = base.lower_fd;
	form->upper_fd = base.upper_fd;
	r = s->attaches_ids ? -EINVAL : overlay_mount_in(s, form, base.layers_fd, err);
	isolate_ids_leave(ids);
	if (r != -EINVAL)
		return r;
	s->attaches_ids = true;
	/* The places are made with the node's ids, the overlay with those. */
	return overlay_mount_attached(s, form, &base, ids, err);
}

int overlay_mount(struct image_store *s, const struct image *image,
		  const struct overlay_upper *upper, int lower_fd, const struct isolate_ids *ids,
		  struct error *err)
{
	struct overlay_form form = { .image = image,
				     .id = upper ? upper->place : NULL,
				     .work = upper ? upper->work : NULL,
				     .obeys = upper && upper->obeys,
				     .lower_fd = lower_fd,
				     .upper_fd = -1,
				     .old = s->old_overlay };

	return ids && isolate_ids_are_set(ids) ? overlay_mount_mapped(s, &form, ids, err)
					       : overlay_mount_in(s, &form, s->layers_fd, err);
}

/* -EINVAL before Linux 6.15: the mount is attached nowhere. */
static int overlay_copy_below(int fd, struct error *err)
{
	int copy_fd = sysio_open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	return copy_fd < 0 ? error_set(err, -errno, "copy a mount of the image") : copy_fd;
}

static int overlay_copy_below_attached(struct image_store *s, int mount_fd, int fd,
				       struct error *err)
{
	int r = overlay_take_place(s, overlay_places[0], mount_fd, err);

	if (r == 0)
		r = overlay_copy_below(fd, err);
	overlay_leave_place(s, overlay_places[0]);
	return r;
}

int overlay_below(struct image_store *s, int mount_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open(mount_fd, path, O_PATH | O_CLOEXEC, 0);
	struct error own = ERROR_INIT;
	struct stat st;
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no %.200s in the image", path);
	if (fd < 0)
		return error_set(err, fd, "open %.200s in the image", path);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at %.200s in the image", path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%.200s in the image is neither a directory nor a regular file",
				    path);
	r = overlay_copy_below(fd, &own);
	if (r == -EINVAL)
		return overlay_copy_below_attached(s, mount_fd, fd, err);
	return r < 0 ? error_copy(err, &own) : r;
}

/* An overlay of two directories that are always there, which nobody sees. */
static int overlay_try(void)
{
	_cleanup_fd_ int fs_fd = sysio_fsopen("overlay", FSOPEN_CLOEXEC);
	struct error err = ERROR_INIT;
	int r = fs_fd < 0 ? -errno : overlay_set(fs_fd, "lowerdir", "0:../partial", &err);

	if (r == 0)
		r = overlay_set(fs_fd, "userxattr", NULL, &err);
	if (r < 0)
		return r;
	return sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

static bool overlay_try_mapped(struct image_store *s)
{
	/* Any range that is not the host's. */
	const struct isolate_ids ids = { 65536, 65536, 65536 };
	_cleanup_(overlay_base_done) struct overlay_base base = {
		.user_fd = -1, .mount_fd = -1, .layers_fd = -1, .lower_fd = -1, .upper_fd = -1
	};
	_cleanup_fd_ int cwd_fd = sysio_openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	struct error err = ERROR_INIT;
	int r = cwd_fd < 0 ? -errno : overlay_base_open(&base, s, NULL, -1, &ids, &err);

	if (r == 0 && fchdir(base.layers_fd) < 0)
		r = -errno;
	if (r < 0)
		return false;
	r = overlay_try();
	if (r == -EINVAL && overlay_take_place(s, overlay_places[0], base.mount_fd, &err) == 0)
		r = overlay_try();
	if (fchdir(cwd_fd) < 0)
		log_debug("cannot go back to the working directory", LOG_INT("errno", errno));
	overlay_leave_place(s, overlay_places[0]);
	return r == 0;
}

bool image_store_maps_ids(struct image_store *s)
{
	if (!s->tried_ids)
		s->maps_ids = overlay_try_mapped(s);
	s->tried_ids = true;
	return s->maps_ids;
}
