/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/rootfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "unit.h"

/* A directory with a root in it, and beside the root what nobody may reach: "out". */
static char dir_name[] = "rootfd-test-XXXXXX";
static int dir_fd, root_fd;

static void put(int at_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(at_fd, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	CHECK(fd_write_full(fd, text, strlen(text)) == 0);
}

static void begin(void)
{
	memcpy(dir_name + sizeof(dir_name) - 7, "XXXXXX", 6);
	CHECK(mkdtemp(dir_name));
	dir_fd = open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(dir_fd, "root", 0755) == 0);
	CHECK(mkdirat(dir_fd, "out", 0755) == 0);
	put(dir_fd, "out/secret", "secret");
	root_fd = openat(dir_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(root_fd >= 0);
}

static void end(void)
{
	CHECK(faccessat(dir_fd, "out/secret", F_OK, 0) == 0);
	root_fd = fd_close(root_fd);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(rootfd_remove_tree(AT_FDCWD, dir_name), 0);
	CHECK(access(dir_name, F_OK) < 0);
}

static int content(const char *path, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = rootfd_read(root_fd, path, 100, &b);

	if (r < 0)
		return r;
	return b.len == strlen(text) && memcmp(buf_data(&b), text, b.len) == 0 ? 0 : -EBADMSG;
}

static bool there(int at_fd, const char *name)
{
	struct stat st;

	return fstatat(at_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- opening ---- */

static void links_stay_inside(void)
{
	char outside[300];
	char *cwd = getcwd(NULL, 0);

	begin();
	(void)snprintf(outside, sizeof(outside), "%s/%s/out/secret", cwd, dir_name);
	put(root_fd, "file", "inside");
	CHECK(mkdirat(root_fd, "d", 0755) == 0);
	CHECK(symlinkat("/file", root_fd, "absolute") == 0);
	CHECK(symlinkat("../../../../file", root_fd, "d/up") == 0);
	CHECK(symlinkat("d/../absolute", root_fd, "through") == 0);
	CHECK(symlinkat(outside, root_fd, "away") == 0);
	CHECK(symlinkat("../out/secret", root_fd, "beside") == 0);
	CHECK(symlinkat("loop", root_fd, "loop") == 0);
	CHECK(symlinkat("/proc/self/root/etc/passwd", root_fd, "magic") == 0);
	CHECK_INT(content("file", "inside"), 0);
	CHECK_INT(content("/file", "inside"), 0);
	CHECK_INT(content("../../file", "inside"), 0);
	CHECK_INT(content("absolute", "inside"), 0);
	CHECK_INT(content("d/up", "inside"), 0);
	CHECK_INT(content("through", "inside"), 0);
	CHECK_INT(content("away", ""), -ENOENT);
	CHECK_INT(content("beside", ""), -ENOENT);
	CHECK_INT(content("magic", ""), -ENOENT);
	CHECK_INT(content("loop", ""), -ELOOP);
	CHECK_INT(content("", ""), -ENOENT);
	CHECK_INT(content("file/x", ""), -ENOTDIR);
	free(cwd);
	end();
}

/* A link of /proc that leads to any file of this process, in a root that has a /proc. */
static void magic_links_are_refused(void)
{
	_cleanup_fd_ int slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(rootfd_open(slash, "proc/self/root/etc", O_PATH, 0), -ELOOP);
	CHECK_INT(rootfd_open(slash, "proc/self/fd/0", O_RDONLY, 0), -ELOOP);
}

static void only_regular_files_are_opened(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	begin();
	CHECK(mkdirat(root_fd, "d", 0755) == 0);
	CHECK(mkfifoat(root_fd, "fifo", 0644) == 0);
	CHECK_INT(rootfd_open_regular(root_fd, "d"), -EINVAL);
	/* It would wait for a writer for ever. */
	CHECK_INT(rootfd_open_regular(root_fd, "fifo"), -EINVAL);
	if (mknodat(root_fd, "device", S_IFCHR | 0644, makedev(1, 5)) == 0)
		CHECK_INT(rootfd_open_regular(root_fd, "device"), -EINVAL);
	put(root_fd, "file", "0123456789");
	CHECK_INT(rootfd_read(root_fd, "file", 9, &b), -EFBIG);
	CHECK_INT(rootfd_read(root_fd, "file", 10, &b), 0);
	{
		_cleanup_fd_ int fd = rootfd_open_regular(root_fd, "file");

		CHECK_INT(fcntl(fd, F_GETFD), FD_CLOEXEC);
		CHECK_INT(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	}
	end();
}

/* ---- making ---- */

static void makes_what_is_missing(void)
{
	struct stat st;
	int fd;

	begin();
	fd = rootfd_make_dir(root_fd, "/a/b//c/");
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_PATH);
	(void)fd_close(fd);
	CHECK(fstatat(root_fd, "a/b/c", &st, 0) == 0 && st.st_mode == (S_IFDIR | 0755));
	fd = rootfd_make_file(root_fd, "a/x/file");
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(fstatat(root_fd, "a/x/file", &st, 0) == 0 && S_ISREG(st.st_mode));
	fd = rootfd_make_dir(root_fd, "a/b");
	CHECK(fd >= 0);
	(void)fd_close(fd);
	fd = rootfd_make_dir(root_fd, "/");
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK_INT(rootfd_make_file(root_fd, "a/b"), -EISDIR);
	CHECK_INT(rootfd_make_dir(root_fd, "a/x/file"), -ENOTDIR);
	CHECK_INT(rootfd_make_dir(root_fd, "a/x/file/y"), -ENOTDIR);
	end();
}

static void makes_inside_only(void)
{
	char name[300];
	int fd;

	begin();
	CHECK(symlinkat("/real", root_fd, "link") == 0);
	CHECK(symlinkat("../../out", root_fd, "escape") == 0);
	CHECK(symlinkat("nowhere", root_fd, "dangling") == 0);
	CHECK(mkdirat(root_fd, "real", 0755) == 0);
	fd = rootfd_make_dir(root_fd, "link/new");
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(there(root_fd, "real/new"));
	CHECK_INT(rootfd_make_dir(root_fd, "escape/new"), -ENOENT);
	CHECK(!there(dir_fd, "out/new"));
	fd = rootfd_make_dir(root_fd, "../up");
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(there(root_fd, "up") && !there(dir_fd, "up"));
	CHECK_INT(rootfd_make_file(root_fd, "dangling"), -ELOOP);
	CHECK_INT(rootfd_make_dir(root_fd, "dangling"), -ENOTDIR);

	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	CHECK_INT(rootfd_make_dir(root_fd, name), -ENAMETOOLONG);
	name[255] = '\0';
	fd = rootfd_make_dir(root_fd, name);
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(there(root_fd, name));
	end();
}

static void makes_what_links_name(void)
{
	char name[16], to[16];
	int fd;

	begin();
	CHECK(mkdirat(root_fd, "a", 0755) == 0);
	CHECK(symlinkat("b/c", root_fd, "a/file") == 0);
	CHECK(symlinkat("/run", root_fd, "a/run") == 0);
	CHECK(symlinkat("two", root_fd, "one") == 0);
	CHECK(symlinkat("/x/./y", root_fd, "two") == 0);
	CHECK(symlinkat("self", root_fd, "self") == 0);
	CHECK(symlinkat("../../out", root_fd, "escape") == 0);
	fd = rootfd_make_dir_through(root_fd, "escape/new");
	CHECK(fd >= 0 && there(root_fd, "out/new") && !there(dir_fd, "out/new"));
	(void)fd_close(fd);
	CHECK(symlinkat("nowhere/../up", root_fd, "up") == 0);
	fd = rootfd_make_file_through(root_fd, "a/file");
	CHECK(fd >= 0 && there(root_fd, "a/b/c"));
	(void)fd_close(fd);
	fd = rootfd_make_dir_through(root_fd, "/a/run/lock/");
	CHECK(fd >= 0 && there(root_fd, "run/lock"));
	(void)fd_close(fd);
	CHECK_INT(rootfd_make_dir_through(root_fd, "a/file"), -ENOTDIR);
	fd = rootfd_make_dir_through(root_fd, "one/z");
	CHECK(fd >= 0 && there(root_fd, "x/y/z"));
	(void)fd_close(fd);
	CHECK_INT(rootfd_make_file_through(root_fd, "self"), -ELOOP);
	CHECK_INT(rootfd_make_dir_through(root_fd, "up"), -ELOOP);

	/* At the limit, and past it: where the kernel cannot follow, neither do we. */
	for (int i = 0; i < 41; i++) {
		(void)str_printf(name, sizeof(name), "l%d", i);
		(void)str_printf(to, sizeof(to), "l%d", i + 1);
		CHECK(symlinkat(to, root_fd, name) == 0);
	}
	fd = rootfd_make_dir_through(root_fd, "l1");
	CHECK(fd >= 0 && there(root_fd, "l41"));
	(void)fd_close(fd);
	CHECK(unlinkat(root_fd, "l41", AT_REMOVEDIR) == 0);
	CHECK_INT(rootfd_make_dir_through(root_fd, "l0"), -ELOOP);
	end();
}

static void makes_behind_no_link(void)
{
	int fd;

	begin();
	CHECK(mkdirat(root_fd, "a", 0755) == 0);
	CHECK(symlinkat("a", root_fd, "link") == 0 && symlinkat("b", root_fd, "a/nowhere") == 0);
	CHECK(mknodat(root_fd, "a/file", S_IFREG | 0644, 0) == 0);
	fd = rootfd_make_dir_plain(root_fd, "/a//x/./y/");
	CHECK(fd >= 0 && there(root_fd, "a/x/y"));
	(void)fd_close(fd);
	fd = rootfd_make_dir_plain(root_fd, "a");
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "link"), -ELOOP);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "link/new"), -ELOOP);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "a/nowhere"), -ELOOP);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "a/nowhere/new"), -ELOOP);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "a/file"), -ENOTDIR);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "a/file/new"), -ENOTDIR);
	CHECK_INT(rootfd_make_dir_plain(root_fd, "a/new/../new"), -EINVAL);
	CHECK_INT(rootfd_make_dir_plain(root_fd, ""), -ENOENT);
	CHECK(!there(root_fd, "a/b") && !there(root_fd, "a/new/new"));
	end();
}

