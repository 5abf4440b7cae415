/* SPDX-License-Identifier: Apache-2.0 */

/* An image of two layers as one EROFS file, and roots that lie on it, against the overlay of the
 * same layers. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "image/image.h"
#include "isolate/disk/disk.h"
#include "isolate/disk/disk_bed_test.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "store/root.h"
#include "unit.h"

#define HEX_63 "000000000000000000000000000000000000000000000000000000000000000"
#define BIG ((size_t)300000)

static struct {
	char path[64];
	int fd;
	struct loop *loop;
	struct pool *pool;
	struct root_store *root;
	struct image_store *images;
	unsigned n_done;
	int erofs_fd[2];
	struct error err;
	enum image_root form;
} s;

static void on_stored(void *userdata, const struct error *err)
{
	s.n_done++;
}

static void open_store(void)
{
	struct image_store_config config = { .root_fd = s.fd,
					     .fetch_path = "/nowhere",
					     .transfer_path = "/nowhere",
					     .root = s.form };

	CHECK_INT(loop_new(&s.loop), 0);
	CHECK_INT(pool_new(&s.pool, s.loop, 1), 0);
	CHECK_INT(root_store_open(&s.root, s.pool, s.fd, "root.db", NULL), 0);
	config.loop = s.loop;
	config.pool = s.pool;
	config.store = s.root;
	CHECK_INT(image_store_new(&s.images, &config, NULL), 0);
}

static void close_store(void)
{
	s.pool = pool_free(s.pool);
	s.images = image_store_free(s.images);
	s.root = root_store_close(s.root);
	s.loop = loop_free(s.loop);
}

/* ---- two layers ---- */

static void file(const char *path, mode_t mode, const char *text)
{
	_cleanup_fd_ int fd = openat(s.fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0 && fchmod(fd, mode) == 0);
}

static void dir(const char *path, mode_t mode)
{
	CHECK(mkdirat(s.fd, path, 0700) == 0 && fchmodat(s.fd, path, mode, 0) == 0);
}

static void whiteout(const char *path)
{
	CHECK(mknodat(s.fd, path, S_IFCHR, makedev(0, 0)) == 0);
}

static void attribute(const char *path, const char *name, const char *value, size_t len)
{
	_cleanup_fd_ int fd = openat(s.fd, path, O_RDONLY | O_CLOEXEC);

	CHECK(fsetxattr(fd, name, value, len, 0) == 0);
}

