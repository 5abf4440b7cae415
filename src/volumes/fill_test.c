/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

/* A directory of volumes with "v" in it, and a tree to copy from. */
struct stage {
	char path[64];
	int fd, tree_fd;
};

static void stage_init(struct stage *s)
{
	struct error err = ERROR_INIT;

	(void)str_copy(s->path, sizeof(s->path), "/tmp/nacre-fill-XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mkdirat(s->fd, "tree", 0755), 0);
	s->tree_fd = openat(s->fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(s->tree_fd >= 0);
	CHECK_INT(fill_make(s->fd, "v", &err), 0);
}

static void stage_done(struct stage *s)
{
	(void)fd_close(s->tree_fd);
	(void)fd_close(s->fd);
	CHECK_INT(scratch_remove(s->path), 0);
}

static void stage_put(const struct stage *s, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(s->tree_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

static bool stage_has(const struct stage *s, const char *name)
{
	return faccessat(s->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void is_made_and_opened(void)
{
	struct error err = ERROR_INIT;
	struct stage s;
	struct stat st;
	int fd;

	stage_init(&s);
	CHECK_INT(fstatat(s.fd, "v", &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0700);
	CHECK_INT(fstatat(s.fd, "v/data", &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK_INT(fill_make(s.fd, "v", &err), -EEXIST);
	fd = fill_open(s.fd, "v", &err);
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK_INT(unlinkat(s.fd, "v/data", AT_REMOVEDIR), 0);
	CHECK(fill_open(s.fd, "v", &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	stage_done(&s);
}

static void copies_everything_with_what_belongs_to_it(void)
{
	struct error err = ERROR_INIT;
	struct stat one, other;
	struct stage s;
	int r;

	stage_init(&s);
	CHECK_INT(mkdirat(s.tree_fd, "seed", 0755), 0);
	CHECK_INT(fchmodat(s.tree_fd, "seed", 01711, 0), 0);
	stage_put(&s, "seed/file", "text");
	CHECK_INT(linkat(s.tree_fd, "seed/file", s.tree_fd, "seed/same", 0), 0);
	CHECK_INT(symlinkat("/etc/shadow", s.tree_fd, "seed/link"), 0);
	CHECK_INT(mkfifoat(s.tree_fd, "seed/pipe", 0600), 0);
	CHECK_INT(mkdirat(s.tree_fd, "seed/sub", 0700), 0);
	stage_put(&s, "seed/sub/low", "low");
	r = fill_copy(s.fd, "v", s.tree_fd, "/seed", &err);
	CHECK_STR(err.text, "");
	CHECK_INT(r, 0);
	CHECK_INT(fstatat(s.fd, "v/data", &one, 0), 0);
	CHECK_INT(one.st_mode & 07777, 01711);
	CHECK_INT(fstatat(s.fd, "v/data/file", &one, 0), 0);
	CHECK_INT(fstatat(s.fd, "v/data/same", &other, 0), 0);
	CHECK(one.st_ino == other.st_ino && one.st_nlink == 2);
	CHECK_INT(one.st_mode & 07777, 0640);
	CHECK_INT(fstatat(s.fd, "v/data/link", &one, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(S_ISLNK(one.st_mode));
	CHECK(stage_has(&s, "v/data/pipe") && stage_has(&s, "v/data/sub/low"));
	CHECK(!stage_has(&s, "v/new"));
	/* What is there stays. */
	stage_put(&s, "seed/later", "");
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "/seed", &err), 0);
	CHECK(!stage_has(&s, "v/data/later"));
	stage_done(&s);
}

static void copies_attributes(void)
{
	_cleanup_fd_ int fd = -1;
	struct error err = ERROR_INIT;
	char value[8] = "";
	struct stage s;

	stage_init(&s);
	CHECK_INT(mkdirat(s.tree_fd, "seed", 0755), 0);
	stage_put(&s, "seed/file", "text");
	fd = openat(s.tree_fd, "seed/file", O_RDONLY | O_CLOEXEC);
	if (fsetxattr(fd, "user.colour", "blue", 4, 0) < 0) {
		stage_done(&s);
		SKIP("no user attributes in /tmp");
	}
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "seed", &err), 0);
	(void)fd_close(fd);
	fd = openat(s.fd, "v/data/file", O_RDONLY | O_CLOEXEC);
	CHECK_INT(fgetxattr(fd, "user.colour", value, sizeof(value) - 1), 4);
	CHECK_STR(value, "blue");
	stage_done(&s);
}

static void leaves_it_as_it_was(void)
{
	char deep[256] = "deep";
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	stage_put(&s, "file", "no directory");
	CHECK_INT(symlinkat("loop", s.tree_fd, "loop"), 0);
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "/none", &err), 0);
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "/file", &err), 0);
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "/loop", &err), 0);
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "/../../../../../../etc", &err), 0);
	/* A tree that is too deep: what was copied of it is gone. */
	for (int i = 0; i < 70; i++) {
		CHECK_INT(mkdirat(s.tree_fd, deep, 0755), 0);
		(void)str_printf(deep + strlen(deep), sizeof(deep) - strlen(deep), "/d");
	}
	CHECK(fill_copy(s.fd, "v", s.tree_fd, "/deep", &err) < 0);
	CHECK_INT(err.code, -ELOOP);
	CHECK(!stage_has(&s, "v/new"));
	/* And what a killed daemon has left is no hindrance. */
	CHECK_INT(mkdirat(s.fd, "v/new", 0700), 0);
	CHECK_INT(mkdirat(s.fd, "v/new/data", 0700), 0);
	CHECK_INT(mkdirat(s.tree_fd, "seed", 0750), 0);
	CHECK_INT(fill_copy(s.fd, "v", s.tree_fd, "/seed", &err), 0);
	CHECK(!stage_has(&s, "v/new") && stage_has(&s, "v/data"));
	stage_done(&s);
}

static void parts_stay_in_the_volume(void)
{
	struct error err = ERROR_INIT;
	struct stage s;
	int data_fd, fd;

	stage_init(&s);
	CHECK_INT(mkdirat(s.fd, "v/data/sub", 0755), 0);
	CHECK_INT(symlinkat("/../../etc", s.fd, "v/data/out"), 0);
	CHECK_INT(mkfifoat(s.fd, "v/data/pipe", 0600), 0);
	data_fd = fill_open(s.fd, "v", &err);
	fd = fill_open_below(data_fd, "sub/../sub", &err);
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(fill_open_below(data_fd, "out", &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK(fill_open_below(data_fd, "pipe", &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	fd = fill_open_below(data_fd, "../../..", &err);
	CHECK(fd >= 0 && rootfd_is_below(fd, data_fd) == 1);
	(void)fd_close(fd);
	(void)fd_close(data_fd);
	stage_done(&s);
}

static void owners_change_without_following(void)
{
	struct error err = ERROR_INIT;
	struct stat st;
	struct stage s;
	int fd;

	if (geteuid() != 0)
		SKIP("needs root");
	stage_init(&s);
	CHECK_INT(mkdirat(s.tree_fd, "sub", 0755), 0);
	stage_put(&s, "sub/file", "");
	CHECK_INT(symlinkat(s.path, s.tree_fd, "link"), 0);
	fd = rootfd_point(s.fd, "tree");
	CHECK_INT(fill_chown(fd, 12, 34, &err), 0);
	CHECK_INT(fstatat(s.fd, "tree/sub/file", &st, 0), 0);
	CHECK(st.st_uid == 12 && st.st_gid == 34);
	CHECK_INT(fstatat(s.fd, "tree/link", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK(st.st_uid == 12);
	CHECK_INT(fstat(s.fd, &st), 0);
	CHECK(st.st_uid == 0);
	(void)fd_close(fd);
	fd = rootfd_point(s.fd, "tree/sub/file");
	CHECK_INT(fill_chown(fd, 5, 6, &err), 0);
	CHECK_INT(fstatat(s.fd, "tree/sub/file", &st, 0), 0);
	CHECK(st.st_uid == 5 && st.st_gid == 6);
	(void)fd_close(fd);
	stage_done(&s);
}

UNIT_MAIN({ "is_made_and_opened", is_made_and_opened },
	  { "copies_everything_with_what_belongs_to_it",
	    copies_everything_with_what_belongs_to_it },
	  { "copies_attributes", copies_attributes },
	  { "leaves_it_as_it_was", leaves_it_as_it_was },
	  { "parts_stay_in_the_volume", parts_stay_in_the_volume },
	  { "owners_change_without_following", owners_change_without_following })
