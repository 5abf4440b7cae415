/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static char path[64];
static int root_fd;

static void bed_open(void)
{
	(void)str_copy(path, sizeof(path), "/tmp/nacre-tree-XXXXXX");
	CHECK(mkdtemp(path) != NULL);
	root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root_fd >= 0);
	(void)umask(022);
}

static void bed_close(void)
{
	root_fd = fd_close(root_fd);
	CHECK_INT(scratch_remove(path), 0);
}

static void put(const char *name, const char *text, mode_t mode)
{
	_cleanup_fd_ int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
	CHECK_INT(fchmod(fd, mode), 0);
}

static void is(const char *name, const char *expected)
{
	struct buf b = BUF_INIT;
	char *text;

	CHECK_INT(fd_read_file(root_fd, name, 1 << 20, &b), 0);
	text = buf_take_str(&b);
	CHECK_STR(text ? text : "", expected);
	free(text);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	return fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : st.st_mode;
}

static int copy(const char *from, const char *to, struct error *err)
{
	_cleanup_(tree_source_freep) struct tree_source *source = NULL;
	_cleanup_(tree_sink_freep) struct tree_sink *sink = NULL;
	struct tree_entry e;
	char data[100];
	ssize_t n;
	int r;

	*err = (struct error)ERROR_INIT;
	r = tree_source_open(&source, root_fd, from, "root", 0, err);
	if (r == 0)
		r = tree_sink_open(&sink, root_fd, to, err);
	while (r >= 0) {
		r = tree_source_next(source, &e, err);
		if (r == 0)
			return tree_sink_finish(sink, err);
		if (r > 0 && e.type != TREE_OTHER)
			r = tree_sink_entry(sink, &e, true, err);
		while (r >= 0 && e.type == TREE_FILE) {
			n = tree_source_read(source, data, sizeof(data), err);
			if (n <= 0)
				break;
			r = tree_sink_write(sink, data, (size_t)n, err);
		}
	}
	return r;
}

static void copies(void)
{
	char big[1000];
	struct error err;

	bed_open();
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	CHECK_INT(mkdirat(root_fd, "from", 0750), 0);
	CHECK_INT(mkdirat(root_fd, "from/inner", 0700), 0);
	put("from/inner/big", big, 04755);
	put("from/empty", "", 0444);
	CHECK_INT(symlinkat("/etc/passwd", root_fd, "from/link"), 0);
	CHECK_INT(mkfifoat(root_fd, "from/fifo", 0600), 0);

	CHECK_INT(copy("from", "to", &err), 0);
	CHECK_STR(err.text, "");
	is("to/inner/big", big);
	is("to/empty", "");
	CHECK_INT(mode_of("to"), S_IFDIR | 0750);
	CHECK_INT(mode_of("to/inner/big"), S_IFREG | 04755);
	CHECK_INT(mode_of("to/empty"), S_IFREG | 0444);
	CHECK_INT(mode_of("to/link") & S_IFMT, S_IFLNK);
	CHECK_INT(mode_of("to/fifo"), S_IFIFO | 0600);
	/* Again: now the place is a directory, so the tree goes into it. */
	CHECK_INT(copy("/from/inner", "to/", &err), 0);
	is("to/inner/big", big);
	CHECK_INT(copy("from/inner/big", "to/empty", &err), 0);
	is("to/empty", big);
	bed_close();
}

static void links_stay_inside(void)
{
	struct error err;

	bed_open();
	CHECK_INT(mkdirat(root_fd, "d", 0755), 0);
	put("file", "new", 0644);
	put("d/passwd", "old", 0644);
	/* A link in the place of the file is replaced, not followed. */
	CHECK_INT(symlinkat("passwd", root_fd, "d/file"), 0);
	CHECK_INT(copy("file", "d", &err), 0);
	CHECK_INT(mode_of("d/file") & S_IFMT, S_IFREG);
	is("d/passwd", "old");
	/* An absolute one on the way begins at the root. */
	CHECK_INT(symlinkat("/d", root_fd, "there"), 0);
	CHECK_INT(copy("file", "there/second", &err), 0);
	is("d/second", "new");
	CHECK_INT(symlinkat("/tmp", root_fd, "out"), 0);
	CHECK_INT(copy("file", "out/third", &err), -ENOENT);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK_INT(copy("../../../../../../file", "d/up", &err), 0);
	bed_close();
}