/* ---- removing ---- */

static void removes_any_kind(void)
{
	char name[256];

	begin();
	CHECK_INT(rootfd_remove_tree(root_fd, "none"), 0);
	CHECK_INT(rootfd_remove_tree(root_fd, "."), -EINVAL);
	CHECK_INT(rootfd_remove_tree(root_fd, ".."), -EINVAL);
	CHECK_INT(rootfd_remove_tree(root_fd, ""), -EINVAL);
	CHECK(mkdirat(root_fd, "t", 0755) == 0);
	CHECK(symlinkat("../../out", root_fd, "t/link") == 0);
	CHECK(symlinkat("../out", root_fd, "toplink") == 0);
	CHECK(mkfifoat(root_fd, "t/fifo", 0644) == 0);
	CHECK(mkdirat(root_fd, "t/closed", 0) == 0);
	put(root_fd, "t/file", "x");
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	put(root_fd, name, "");
	CHECK_INT(rootfd_remove_tree(root_fd, name), 0);
	{
		_cleanup_fd_ int fd = openat(root_fd, "t", O_PATH | O_CLOEXEC);

		put(fd, name, "");
		for (int i = 0; i < 1000; i++) {
			char entry[16];

			(void)snprintf(entry, sizeof(entry), "%d", i);
			CHECK(mkdirat(fd, entry, 0755) == 0);
		}
	}
	CHECK_INT(rootfd_remove_tree(root_fd, "t"), 0);
	CHECK_INT(rootfd_remove_tree(root_fd, "toplink"), 0);
	CHECK(!there(root_fd, "t") && !there(root_fd, "toplink"));
	end();
}

