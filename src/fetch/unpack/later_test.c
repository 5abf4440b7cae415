/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/later.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

struct fixture {
	char path[64];
	int root_fd;
	struct later later;
};

static void fixture_init(struct fixture *f)
{
	(void)str_copy(f->path, sizeof(f->path), "/tmp/nacre-later-XXXXXX");
	if (!mkdtemp(f->path))
		abort();
	f->root_fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->root_fd < 0)
		abort();
	f->later = (struct later)LATER_INIT(f->root_fd);
}

static void fixture_done(struct fixture *f)
{
	later_done(&f->later);
	f->root_fd = fd_close(f->root_fd);
	CHECK(scratch_remove(f->path) == 0);
}

static time_t time_of(const struct fixture *f, const char *name)
{
	struct stat st;

	return fstatat(f->root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mtime : -1;
}

static void note(struct fixture *f, const char *path, time_t when)
{
	const struct timespec mtime = { .tv_sec = when };
	struct error err = ERROR_INIT;

	CHECK(later_add(&f->later, path, &mtime, NULL, 0, &err) == 0);
}

static void sets_times_of_directories_alone(void)
{
	_cleanup_(fixture_done) struct fixture f;
	struct error err = ERROR_INIT;

	fixture_init(&f);
	CHECK(mkdirat(f.root_fd, "a", 0700) == 0 && mkdirat(f.root_fd, "a/b", 0700) == 0);
	CHECK(symlinkat("a", f.root_fd, "link") == 0);
	note(&f, "a", 1000);
	note(&f, "a/b", 2000);
	note(&f, "link", 3000);
	note(&f, "gone/away", 4000);
	note(&f, "", 5000);
	CHECK(later_run(&f.later, &err) == 0);
	CHECK(time_of(&f, "a") == 1000);
	CHECK(time_of(&f, "a/b") == 2000);
	CHECK(time_of(&f, "link") > 5000);
	CHECK(time_of(&f, ".") == 5000);
}

/* More than memory takes: all of them are applied, in order, and no file of it is left. */
static void keeps_no_more_than_its_share_in_memory(void)
{
	_cleanup_(fixture_done) struct fixture f;
	char names[][8] = { "a", "b", "c" };
	struct error err = ERROR_INIT;
	time_t when = 1;

	fixture_init(&f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(mkdirat(f.root_fd, names[i], 0700) == 0);
	for (; f.later.notes.n_file < 3 * NOTES_MEMORY && when < 1000000; when++) {
		note(&f, names[when % 3], when);
		if (f.later.notes.buf.len > NOTES_MEMORY || unit_failures)
			break;
	}
	CHECK(f.later.notes.buf.len <= NOTES_MEMORY);
	CHECK(later_run(&f.later, &err) == 0);
	for (time_t i = 1; i <= 3; i++)
		CHECK(time_of(&f, names[(when - i) % 3]) == when - i);
}

static void sets_default_lists(void)
{
	static const uint8_t acl[] = { 2,    0,    0, 0, 1,    0,    7,    0,    0xff, 0xff,
				       0xff, 0xff, 4, 0, 5,    0,    0xff, 0xff, 0xff, 0xff,
				       0x20, 0,    5, 0, 0xff, 0xff, 0xff, 0xff };
	_cleanup_(fixture_done) struct fixture f;
	const struct timespec mtime = { .tv_sec = 7 };
	struct error err = ERROR_INIT;
	uint8_t found[64];

	fixture_init(&f);
	if (fsetxattr(f.root_fd, "system.posix_acl_default", acl, sizeof(acl), 0) < 0)
		SKIP("/tmp has no access control lists");
	(void)fremovexattr(f.root_fd, "system.posix_acl_default");
	CHECK(later_add(&f.later, "", &mtime, acl, sizeof(acl), &err) == 0);
	CHECK(later_run(&f.later, &err) == 0);
	CHECK(fgetxattr(f.root_fd, "system.posix_acl_default", found, sizeof(found)) ==
	      sizeof(acl));
	CHECK(memcmp(found, acl, sizeof(acl)) == 0);
	CHECK(time_of(&f, ".") == 7);
}

UNIT_MAIN({ "sets times of directories alone", sets_times_of_directories_alone },
	  { "keeps no more than its share in memory", keeps_no_more_than_its_share_in_memory },
	  { "sets default lists", sets_default_lists })
