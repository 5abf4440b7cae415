/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/generations.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/tree_list.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static struct {
	char dir[64];
	int own_fd;
} bed;

/* A generation: its directory and at most three things in it. */
static struct tree_item items[4];
static struct tree_list tree = { .items = items };

static void begin(void)
{
	(void)str_copy(bed.dir, sizeof(bed.dir), "/tmp/isolate-generations-XXXXXX");
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mkdtemp(bed.dir) != NULL);
	CHECK_INT(mount("own", bed.dir, "tmpfs", 0, NULL), 0);
	bed.own_fd = open(bed.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(bed.own_fd >= 0);
	items[0].entry =
		(struct tree_entry){ .type = TREE_DIRECTORY, .path = "root", .mode = 0750 };
	tree.n = 1;
}

static void end(void)
{
	bed.own_fd = fd_close(bed.own_fd);
	CHECK_INT(umount2(bed.dir, MNT_DETACH), 0);
	CHECK_INT(scratch_remove(bed.dir), 0);
}

static void add(const char *name, char *text)
{
	items[tree.n].data = (uint8_t *)text;
	items[tree.n++].entry = (struct tree_entry){ .type = text ? TREE_FILE : TREE_DIRECTORY,
						     .path = name,
						     .mode = text ? 0440 : 0700,
						     .uid = 3,
						     .gid = 4,
						     .size = text ? strlen(text) : 0 };
}

static int put(uint64_t *ret, struct error *err)
{
	*err = (struct error)ERROR_INIT;
	return generations_put(bed.own_fd, "v0", &tree, ret, err);
}

static void put_well(uint64_t expected)
{
	struct error err;
	uint64_t number = 0;

	if (put(&number, &err) == 0)
		CHECK_INT(number, expected);
	CHECK_STR(err.text, "");
}

static void is(const char *name, const char *expected)
{
	_cleanup_fd_ int fd = generations_open(bed.own_fd, "v0");
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = rootfd_read(fd, name, 100, &b);

	if (!expected)
		CHECK_INT(r, -ENOENT);
	else if (r == 0)
		CHECK(b.len == strlen(expected) && memcmp(buf_data(&b), expected, b.len) == 0);
	else
		CHECK(r == -ENOMEM);
}

static void changes_as_a_whole(void)
{
	char one[] = "one", two[] = "two";
	struct statfs fs;
	struct stat st;
	int fd;

	begin();
	CHECK(!generations_has(bed.own_fd, "v0"));
	add("root/a", one);
	add("root/in", NULL);
	add("root/in/b", one);
	put_well(1);
	is("a", "one");
	is("in/b", "one");
	is("..data/a", "one");
	fd = generations_open(bed.own_fd, "v0");
	CHECK_INT(fstat(fd, &st), 0);
	CHECK_INT(st.st_mode, S_IFDIR | 0750);
	CHECK_INT(fstatat(fd, "a", &st, 0), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0440);
	CHECK_INT(st.st_uid, 3);
	CHECK_INT(st.st_gid, 4);
	/* In memory, with a limit. */
	CHECK_INT(fstatfs(fd, &fs), 0);
	CHECK_INT(fs.f_type, 0x01021994);
	CHECK_INT(fs.f_blocks * (uint64_t)fs.f_bsize, GENERATIONS_BYTES);

	tree.n = 1;
	add("root/a", two);
	add("root/c", two);
	put_well(2);
	is("a", "two");
	is("c", "two");
	is("in/b", NULL);
	/* For who has just followed the link. */
	is("..g1/in/b", "one");
	generations_retire(bed.own_fd, "v0", 1);
	is("..g1/a", "one");
	generations_retire(bed.own_fd, "v0", 99);
	is("..g1/a", NULL);
	is("..g2/a", "two");
	CHECK_INT(fstatat(fd, "in", &st, AT_SYMLINK_NOFOLLOW), -1);
	(void)fd_close(fd);
	end();
}

/* What a program that ended in the middle has left is not in the way. */
static void goes_on_behind_a_crash(void)
{
	char one[] = "one";
	int fd;

	begin();
	add("root/a", one);
	put_well(1);
	fd = generations_open(bed.own_fd, "v0");
	CHECK_INT(mkdirat(fd, "..g2", 0700), 0);
	CHECK_INT(mkdirat(fd, "..g2/a", 0700), 0);
	CHECK_INT(symlinkat("..g2", fd, "..next"), 0);
	(void)fd_close(fd);
	put_well(2);
	is("a", "one");
	end();
}

/* More than there is room for: the generation before stays. */
static void keeps_what_was_there(void)
{
	char one[] = "one", *big = calloc(1, GENERATIONS_BYTES + 1);
	struct error err;
	uint64_t number = 0;

	begin();
	add("root/a", one);
	put_well(1);
	if (big) {
		memset(big, 'x', GENERATIONS_BYTES);
		add("root/b", big);
		CHECK(put(&number, &err) < 0);
		CHECK_INT(number, 0);
	}
	is("a", "one");
	is("b", NULL);
	is("..g2/a", NULL);
	/* Room that older ones take is made. */
	tree.n = 1;
	if (big) {
		big[GENERATIONS_BYTES / 2] = '\0';
		add("root/b", big);
		put_well(2);
		put_well(3);
		is("..g1/a", NULL);
	}
	free(big);
	end();
}

static void refuses_what_cannot_be(void)
{
	static const char *const names[] = { "", "a/b" };
	char one[] = "one";
	struct error err;
	uint64_t number = 0;

	begin();
	items[0].entry.path = "root/x";
	CHECK(put(&number, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	tree.n = 0;
	CHECK(put(&number, &err) < 0);
	items[0].entry.path = "root";
	tree.n = 1;
	add("root/../../a", one);
	CHECK(put(&number, &err) < 0);
	is("..g1/a", NULL);
	tree.n = 1;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		CHECK(generations_put(bed.own_fd, names[i], &tree, &number, &err) < 0);
	CHECK(!generations_has(bed.own_fd, "a/b"));
	CHECK_INT(number, 0);
	end();
}

UNIT_MAIN({ "changes_as_a_whole", changes_as_a_whole },
	  { "goes_on_behind_a_crash", goes_on_behind_a_crash },
	  { "keeps_what_was_there", keeps_what_was_there },
	  { "refuses_what_cannot_be", refuses_what_cannot_be })