/* Two chains of directories within each other, each level with a file. */
static void make_deep(int at_fd, const char *name, unsigned n_levels)
{
	int fd = fd_copy(at_fd);

	for (unsigned i = 0; i < n_levels; i++) {
		int next;

		CHECK(mkdirat(fd, name, 0755) == 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		(void)close(fd);
		fd = next;
		if (i % 100 == 0)
			put(fd, "file", "x");
	}
	(void)close(fd);
}

static void removes_the_deepest(void)
{
	struct rlimit was, few;

	begin();
	make_deep(root_fd, "t", 10000);
	make_deep(root_fd, "u", 50);
	{
		_cleanup_fd_ int fd = openat(root_fd, "t", O_PATH | O_CLOEXEC);

		make_deep(fd, "branch", 300);
		/* The names that directories get on their way up are taken. */
		CHECK(mkdirat(fd, ".removed-0", 0755) == 0);
		put(fd, ".removed-0/x", "");
		put(fd, ".removed-1", "");
		CHECK(mkdirat(fd, ".removed-2", 0755) == 0);
	}
	CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
	few = was;
	few.rlim_cur = 32;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK_INT(rootfd_remove_tree(root_fd, "t"), 0);
	CHECK_INT(rootfd_remove_tree(root_fd, "u"), 0);
	CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
	CHECK(!there(root_fd, "t") && !there(root_fd, "u"));
	end();
}

static int in_mount_namespace(void)
{
	int at_fd;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	/* The directory by its name again: descriptors from before stand in the old namespace. */
	at_fd = open(dir_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at_fd < 0 || fchdir(at_fd) < 0)
		return 1;
	CHECK(mkdir("root/t", 0755) == 0);
	CHECK(mkdir("root/t/a", 0755) == 0);
	CHECK(mkdir("root/t/a/bind", 0755) == 0);
	/* The same file system, so the device number does not tell. */
	CHECK(mount("out", "root/t/a/bind", NULL, MS_BIND, NULL) == 0);
	CHECK_INT(rootfd_remove_tree(at_fd, "root"), -EXDEV);
	CHECK(access("out/secret", F_OK) == 0);
	CHECK(umount("root/t/a/bind") == 0);
	CHECK(mount("none", "root/t/a/bind", "tmpfs", 0, NULL) == 0);
	CHECK_INT(rootfd_remove_tree(at_fd, "root"), -EXDEV);
	CHECK(umount("root/t/a/bind") == 0);
	put(AT_FDCWD, "root/t/file", "");
	CHECK(mount("out/secret", "root/t/file", NULL, MS_BIND, NULL) == 0);
	CHECK_INT(rootfd_remove_tree(at_fd, "root"), -EBUSY);
	CHECK(umount("root/t/file") == 0);
	CHECK_INT(rootfd_remove_tree(at_fd, "root"), 0);
	return unit_failures ? 1 : 0;
}

/* What security.md A19 asks of every name in /proc that is written to. */
static int beneath_and_no_other_mount(void)
{
	_cleanup_fd_ int at_fd = -1, plain_fd = -1;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	at_fd = openat(AT_FDCWD, dir_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at_fd < 0 || fchdir(at_fd) < 0 || chdir("root") < 0)
		return 1;
	at_fd = fd_close(at_fd);
	at_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdir("over", 0755) == 0 && mkdir("plain", 0755) == 0);
	CHECK(symlink("../out/secret", "up") == 0 && symlink("/etc/passwd", "away") == 0);
	CHECK(mount("none", "over", "tmpfs", 0, NULL) == 0);
	put(at_fd, "plain/file", "x");
	put(at_fd, "over/file", "x");
	plain_fd = rootfd_open_beneath(at_fd, "plain/file", O_RDONLY);
	CHECK(plain_fd >= 0);
	CHECK_INT(rootfd_open_beneath(at_fd, "over/file", O_RDONLY), -EXDEV);
	CHECK_INT(rootfd_open_beneath(at_fd, "up", O_RDONLY), -EXDEV);
	CHECK_INT(rootfd_open_beneath(at_fd, "../out/secret", O_RDONLY), -EXDEV);
	CHECK_INT(rootfd_open_beneath(at_fd, "/plain/file", O_RDONLY), -EXDEV);
	CHECK_INT(rootfd_open_beneath(at_fd, "away", O_RDONLY), -EXDEV);
	CHECK(umount("over") == 0);
	return unit_failures ? 1 : 0;
}