static int add(struct tree_sink *s, const char *name, enum tree_type type, const char *target,
	       struct error *err)
{
	const struct tree_entry e = { .type = type, .path = name, .mode = 0755, .target = target };

	*err = (struct error)ERROR_INIT;
	return tree_sink_entry(s, &e, false, err);
}

static void sink_refuses(void)
{
	static const char *const bad[] = { "",   "/x",   "x/",    "x//y", ".",
					   "..", "x/..", "x/./y", "../x" };
	_cleanup_(tree_sink_freep) struct tree_sink *s = NULL;
	struct error err = ERROR_INIT;
	char deep[2 * TREE_DEPTH_MAX + 8] = "x";

	bed_open();
	CHECK_INT(tree_sink_open(&s, root_fd, "/", &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(add(s, bad[i], TREE_FILE, NULL, &err), -EINVAL);
		CHECK_INT(err.kind, ERROR_INVALID);
	}
	for (int i = 0; i < TREE_DEPTH_MAX + 1; i++)
		memcpy(deep + 1 + 2 * i, "/x", 3);
	CHECK_INT(add(s, deep, TREE_DIRECTORY, NULL, &err), -EINVAL);
	CHECK(strstr(err.text, "deeper"));
	CHECK_INT(add(s, "no/x", TREE_FILE, NULL, &err), -ENOENT);
	CHECK_INT(add(s, "l", TREE_LINK, "", &err), -EINVAL);
	CHECK_INT(add(s, "l", TREE_OTHER, NULL, &err), -EINVAL);
	CHECK_INT(tree_sink_write(s, "x", 1, &err), -EINVAL);
	/* A link that an entry has made leads no other one out. */
	CHECK_INT(add(s, "l", TREE_LINK, "/tmp", &err), 0);
	CHECK(add(s, "l/x", TREE_FILE, NULL, &err) < 0);
	CHECK(add(s, "l", TREE_DIRECTORY, NULL, &err) < 0);
	CHECK_INT(add(s, "d", TREE_DIRECTORY, NULL, &err), 0);
	CHECK_INT(add(s, "d", TREE_DIRECTORY, NULL, &err), 0);
	/* What was begun and not finished leaves nothing. */
	CHECK_INT(add(s, "d/f", TREE_FILE, NULL, &err), 0);
	CHECK_INT(tree_sink_write(s, "x", 1, &err), 0);
	s = tree_sink_free(s);
	CHECK_INT(unlinkat(root_fd, "d", AT_REMOVEDIR), 0);
	bed_close();
}

static void depth(void)
{
	_cleanup_(tree_source_freep) struct tree_source *s = NULL;
	_cleanup_fd_ int fd = -1;
	struct error err = ERROR_INIT;
	struct tree_entry e;
	int r = 1;
	int n = 0;

	bed_open();
	fd = fd_copy(root_fd);
	for (int i = 0; i < TREE_DEPTH_MAX + 1; i++) {
		int next;

		CHECK_INT(mkdirat(fd, "x", 0700), 0);
		next = openat(fd, "x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)fd_close(fd);
		fd = next;
	}
	CHECK_INT(tree_source_open(&s, root_fd, "x", "", 0, &err), 0);
	for (; r > 0; n++)
		r = tree_source_next(s, &e, &err);
	CHECK_INT(n, TREE_DEPTH_MAX + 1);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	bed_close();
}

/* Through a source that tells of hard links and holes. */
static int copy_exact(const char *from, const char *to, const char *root, struct error *err)
{
	_cleanup_(tree_source_freep) struct tree_source *source = NULL;
	_cleanup_(tree_sink_freep) struct tree_sink *sink = NULL;
	struct tree_entry e;
	char data[1000];
	ssize_t n = 0;
	int r;

	*err = (struct error)ERROR_INIT;
	r = tree_source_open(&source, root_fd, from, ".", TREE_EXACT, err);
	if (r == 0)
		r = tree_sink_open(&sink, root_fd, to, err);
	if (r == 0 && root)
		r = tree_sink_set_root(sink, root);
	while (r >= 0) {
		r = tree_source_next(source, &e, err);
		if (r == 0)
			return tree_sink_finish(sink, err);
		if (r > 0)
			r = tree_sink_entry(sink, &e, true, err);
		while (r >= 0 && e.type == TREE_FILE) {
			n = tree_source_read(source, data, sizeof(data), err);
			if (n <= 0)
				break;
			r = tree_sink_write(sink, data, (size_t)n, err);
		}
	}
	return r;
}

static void hard_links_and_holes(void)
{
	_cleanup_fd_ int fd = -1;
	struct error err;
	struct stat a, b;
	char text[8] = "";

	bed_open();
	CHECK_INT(mkdirat(root_fd, "from", 0755), 0);
	CHECK_INT(mkdirat(root_fd, "from/in", 0755), 0);
	put("from/a", "text", 0644);
	CHECK_INT(linkat(root_fd, "from/a", root_fd, "from/in/b", 0), 0);
	put("from/holes", "", 0644);
	fd = openat(root_fd, "from/holes", O_RDWR | O_CLOEXEC);
	CHECK_INT(ftruncate(fd, (off_t)1 << 33), 0);
	CHECK_INT(pwrite(fd, "x", 1, 1 << 20), 1);
	CHECK_INT(pwrite(fd, "yz", 2, (off_t)1 << 32), 2);
	CHECK_INT(copy_exact("from", "to", NULL, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(fstatat(root_fd, "to/a", &a, 0), 0);
	CHECK_INT(fstatat(root_fd, "to/in/b", &b, 0), 0);
	CHECK(a.st_ino == b.st_ino && a.st_nlink == 2);
	is("to/in/b", "text");
	(void)fd_close(fd);
	fd = openat(root_fd, "to/holes", O_RDONLY | O_CLOEXEC);
	CHECK_INT(fstat(fd, &a), 0);
	CHECK(a.st_size == (off_t)1 << 33 && a.st_blocks < 1000);
	CHECK_INT(pread(fd, text, 1, 1 << 20), 1);
	CHECK_INT(pread(fd, text + 1, 3, (off_t)1 << 32), 3);
	CHECK_STR(text, "xyz");
	/* Over what is there, the same again: nothing is left beside it. */
	CHECK_INT(copy_exact("from/.", "to", NULL, &err), 0);
	CHECK_INT(unlinkat(root_fd, "to/a", 0), 0);
	CHECK_INT(unlinkat(root_fd, "to/in/b", 0), 0);
	CHECK_INT(unlinkat(root_fd, "to/in", AT_REMOVEDIR), 0);
	CHECK_INT(unlinkat(root_fd, "to/holes", 0), 0);
	CHECK_INT(unlinkat(root_fd, "to", AT_REMOVEDIR), 0);
	bed_close();
}

static void top_is_dressed_where_that_is_asked_for(void)
{
	const struct tree_entry top = { .type = TREE_DIRECTORY, .path = ".", .mode = 02750 };
	_cleanup_(tree_sink_freep) struct tree_sink *sink = NULL;
	struct error err = ERROR_INIT;
	struct stat st;

	bed_open();
	CHECK_INT(mkdirat(root_fd, "to", 0700), 0);
	for (mode_t wanted = 0700; wanted != 0; wanted = wanted == 0700 ? top.mode : 0) {
		CHECK_INT(tree_sink_open(&sink, root_fd, "/to/.", &err), 0);
		if (wanted == top.mode)
			tree_sink_dress_top(sink);
		CHECK_INT(tree_sink_entry(sink, &top, false, &err), 0);
		sink = tree_sink_free(sink);
		CHECK_INT(fstatat(root_fd, "to", &st, 0), 0);
		CHECK_INT(st.st_mode & 07777, wanted);
	}
	bed_close();
}

/* What the entries call the root of the tree is not asked. */
static void root_has_the_name_that_was_given(void)
{
	struct error err;

	bed_open();
	CHECK_INT(mkdirat(root_fd, "from", 0755), 0);
	CHECK_INT(mkdirat(root_fd, "to", 0755), 0);
	put("from/x", "new", 0644);
	CHECK_INT(copy_exact("from", "to", "other", &err), 0);
	is("to/other/x", "new");
	CHECK_INT(copy_exact("from", "to", ".", &err), 0);
	is("to/x", "new");
	CHECK_INT(copy_exact("from/x", "to", "y", &err), 0);
	is("to/y", "new");
	CHECK_INT(copy_exact("from/.", "to", "y", &err), -EBUSY);
	bed_close();
}

static void destination(void)
{
	struct error err;

	bed_open();
	CHECK_INT(mkdirat(root_fd, "from", 0755), 0);
	CHECK_INT(mkdirat(root_fd, "dir", 0755), 0);
	put("file", "new", 0644);
	put("old", "old", 0644);
	CHECK_INT(symlinkat("/../dir", root_fd, "to-dir"), 0);
	CHECK_INT(symlinkat("../../old", root_fd, "dir/to-old"), 0);
	CHECK_INT(symlinkat("dir/new", root_fd, "to-new"), 0);
	CHECK_INT(symlinkat("round", root_fd, "round"), 0);
	CHECK_INT(copy("file", "to-dir", &err), 0);
	is("dir/file", "new");
	CHECK_INT(copy("file", "dir/to-old", &err), 0);
	is("old", "new");
	CHECK_INT(copy("file", "to-new", &err), 0);
	is("dir/new", "new");
	CHECK_INT(copy("file", "round", &err), -ELOOP);
	CHECK_INT(copy("from", "file", &err), -EBUSY);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_INT(copy("file", "absent/", &err), -ENOENT);
	CHECK_INT(copy("from", "absent/", &err), 0);
	CHECK_INT(mode_of("absent") & S_IFMT, S_IFDIR);
	CHECK_INT(copy("file", "old/", &err), -EBUSY);
	bed_close();
}

static void kernels_files(void)
{
	_cleanup_(tree_source_freep) struct tree_source *s = NULL;
	_cleanup_fd_ int slash_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct error err = ERROR_INIT;
	struct tree_sink *sink = NULL;
	struct tree_entry e;

	CHECK_INT(tree_source_open(&s, slash_fd, "/proc/self/status", "", 0, &err), 0);
	CHECK_INT(tree_source_next(s, &e, &err), 1);
	CHECK_INT(e.type, TREE_OTHER);
	CHECK(e.reason && strstr(e.reason, "kernel"));
	CHECK_INT(tree_source_next(s, &e, &err), 0);
	CHECK(tree_sink_open(&sink, slash_fd, "/proc/sys/kernel/hostname", &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_INT(tree_source_open(&s, slash_fd, "tmp/..", "", 0, &err), -EINVAL);
	CHECK_INT(tree_source_open(&s, slash_fd, "/no/such", "", 0, &err), -ENOENT);
}

UNIT_MAIN({ "copies", copies }, { "links stay inside", links_stay_inside },
	  { "sink refuses", sink_refuses }, { "depth", depth },
	  { "hard links and holes", hard_links_and_holes },
	  { "top is dressed where that is asked for", top_is_dressed_where_that_is_asked_for },
	  { "root has the name that was given", root_has_the_name_that_was_given },
	  { "destination", destination }, { "kernel's files", kernels_files })
