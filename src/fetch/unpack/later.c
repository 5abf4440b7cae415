/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/later.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/unpack/place.h"

/* A note: this, the path with its NUL, the list. */
struct later_note {
	struct timespec mtime;
	uint32_t path_len; /* with its NUL */
	uint32_t acl_len;
};

int later_add(struct later *l, const char *path, const struct timespec *mtime, const void *acl,
	      size_t acl_len, struct error *err)
{
	struct later_note note = { .mtime = *mtime,
				   .path_len = (uint32_t)strlen(path) + 1,
				   .acl_len = (uint32_t)acl_len };
	const struct iovec parts[] = {
		{ .iov_base = &note, .iov_len = sizeof(note) },
		{ .iov_base = (void *)(uintptr_t)path, .iov_len = note.path_len },
		{ .iov_base = (void *)(uintptr_t)acl, .iov_len = acl_len },
	};

	return notes_add(&l->notes, parts, ARRAY_SIZE(parts), err);
}

static int later_apply(struct later *l, const struct later_note *note, const char *path,
		       const void *acl, struct error *err)
{
	const struct timespec times[2] = { note->mtime, note->mtime };
	_cleanup_(place_done) struct place place = PLACE_INIT;
	_cleanup_fd_ int fd = -1;

	/* It may have been replaced since by something that is no directory. */
	if (place_find(l->root_fd, path, false, &place, NULL) < 0)
		return 0;
	fd = sysio_openat(place.dir_fd < 0 ? l->root_fd : place.dir_fd,
			  place.dir_fd < 0 ? "." : place.name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	/* A file system without such lists is no reason to refuse an image. */
	if (note->acl_len && fsetxattr(fd, "system.posix_acl_default", acl, note->acl_len, 0) < 0 &&
	    errno != EOPNOTSUPP && errno != EINVAL)
		return place_fail(err, -errno, "set the access control list", path);
	if (futimens(fd, times) < 0)
		return place_fail(err, -errno, "set the time", path);
	return 0;
}

static int later_apply_note(void *userdata, const uint8_t *p, size_t len, struct error *err)
{
	struct later *l = userdata;
	struct later_note note;

	(void)len;
	memcpy(&note, p, sizeof(note));
	return later_apply(l, &note, (const char *)p + sizeof(note),
			   p + sizeof(note) + note.path_len, err);
}

int later_run(struct later *l, struct error *err)
{
	return notes_each(&l->notes, later_apply_note, l, err);
}

void later_done(struct later *l)
{
	notes_done(&l->notes);
}