static void in_a_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid;

	begin();
	pid = fork();
	if (pid == 0)
		_exit(fn());
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("# skipped: no mount namespace to be had\n");
	else
		CHECK_INT(status, 0);
	end();
}

static void stops_at_mounts(void)
{
	in_a_child(in_mount_namespace);
}

static void stays_beneath(void)
{
	in_a_child(beneath_and_no_other_mount);
}

static void points_through_no_link(void)
{
	_cleanup_fd_ int fd = -1, below_fd = -1, deep_fd = -1;

	begin();
	CHECK(mkdirat(root_fd, "a", 0755) == 0 && mkdirat(root_fd, "a/b", 0755) == 0);
	CHECK(symlinkat("a", root_fd, "link") == 0 && symlinkat("b", root_fd, "a/end") == 0);
	CHECK(mknodat(root_fd, "a/fifo", S_IFIFO | 0600, 0) == 0);
	fd = rootfd_point(root_fd, "a");
	below_fd = rootfd_point(root_fd, "a/b");
	CHECK(fd >= 0 && below_fd >= 0);
	CHECK_INT(rootfd_point(root_fd, "link/b"), -ELOOP);
	CHECK_INT(rootfd_point(root_fd, "a/end"), -ELOOP);
	CHECK_INT(rootfd_point(root_fd, "/proc/self/cwd"), -ELOOP);
	CHECK_INT(rootfd_point(root_fd, "none"), -ENOENT);
	/* Pointing at it is no act. */
	deep_fd = rootfd_point(root_fd, "a/fifo");
	CHECK(deep_fd >= 0);

	CHECK_INT(rootfd_is_below(below_fd, fd), 1);
	CHECK_INT(rootfd_is_below(fd, fd), 1);
	CHECK_INT(rootfd_is_below(below_fd, root_fd), 1);
	CHECK_INT(rootfd_is_below(fd, below_fd), 0);
	CHECK_INT(rootfd_is_below(root_fd, fd), 0);
	end();
}