static void make_lower(void)
{
	static const struct timespec times[] = { { .tv_sec = 86400 }, { 86400, 123456789 } };
	_cleanup_str_ char *big = malloc(BIG + 1);

	memset(big, 'x', BIG);
	big[BIG] = '\0';
	dir("layers/1", 0751);
	dir("layers/1/etc", 0755);
	file("layers/1/etc/passwd", 0644, "root:x:0:0::/:/bin/sh\n");
	file("layers/1/etc/gone", 0644, "not there\n");
	dir("layers/1/hidden", 0755);
	file("layers/1/hidden/below", 0644, "hidden\n");
	dir("layers/1/away", 0755);
	file("layers/1/away/x", 0644, "away\n");
	dir("layers/1/bin", 01777);
	file("layers/1/bin/su", 04755, "set-id\n");
	file("layers/1/big", 0600, big);
	CHECK(linkat(s.fd, "layers/1/big", s.fd, "layers/1/bin/big", 0) == 0);
	CHECK(symlinkat("/etc/../absolute", s.fd, "layers/1/bin/link") == 0);
	CHECK(mknodat(s.fd, "layers/1/null", S_IFCHR | 0666, makedev(1, 3)) == 0);
	CHECK(mkfifoat(s.fd, "layers/1/fifo", 0640) == 0);
	CHECK(fchownat(s.fd, "layers/1/bin/link", 100000, 70000, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(fchownat(s.fd, "layers/1/etc/passwd", 1000, 4000000, 0) == 0);
	attribute("layers/1/etc/passwd", "system.posix_acl_access",
		  "\2\0\0\0\1\0\6\0\377\377\377\377\2\0\4\0\350\3\0\0\4\0\4\0\377\377\377\377"
		  "\20\0\4\0\377\377\377\377\40\0\0\0\377\377\377\377",
		  44);
	attribute("layers/1/bin/su", "security.capability",
		  "\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	CHECK(utimensat(s.fd, "layers/1/etc/passwd", times, 0) == 0);
}

static void make_upper(void)
{
	dir("layers/2", 0750);
	dir("layers/2/etc", 0711);
	file("layers/2/etc/new", 0600, "new\n");
	whiteout("layers/2/etc/gone");
	whiteout("layers/2/away");
	dir("layers/2/hidden", 0700);
	file("layers/2/hidden/above", 0644, "above\n");
	attribute("layers/2/hidden", "user.overlay.opaque", "y", 1);
	attribute("layers/2/hidden", "user.note", "kept", 4);
}

static struct image *put_image(void)
{
	char id[] = "sha256:a" HEX_63, manifest[] = "sha256:b" HEX_63;
	char lower[] = "sha256:c" HEX_63, upper[] = "sha256:d" HEX_63;
	char *none[] = { NULL }, *blobs[] = { id, NULL };
	int64_t numbers[] = { 1, 2 };
	struct root_layer layers[] = { { .number = 1, .diff_id = lower },
				       { .number = 2, .parent = 1, .diff_id = upper } };
	struct root_image image = { .id = id,
				    .digest = manifest,
				    .names = none,
				    .blobs = blobs,
				    .layers = numbers,
				    .n_layers = 2 };

	make_lower();
	make_upper();
	file("blobs/sha256/a" HEX_63, 0600, "");
	CHECK_INT(root_store_put_image(s.root, &image, layers, 2, on_stored, NULL, NULL), 0);
	LOOP_WAIT(s.loop, s.n_done == 1);
	close_store();
	open_store();
	return image_store_find(s.images, id, NULL);
}

static struct image *begin(void)
{
	memset(&s, 0, sizeof(s));
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	(void)str_copy(s.path, sizeof(s.path), "/tmp/nacre-erofs-XXXXXX");
	CHECK(mkdtemp(s.path) != NULL);
	s.fd = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s.erofs_fd[0] = s.erofs_fd[1] = -1;
	open_store();
	return put_image();
}

static void end(void)
{
	s.erofs_fd[0] = fd_close(s.erofs_fd[0]);
	s.erofs_fd[1] = fd_close(s.erofs_fd[1]);
	close_store();
	s.fd = fd_close(s.fd);
	CHECK_INT(scratch_remove(s.path), 0);
}

/* ---- the comparison ---- */

static unsigned n_compared;

static bool same_attributes(int a_fd, int b_fd, const char *name)
{
	char a_link[64], b_link[64], list[4096], a[256], b[256];
	ssize_t n, b_len = 0;

	(void)str_printf(a_link, sizeof(a_link), "/proc/self/fd/%d/%s", a_fd, name);
	(void)str_printf(b_link, sizeof(b_link), "/proc/self/fd/%d/%s", b_fd, name);
	n = llistxattr(b_link, list, sizeof(list));
	for (const char *at = list; n > 0 && at < list + n; at += strlen(at) + 1)
		b_len += 1;
	n = llistxattr(a_link, list, sizeof(list));
	for (const char *at = list; n > 0 && at < list + n; at += strlen(at) + 1) {
		ssize_t len = lgetxattr(a_link, at, a, sizeof(a));

		if (len < 0 || lgetxattr(b_link, at, b, sizeof(b)) != len ||
		    memcmp(a, b, (size_t)len) != 0)
			return false;
		b_len--;
	}
	return b_len == 0;
}

static bool same_content(int a_fd, int b_fd, const char *name, mode_t mode)
{
	_cleanup_(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;
	char a_link[256] = "", b_link[256] = "";

	if (S_ISLNK(mode))
		return readlinkat(a_fd, name, a_link, 255) == readlinkat(b_fd, name, b_link, 255) &&
		       str_eq(a_link, b_link);
	if (!S_ISREG(mode))
		return true;
	return fd_read_file(a_fd, name, BIG * 2, &a) >= 0 &&
	       fd_read_file(b_fd, name, BIG * 2, &b) >= 0 && a.len == b.len &&
	       (a.len == 0 || memcmp(buf_data(&a), buf_data(&b), a.len) == 0);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* But for the time of a root, which is that of the container's own directory. */
static bool same_entry(int a_fd, int b_fd, const char *name)
{
	struct stat a, b;

	n_compared++;
	return fstatat(a_fd, name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(b_fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_mode == b.st_mode &&
	       a.st_uid == b.st_uid && a.st_gid == b.st_gid && a.st_rdev == b.st_rdev &&
	       (str_eq(name, ".") || same_time(&a.st_mtim, &b.st_mtim)) &&
	       (S_ISDIR(a.st_mode) || (a.st_nlink == b.st_nlink && a.st_size == b.st_size)) &&
	       same_attributes(a_fd, b_fd, name) && same_content(a_fd, b_fd, name, a.st_mode);
}

/* Each name of the one is in the other, and the same. */
static void compare(int a_fd, int b_fd, bool both)
{
	_cleanup_strv_ char **names = NULL;

	CHECK_INT(fd_list_dir(a_fd, &names), 0);
	for (size_t i = 0; names && names[i]; i++) {
		_cleanup_fd_ int a = -1, b = -1;
		bool same = same_entry(a_fd, b_fd, names[i]);

		if (!same)
			printf("# %s differs\n", names[i]);
		CHECK(same);
		a = openat(a_fd, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		b = openat(b_fd, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (a >= 0 && b >= 0)
			compare(a, b, false);
	}
	if (both)
		compare(b_fd, a_fd, false);
}

static void on_erofs(void *userdata, int fd, const struct error *err)
{
	s.erofs_fd[s.n_done++ % 2] = fd;
	s.err = err ? *err : (struct error)ERROR_INIT;
}

static void file_is_as_the_overlay(void)
{
	struct disk_places places = { .sys_fd = -1, .bus_fd = -1 };
	struct disk_root root = { .name = "0123456789abcdef" };
	struct image *image = begin();
	struct error err = ERROR_INIT;
	char device[DISK_NAME_MAX + 1], path[128];
	int overlay_fd, loop_fd, root_fd, r;

	CHECK(image != NULL);
	s.n_done = 0;
	r = image ? image_erofs_open(s.images, image, on_erofs, NULL, &err) : -1;
	if (r < 0 && err.kind == ERROR_PRECONDITION) {
		end();
		SKIP("no mkfs.erofs");
	}
	CHECK_STR(err.text, "");
	/* A second one joins. */
	CHECK_INT(image_erofs_open(s.images, image, on_erofs, NULL, &err), 0);
	CHECK(image->n_users == 1);
	LOOP_WAIT(s.loop, s.n_done == 2);
	CHECK_STR(s.err.text, "");
	CHECK(s.erofs_fd[0] >= 0 && s.erofs_fd[1] >= 0 && image->n_users == 0);
	(void)str_printf(path, sizeof(path), "%s/erofs/2", s.path);
	loop_fd = disk_bed_loop(path, device);
	if (loop_fd < 0) {
		end();
		SKIP("no loop device");
	}
	overlay_fd = image_rootfs_make(s.images, image, "0123456789abcdef", NULL, NULL, &err);
	CHECK(overlay_fd >= 0);
	places.dev_fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	places.own_fd = fd_copy(s.fd);
	root_fd = disk_mount_root(&places, device, &root, &err);
	CHECK_STR(err.text, "");
	if (root_fd >= 0 && overlay_fd >= 0) {
		compare(overlay_fd, root_fd, true);
		CHECK(same_entry(overlay_fd, root_fd, "."));
		CHECK(n_compared >= 20);
		printf("# %u names\n", n_compared);
	}
	(void)fd_close(root_fd);
	(void)fd_close(overlay_fd);
	(void)fd_close(loop_fd);
	(void)fd_close(places.own_fd);
	(void)fd_close(places.dev_fd);
	image_rootfs_remove(s.images, image, "0123456789abcdef");
	end();
}

static void on_removed(void *userdata, const struct error *err)
{
	s.n_done++;
}

static void file_is_kept_with_its_layers(void)
{
	struct image *image = begin();
	struct error err = ERROR_INIT;
	struct stat st, again;

	s.n_done = 0;
	if (!image || image_erofs_open(s.images, image, on_erofs, NULL, &err) < 0) {
		end();
		SKIP("no mkfs.erofs");
	}
	LOOP_WAIT(s.loop, s.n_done == 1);
	CHECK(fstatat(s.fd, "erofs/2", &st, 0) == 0);
	file("erofs/77", 0600, "of no layer");
	close_store();
	open_store();
	image = image_store_find(s.images, "sha256:a" HEX_63, NULL);
	CHECK_INT(image_erofs_open(s.images, image, on_erofs, NULL, &err), 0);
	LOOP_WAIT(s.loop, s.n_done == 2);
	CHECK(s.erofs_fd[1] >= 0 && fstat(s.erofs_fd[1], &again) == 0);
	CHECK(again.st_ino == st.st_ino);
	CHECK(fstatat(s.fd, "erofs/77", &st, 0) < 0);
	CHECK_INT(image_store_remove(s.images, "sha256:a" HEX_63, on_removed, NULL, &err), 0);
	LOOP_WAIT(s.loop, s.n_done == 3);
	CHECK(fstatat(s.fd, "erofs/2", &st, 0) < 0 && errno == ENOENT);
	end();
}

/* ---- roots ---- */

static void on_awaited(void *userdata, const struct error *err)
{
	s.n_done++;
	s.err = err ? *err : (struct error)ERROR_INIT;
}

/* A store that is opened anew, in this form. */
static struct image *form(enum image_root root)
{
	close_store();
	s.form = root;
	open_store();
	s.n_done = 0;
	return image_store_find(s.images, "sha256:a" HEX_63, NULL);
}

/* The overlay marks by the highest bits of an inode's number that it is not of the upper layer's
 * file system. */
static bool is_on_a_file(int root_fd)
{
	struct stat st, top;

	CHECK(fstatat(root_fd, "etc/passwd", &st, 0) == 0 && fstat(root_fd, &top) == 0);
	CHECK(st.st_dev == top.st_dev);
	return st.st_ino >> 62;
}

static int make_root(struct image *image, const char *id)
{
	struct error err = ERROR_INIT;
	int fd = image_rootfs_make(s.images, image, id, NULL, NULL, &err);

	CHECK_STR(err.text, "");
	CHECK(fd >= 0);
	return fd;
}

/* 1 where the file is being made; 0 where nothing of that can be here. */
static int await(struct image *image)
{
	struct error err = ERROR_INIT;
	int r = image_rootfs_await(s.images, image, on_awaited, &s, &err);

	if (r < 0 && err.kind == ERROR_PRECONDITION)
		return 0;
	CHECK_STR(err.text, "");
	CHECK_INT(r, 1);
	return r;
}

/* A root of each kind, and a second one on the file; false where there can be none. */
static bool make_roots(struct image **image, int roots[3])
{
	*image = begin();
	roots[0] = make_root(*image, "one");
	*image = form(IMAGE_ROOT_EROFS);
	image_rootfs_adopt(s.images, *image, "one");
	if (!await(*image))
		return false;
	CHECK_INT(await(*image), 1);
	CHECK_INT((*image)->n_users, 2);
	LOOP_WAIT(s.loop, s.n_done == 2);
	CHECK_STR(s.err.text, "");
	CHECK_INT((*image)->n_users, 1);
	roots[1] = make_root(*image, "two");
	/* What is mounted for the first is there for the second. */
	CHECK_INT(image_rootfs_await(s.images, *image, on_awaited, &s, NULL), 0);
	CHECK(unlinkat(s.fd, "erofs/2", 0) == 0);
	CHECK_INT(image_rootfs_await(s.images, *image, on_awaited, &s, NULL), 0);
	roots[2] = make_root(*image, "three");
	CHECK_INT((*image)->n_users, 3);
	return true;
}

static void end_roots(struct image *image, int roots[3])
{
	static const char *const ids[] = { "one", "two", "three" };

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		roots[i] = fd_close(roots[i]);
		image_rootfs_remove(s.images, image, ids[i]);
	}
	CHECK_INT(image->n_users, 0);
}

static void root_is_as_the_overlay(void)
{
	int roots[3] = { -1, -1, -1 };
	struct error err = ERROR_INIT;
	struct image *image;

	if (!make_roots(&image, roots)) {
		end_roots(image, roots);
		end();
		SKIP("the kernel mounts no file, or no mkfs.erofs");
	}
	CHECK(!is_on_a_file(roots[0]) && is_on_a_file(roots[1]) && is_on_a_file(roots[2]));
	n_compared = 0;
	compare(roots[0], roots[1], true);
	compare(roots[1], roots[2], true);
	CHECK(n_compared >= 40);
	end_roots(image, roots);
	/* The mount has gone with the last of them, and the file was taken away above. */
	CHECK_INT(image_rootfs_make(s.images, image, "four", NULL, NULL, &err), -ENOENT);
	CHECK_STR(err.text, "root file system of container four: images.root is erofs: open the "
			    "file of its layers: No such file or directory");
	CHECK_INT(image->n_users, 0);
	end();
}

/* Its daemon has ended, and the container runs on. */
static void root_outlives_its_store(void)
{
	int roots[3] = { -1, -1, -1 };
	struct image *image;
	bool is_here = make_roots(&image, roots);

	image = form(IMAGE_ROOT_EROFS);
	if (is_here)
		CHECK(is_on_a_file(roots[1]) && is_on_a_file(roots[2]));
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++)
		roots[i] = fd_close(roots[i]);
	end();
	if (!is_here)
		SKIP("the kernel mounts no file, or no mkfs.erofs");
}

static void root_is_written_to_by_itself(void)
{
	int roots[3] = { -1, -1, -1 };
	struct stat before, after;
	struct image *image;
	bool is_here = make_roots(&image, roots);

	if (is_here) {
		_cleanup_fd_ int fd = openat(roots[1], "etc/new", O_WRONLY | O_APPEND | O_CLOEXEC);

		CHECK(fstatat(roots[1], "etc/new", &before, 0) == 0);
		CHECK_INT(fd_write_full(fd, "more\n", 5), 0);
		CHECK(fstatat(roots[1], "etc/new", &after, 0) == 0);
		CHECK(before.st_ino == after.st_ino && before.st_dev == after.st_dev);
		CHECK_INT(after.st_size, 9);
		CHECK(fstatat(roots[2], "etc/new", &after, 0) == 0 && after.st_size == 4);
		CHECK(unlinkat(roots[1], "big", 0) == 0);
		CHECK(fstatat(roots[1], "bin/big", &after, 0) == 0);
		CHECK(fstatat(roots[2], "big", &after, 0) == 0);
	}
	end_roots(image, roots);
	end();
	if (!is_here)
		SKIP("the kernel mounts no file, or no mkfs.erofs");
}

static void root_lies_on_a_file_that_is_there(void)
{
	struct image *image = begin();
	struct error err = ERROR_INIT;
	int roots[3] = { -1, -1, -1 };
	bool is_here;

	image = form(IMAGE_ROOT_AUTO);
	CHECK_INT(image_rootfs_await(s.images, image, on_awaited, NULL, NULL), 0);
	roots[0] = make_root(image, "one");
	CHECK(!is_on_a_file(roots[0]));
	is_here = image_erofs_open(s.images, image, on_erofs, NULL, &err) == 0;
	if (is_here) {
		LOOP_WAIT(s.loop, s.n_done == 1);
		CHECK_STR(s.err.text, "");
		roots[1] = make_root(image, "two");
		roots[2] = make_root(image, "three");
		CHECK(is_on_a_file(roots[1]) == is_on_a_file(roots[2]));
		is_here = is_on_a_file(roots[1]);
	}
	end_roots(image, roots);
	end();
	if (!is_here)
		SKIP("the kernel mounts no file, or no mkfs.erofs");
}

static size_t n_staged(void)
{
	_cleanup_fd_ int fd = openat(s.fd, "staging", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_strv_ char **names = NULL;

	CHECK_INT(fd_list_dir(fd, &names), 0);
	return strv_len(names);
}

static void root_is_waited_for_no_more(void)
{
	struct image *image = begin();
	bool is_here;

	image = form(IMAGE_ROOT_EROFS);
	is_here = await(image);
	image_rootfs_forget(s.images, &s);
	LOOP_WAIT(s.loop, image->n_users == 0);
	CHECK_INT(s.n_done, 0);
	/* Who comes while the last one is being killed gets his own. */
	if (is_here) {
		(void)unlinkat(s.fd, "erofs/2", 0);
		CHECK_INT(await(image), 1);
		image_rootfs_forget(s.images, &s);
		CHECK_INT(await(image), 1);
		LOOP_WAIT(s.loop, s.n_done == 1 && image->n_users == 0);
		CHECK_STR(s.err.text, "");
		CHECK(faccessat(s.fd, "erofs/2", F_OK, 0) == 0);
	}
	LOOP_WAIT(s.loop, n_staged() == 0);
	end();
	if (!is_here)
		SKIP("the kernel mounts no file, or no mkfs.erofs");
}

/* On a tmpfs no kernel can. */
static void root_is_refused(void)
{
	struct error err = ERROR_INIT;
	struct image *image;
	int fd;

	image = begin();
	end();
	CHECK(mount("none", "/tmp", "tmpfs", 0, NULL) == 0);
	image = begin();
	image = form(IMAGE_ROOT_EROFS);
	CHECK_INT(image_rootfs_await(s.images, image, on_awaited, NULL, &err) < 0, 1);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(str_has_prefix(err.text, "images.root is erofs: the kernel "));
	err = (struct error)ERROR_INIT;
	CHECK(image_rootfs_make(s.images, image, "one", NULL, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_INT(image->n_users, 0);
	image = form(IMAGE_ROOT_AUTO);
	fd = make_root(image, "two");
	CHECK(!is_on_a_file(fd));
	(void)fd_close(fd);
	image_rootfs_remove(s.images, image, "two");
	end();
	CHECK(umount("/tmp") == 0);
}

UNIT_MAIN({ "the file is as the overlay is", file_is_as_the_overlay },
	  { "the file is kept with its layers", file_is_kept_with_its_layers },
	  { "a root on the file is as on directories", root_is_as_the_overlay },
	  { "a root on the file outlives its store", root_outlives_its_store },
	  { "a root on the file is written to by itself", root_is_written_to_by_itself },
	  { "a root lies on a file that is there", root_lies_on_a_file_that_is_there },
	  { "a root is waited for no more", root_is_waited_for_no_more },
	  { "a root is refused where no file can be mounted", root_is_refused })
