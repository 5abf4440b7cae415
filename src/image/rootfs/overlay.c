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
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "isolate/disk/erofs_file.h"

#define OVERLAY_VALUE_MAX 255

static int overlay_set(int fs_fd, const char *key, const char *value, struct error *err)
{
	unsigned command = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

	if (sysio_fsconfig(fs_fd, command, key, value, 0) < 0)
		return error_set(err, -errno, "set the overlay's %s", key);
	return 0;
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
		int n = str_printf(value + len, sizeof(value) - len, "%s%" PRId64, len ? ":" : "",
				   image->layers[i - 1]);

		if (n < 0)
			return error_refuse(err, ERROR_UNSUPPORTED,
					    "the kernel cannot join %zu layers (Linux 6.5 can)",
					    image->n_layers);
		len += (size_t)n;
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

static int overlay_set_upper(int fs_fd, const char *id, const char *key, const char *dir,
			     struct error *err)
{
	char value[OVERLAY_VALUE_MAX + 1];

	(void)str_printf(value, sizeof(value), "../containers/%s/%s", id, dir);
	return overlay_set(fs_fd, key, value, err);
}

struct overlay_form {
	const struct image *image;
	const char *id; /* NULL: the layers alone, read-only */
	const char *work;
	int lower_fd; /* -1: directories */
	bool old;     /* for a kernel without lowerdir+ */
};

static int overlay_set_layers(int fs_fd, const struct overlay_form *f, struct error *err)
{
	if (f->lower_fd >= 0)
		return overlay_set_lower(fs_fd, f->lower_fd, err);
	return (f->old ? overlay_set_layers_old : overlay_set_layers_new)(fs_fd, f->image, !f->id,
									  err);
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
		r = overlay_set_upper(fs_fd, id, "upperdir", "upper", err);
	if (r == 0 && id)
		r = overlay_set_upper(fs_fd, id, "workdir", f->work, err);
	/* What the layers say to the overlay is in user.overlay.*; nobody needs a container's
	 * changes after a crash of the machine. */
	if (r == 0)
		r = overlay_set(fs_fd, "userxattr", NULL, err);
	if (r == 0 && id)
		r = overlay_set(fs_fd, "volatile", NULL, err);
	if (r < 0)
		return r;
	if (sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return error_set(err, -errno, "make the overlay");
	if (!id)
		attrs |= MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
	fd = sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? error_set(err, -errno, "mount the overlay") : fd;
}

int overlay_mount(struct image_store *s, const struct image *image, const char *id,
		  const char *work, int lower_fd, struct error *err)
{
	struct overlay_form form = {
		.image = image, .id = id, .work = work, .lower_fd = lower_fd, .old = s->old_overlay
	};
	_cleanup_fd_ int cwd_fd = sysio_openat(AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	struct error fault = ERROR_INIT;
	int fd;

	if (cwd_fd < 0)
		return error_set(err, -errno, "open the working directory");
	if (fchdir(s->layers_fd) < 0)
		return error_set(err, -errno, "go to the layers");
	fd = overlay_mount_form(&form, &fault);
	if (fd == -EINVAL && !form.old && lower_fd < 0) {
		fault = (struct error)ERROR_INIT;
		form.old = true;
		fd = overlay_mount_form(&form, &fault);
		s->old_overlay = fd >= 0;
	}
	if (fchdir(cwd_fd) < 0)
		log_debug("cannot go back to the working directory", LOG_INT("errno", errno));
	return fd < 0 ? error_copy(err, &fault) : fd;
}