/* ---- a file in the place of whatever is there ---- */

static void puts_a_file_over_any_kind(void)
{
	struct stat st;

	begin();
	put(root_fd, "file", "of the image");
	CHECK(linkat(root_fd, "file", root_fd, "other", 0) == 0);
	CHECK(symlinkat("../out/secret", root_fd, "link") == 0);
	CHECK(symlinkat("other", root_fd, "near") == 0);
	CHECK(symlinkat("loop", root_fd, "loop") == 0);
	CHECK(mknodat(root_fd, "fifo", S_IFIFO | 0600, 0) == 0);
	CHECK(mkdirat(root_fd, "empty", 0700) == 0);
	for (const char *const *name = (const char *const[]){ "none", "file", "link", "near",
							      "loop", "fifo", "empty", NULL };
	     *name; name++) {
		CHECK_INT(rootfd_put(root_fd, *name, 0664, "ours", 4), 0);
		CHECK_INT(content(*name, "ours"), 0);
		CHECK(fstatat(root_fd, *name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		CHECK(S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0664 && st.st_nlink == 1);
	}
	CHECK_INT(content("other", "of the image"), 0);
	CHECK_INT(rootfd_put(root_fd, "none", 0600, NULL, 0), 0);
	CHECK(fstatat(root_fd, "none", &st, 0) == 0 && st.st_size == 0);
	CHECK((st.st_mode & 07777) == 0600);
	end();
}

static void puts_no_file_elsewhere(void)
{
	begin();
	CHECK(mkdirat(root_fd, "full", 0700) == 0);
	put(root_fd, "full/x", "kept");
	CHECK_INT(rootfd_put(root_fd, "full", 0644, "ours", 4), -ENOTEMPTY);
	CHECK_INT(content("full/x", "kept"), 0);
	for (const char *const *name =
		     (const char *const[]){ "", ".", "..", "/", "full/x", "../out/secret", NULL };
	     *name; name++)
		CHECK_INT(rootfd_put(root_fd, *name, 0644, "ours", 4), -EINVAL);
	CHECK_INT(content("full/x", "kept"), 0);
	end();
}

UNIT_MAIN({ "links stay inside", links_stay_inside },
	  { "magic links are refused", magic_links_are_refused },
	  { "only regular files are opened", only_regular_files_are_opened },
	  { "makes what is missing", makes_what_is_missing },
	  { "makes inside only", makes_inside_only },
	  { "makes what links name that lead nowhere", makes_what_links_name },
	  { "makes behind no link", makes_behind_no_link },
	  { "removes any kind", removes_any_kind }, { "removes the deepest", removes_the_deepest },
	  { "stops at mounts", stops_at_mounts },
	  { "stays beneath, and in one mount", stays_beneath },
	  { "points through no link", points_through_no_link },
	  { "puts a file over any kind", puts_a_file_over_any_kind },
	  { "puts no file elsewhere", puts_no_file_elsewhere })
