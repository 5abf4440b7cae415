/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/room.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "image/content/model.h"

#define ROOM_BLOCK 512 /* of st_blocks */
#define ROOM_RESERVE ((uint64_t)256 << 20)
#define ROOM_PART 20
#define ROOM_FLOOR_PART 4
#define ROOM_BALLAST "ballast"
#define ROOM_BALLAST_MAX ((uint64_t)16 << 20)
#define ROOM_BALLAST_PART 8 /* of the reserve */
#define ROOM_PIECE ((uint64_t)1 << 20)

/* Of a small disk only a part is left free where nobody said how much. */
static uint64_t room_reserve_of(const struct image_store *s, const struct statvfs *v)
{
	if (s->config.reserve != IMAGE_RESERVE_USUAL)
		return s->config.reserve;
	return MIN(ROOM_RESERVE, (uint64_t)v->f_blocks * v->f_frsize / ROOM_PART);
}

uint64_t room_reserve(const struct image_store *s)
{
	struct statvfs v = { .f_blocks = 0 };

	(void)fstatvfs(s->config.root_fd, &v);
	return room_reserve_of(s, &v);
}

static bool room_is_enough(uint64_t reserve, uint64_t have, uint64_t need)
{
	return have >= reserve && have - reserve >= need;
}

/* What partial downloads take that nobody holds; with `take` they go. */
static uint64_t room_of_partials(struct image_store *s, bool take)
{
	_cleanup_strv_ char **names = NULL;
	uint64_t n = 0;

	if (fd_list_dir(s->partial_fd, &names) < 0)
		return 0;
	for (size_t i = 0; names && names[i]; i++) {
		struct stat st;

		if (partial_is_held(s, names[i]) ||
		    fstatat(s->partial_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		n += (uint64_t)st.st_blocks * ROOM_BLOCK;
		if (take)
			trash_add(s, s->partial_fd, names[i], NULL);
	}
	return n;
}

int room_find(struct image_store *s, uint64_t need, bool *ret_enough, uint64_t *ret_free,
	      struct error *err)
{
	struct statvfs v;
	uint64_t have, reserve;

	if (fstatvfs(s->config.root_fd, &v) < 0)
		return error_set(err, -errno, "ask how full the disk is");
	have = (uint64_t)v.f_bavail * v.f_frsize;
	reserve = room_reserve_of(s, &v);
	*ret_free = have;
	*ret_enough = room_is_enough(reserve, have, need);
	if (*ret_enough || !room_is_enough(reserve, have + room_of_partials(s, false), need))
		return 0;
	(void)room_of_partials(s, true);
	*ret_enough = true;
	return 0;
}

int room_check(struct image_store *s, uint64_t need, struct error *err)
{
	uint64_t have;
	bool enough;
	int r;

	if (!s->config.reserve)
		return 0;
	r = room_find(s, need, &enough, &have, err);
	if (r < 0 || enough)
		return r;
	return error_refuse(err, ERROR_EXHAUSTED,
			    "the disk of the root directory is nearly full: %.1f MB are needed at "
			    "least and %.1f MB free, of which %.1f MB stay so (images.reserve)",
			    (double)need / 1e6, (double)have / 1e6, (double)room_reserve(s) / 1e6);
}

int image_room_look(const struct image_store *s, struct image_room *ret)
{
	struct statvfs v;

	if (fstatvfs(s->config.root_fd, &v) < 0)
		return -errno;
	ret->free = (uint64_t)v.f_bavail * v.f_frsize;
	ret->reserve = room_reserve_of(s, &v);
	ret->floor = ret->reserve + ret->reserve / ROOM_FLOOR_PART;
	return 0;
}

static uint64_t room_ballast(const struct image_room *room)
{
	return MIN(ROOM_BALLAST_MAX, room->reserve / ROOM_BALLAST_PART);
}

static int room_open_ballast(const struct image_store *s, int flags)
{
	return sysio_openat(s->config.root_fd, ROOM_BALLAST,
			    flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void image_ballast_spend(const struct image_store *s)
{
	_cleanup_fd_ int fd = -1;
	struct image_room room;
	struct stat st;

	if (image_room_look(s, &room) < 0 || room.free >= ROOM_PIECE)
		return;
	fd = room_open_ballast(s, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !st.st_size)
		return;
	if (ftruncate(fd, MAX(st.st_size - (off_t)ROOM_PIECE, 0)) < 0)
		return;
	log_warn("the disk of the root directory is full: room that was put aside is used",
		 LOG_INT("bytes", (int64_t)st.st_size));
}

void image_ballast_restore(const struct image_store *s)
{
	_cleanup_fd_ int fd = -1;
	struct image_room room;
	struct stat st = { .st_size = 0 };
	uint64_t size;

	if (image_room_look(s, &room) < 0)
		return;
	size = room_ballast(&room);
	if (!size || room.free < room.floor + size)
		return;
	if (fstatat(s->config.root_fd, ROOM_BALLAST, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (uint64_t)st.st_size >= size)
		return;
	fd = room_open_ballast(s, O_CREAT);
	/* Where this fails the file is as long as what it has. */
	if (fd >= 0)
		(void)posix_fallocate(fd, 0, (off_t)size);
}

int image_room_check(const struct image_store *s, uint64_t need, struct error *err)
{
	struct image_room room;
	int r = image_room_look(s, &room);

	if (r < 0)
		return error_set(err, r, "ask how full the disk is");
	if (!room.reserve || room_is_enough(room.floor, room.free, need))
		return 0;
	return error_refuse(err, ERROR_EXHAUSTED,
			    "the disk of the root directory is nearly full: %.1f MB are free, and "
			    "containers leave %.1f MB of it (images.reserve)",
			    (double)room.free / 1e6, (double)room.floor / 1e6);
}

int image_containers_fd(const struct image_store *s)
{
	return s->containers_fd;
}
