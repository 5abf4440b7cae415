/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "unit.h"

#define BASE_BYTES (1 << 20)

static char place[] = "/tmp/nacre-disks-XXXXXX";
static char source[64];

/* A root directory with a base beside it; -1 where that cannot be. */
static int open_place(struct disk_base *base)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int root_fd = -1, fd = -1;

	CHECK(mkdtemp(place) != NULL);
	(void)str_printf(source, sizeof(source), "%s/base", place);
	root_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(root_fd, "base", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, BASE_BYTES) == 0);
	CHECK(disks_prepare(root_fd, &err) == 0 || err.code == -ENOMEM);
	if (disk_open_base(base, source, "", &err) < 0)
		CHECK(err.code == -ENOMEM);
	return TAKE_FD(root_fd);
}

static void remove_place(struct disk_base *base)
{
	_cleanup_fd_ int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	base->fd = fd_close(base->fd);
	CHECK_INT(rootfd_remove_tree(fd, place + strlen("/tmp/")), 0);
	memcpy(place + strlen(place) - 6, "XXXXXX", 6);
}

static bool lists_as(int root_fd, const char *name, bool busy)
{
	struct disk_kept *all = NULL;
	struct error err = ERROR_INIT;
	size_t n = 0;
	bool is;

	if (disks_list(root_fd, &all, &n, &err) < 0)
		return err.code == -ENOMEM;
	is = n == 1 && str_eq(all[0].name, name) && all[0].busy == busy &&
	     all[0].bytes == BASE_BYTES;
	free(all);
	return is;
}

static void has_one_machine(void)
{
	struct disk_base base = DISK_BASE_NONE;
	_cleanup_fd_ int root_fd = open_place(&base);
	struct error err = ERROR_INIT;
	int fd = -1, other;

	if (base.fd >= 0)
		fd = disk_open_kept(root_fd, "data", source, &base, 0, &err);
	if (fd >= 0) {
		CHECK(lists_as(root_fd, "data", true));
		other = disk_open_kept(root_fd, "data", source, &base, 0, &err);
		CHECK(other < 0 && (err.kind == ERROR_PRECONDITION || err.code == -ENOMEM));
		err = (struct error)ERROR_INIT;
		CHECK(disk_remove(root_fd, "data", &err) < 0);
		CHECK(err.kind == ERROR_PRECONDITION || err.code == -ENOMEM);
		(void)fd_close(fd);
		CHECK(lists_as(root_fd, "data", false));
		err = (struct error)ERROR_INIT;
		CHECK(disk_remove(root_fd, "data", &err) == 0 || err.code == -ENOMEM);
	} else {
		CHECK(err.code == -ENOMEM || base.fd < 0);
	}
	remove_place(&base);
}

/* Who looks holds nothing by which a machine could be refused. */
static void is_looked_at_without_a_lock(void)
{
	struct disk_base base = DISK_BASE_NONE;
	_cleanup_fd_ int root_fd = open_place(&base);
	struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct error err = ERROR_INIT;
	_cleanup_fd_ int shared = -1;
	int fd = -1;

	if (base.fd >= 0)
		fd = disk_open_kept(root_fd, "data", source, &base, 0, &err);
	fd = fd_close(fd);
	/* A reader's lock would be in the way of the look, had that to take one. */
	shared = openat(root_fd, "disks/data/data", O_RDWR | O_CLOEXEC);
	if (shared >= 0) {
		CHECK_INT(fcntl(shared, F_OFD_SETLK, &all), 0);
		CHECK(lists_as(root_fd, "data", true));
		all.l_type = F_UNLCK;
		CHECK_INT(fcntl(shared, F_OFD_SETLK, &all), 0);
		CHECK(lists_as(root_fd, "data", false));
	}
	remove_place(&base);
}

/* A disk without its data, and what never was one. */
static void tells_what_is_no_disk(void)
{
	struct disk_base base = DISK_BASE_NONE;
	_cleanup_fd_ int root_fd = open_place(&base);
	_cleanup_strv_ char **names = NULL;
	struct error err = ERROR_INIT;

	if (base.fd >= 0)
		(void)fd_close(disk_open_kept(root_fd, "data", source, &base, 0, &err));
	if (!err.code && disks_strangers(root_fd, &names, &err) == 0) {
		CHECK(!names || !names[0]);
		strv_free(TAKE_PTR(names));
		CHECK_INT(mkdirat(root_fd, "disks/.half", 0700), 0);
		CHECK_INT(unlinkat(root_fd, "disks/data/data", 0), 0);
		if (disks_strangers(root_fd, &names, &err) == 0) {
			CHECK_INT(strv_len(names), 2);
			CHECK(strv_len(names) == 2 && strcmp(names[0], names[1]) != 0);
		}
	}
	CHECK(!err.code || err.code == -ENOMEM);
	remove_place(&base);
}

static void sweeps_what_was_half_made(void)
{
	struct disk_base base = DISK_BASE_NONE;
	_cleanup_fd_ int root_fd = open_place(&base);
	struct error err = ERROR_INIT;
	struct stat st;

	if (base.fd >= 0) {
		(void)fd_close(disk_open_kept(root_fd, "kept", source, &base, 0, &err));
		CHECK_INT(mkdirat(root_fd, "disks/.0123456789abcdef", 0700), 0);
		CHECK_INT(mkdirat(root_fd, "disks/.0123456789abcdef/data", 0700), 0);
		err = (struct error)ERROR_INIT;
		if (disks_prepare(root_fd, &err) == 0) {
			CHECK(fstatat(root_fd, "disks/.0123456789abcdef", &st, 0) < 0 ||
			      failmalloc_has_failed);
			CHECK(lists_as(root_fd, "kept", false) || failmalloc_has_failed);
		}
	}
	remove_place(&base);
}

UNIT_MAIN({ "has one machine", has_one_machine },
	  { "is looked at without a lock", is_looked_at_without_a_lock },
	  { "tells what is no disk", tells_what_is_no_disk },
	  { "sweeps what was half made", sweeps_what_was_half_made })
