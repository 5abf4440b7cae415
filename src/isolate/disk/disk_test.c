/* SPDX-License-Identifier: Apache-2.0 */

/* A loop device stands for a disk; its serial is a file of a directory that stands for /sys/block.
 */

#include "isolate/disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "isolate/disk/disk_bed_test.h"
#include "scratch.h"
#include "unit.h"

static struct {
	char dir[64], device[DISK_NAME_MAX + 1];
	int dir_fd, loop_fd;
	struct disk_places places;
} bed = { .dir_fd = -1, .loop_fd = -1, .places = { .bus_fd = -1 } };

static void put(const char *path, const char *text)
{
	_cleanup_fd_ int fd =
		openat(bed.dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
}

static void begin(void)
{
	(void)str_copy(bed.dir, sizeof(bed.dir), "/tmp/isolate-disk-test-XXXXXX");
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mkdtemp(bed.dir) != NULL);
	bed.dir_fd = open(bed.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (const char *const *name = (const char *const[]){ "sys", "own", "tree", "tree/etc",
							      "sys/loop9999", NULL };
	     *name; name++)
		CHECK(mkdirat(bed.dir_fd, *name, 0755) == 0);
	bed.places.sys_fd = openat(bed.dir_fd, "sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bed.places.own_fd = openat(bed.dir_fd, "own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bed.places.dev_fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put("sys/loop9999/serial", "other\n");
}

static void end(void)
{
	bed.loop_fd = fd_close(bed.loop_fd);
	bed.places.sys_fd = fd_close(bed.places.sys_fd);
	bed.places.own_fd = fd_close(bed.places.own_fd);
	bed.places.dev_fd = fd_close(bed.places.dev_fd);
	bed.dir_fd = fd_close(bed.dir_fd);
	CHECK_INT(scratch_remove(bed.dir), 0);
}

/* The tree on a loop device that is called `serial`; false where the machine has none of that. */
static bool begin_disk(const char *serial, bool erofs)
{
	char image[96], tree[96], path[64];

	(void)str_printf(image, sizeof(image), "%s/image", bed.dir);
	(void)str_printf(tree, sizeof(tree), "%s/tree", bed.dir);
	put("image", "");
	if (erofs ? !disk_bed_mkfs(image, tree) : truncate(image, 1 << 20) < 0)
		return false;
	bed.loop_fd = disk_bed_loop(image, bed.device);
	if (bed.loop_fd < 0)
		return false;
	(void)str_printf(path, sizeof(path), "sys/%s", bed.device);
	CHECK(mkdirat(bed.dir_fd, path, 0755) == 0);
	(void)str_printf(path, sizeof(path), "sys/%s/serial", bed.device);
	put(path, serial);
	return true;
}

static bool reads(int root_fd, const char *path, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	if (rootfd_read(root_fd, path, 4096, &b) < 0)
		return false;
	return b.len == strlen(text) && (b.len == 0 || memcmp(buf_data(&b), text, b.len) == 0);
}

static void a_device_is_found_by_its_serial(void)
{
	char name[DISK_NAME_MAX + 1];

	begin();
	CHECK_INT(disk_find(&bed.places, "other", name), 0);
	CHECK_STR(name, "loop9999");
	CHECK_INT(disk_find(&bed.places, "othe", name), -ENODEV);
	CHECK_INT(disk_find(&bed.places, "slot0", name), -ENODEV);
	put("sys/loop9999/serial", "slot0");
	CHECK_INT(disk_find(&bed.places, "slot0", name), 0);
	end();
}

static void a_disk_is_a_root(void)
{
	static const struct disk_file files[] = {
		{ "/etc/hosts", 0644, "made", 4 },   { "/etc/full", 0600, "ours", 4 },
		{ "/etc/empty", 0640, "filled", 6 }, { "/new/dir/file", 0600, "deep", 4 },
		{ "/link/x", 0600, "no", 2 },
	};
	const struct disk_root root = {
		.name = "0123456789abcdef", .upper_bytes = 1 << 20, .files = files, .n_files = 5
	};
	struct error err = ERROR_INIT;
	char name[DISK_NAME_MAX + 1];
	int fd, big_fd, root_fd;
	struct stat st;

	begin();
	put("tree/etc/full", "kept");
	put("tree/etc/empty", "");
	CHECK(symlinkat("loop", bed.dir_fd, "tree/link") == 0);
	CHECK(symlinkat("link", bed.dir_fd, "tree/loop") == 0);
	CHECK(fchmodat(bed.dir_fd, "tree", 0751, 0) == 0);
	if (!begin_disk("slot3", true)) {
		end();
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	}
	CHECK_INT(disk_find(&bed.places, "slot3", name), 0);
	CHECK_STR(name, bed.device);
	CHECK_INT(disk_is_free(&bed.places, name), 1);
	root_fd = disk_mount_root(&bed.places, name, &root, &err);
	if (root_fd < 0)
		printf("# %s\n", error_text(&err));
	CHECK(root_fd >= 0);
	if (root_fd >= 0) {
		CHECK_INT(disk_is_free(&bed.places, name), 0);
		CHECK(reads(root_fd, "etc/hosts", "made") && reads(root_fd, "etc/full", "ours"));
		CHECK(reads(root_fd, "etc/empty", "filled") &&
		      reads(root_fd, "new/dir/file", "deep"));
		CHECK(fstatat(root_fd, "etc/empty", &st, 0) == 0 && (st.st_mode & 07777) == 0640);
		CHECK(fstat(root_fd, &st) == 0 && (st.st_mode & 07777) == 0751);
		/* A directory over one that was removed is empty: the layer can say so. */
		CHECK(mkdirat(root_fd, "dir", 0755) == 0 &&
		      unlinkat(root_fd, "dir", AT_REMOVEDIR) == 0);
		CHECK(unlinkat(root_fd, "etc/full", 0) == 0 &&
		      unlinkat(root_fd, "etc/empty", 0) == 0 &&
		      unlinkat(root_fd, "etc/hosts", 0) == 0 &&
		      unlinkat(root_fd, "etc", AT_REMOVEDIR) == 0 &&
		      mkdirat(root_fd, "etc", 0755) == 0);
		CHECK(fstatat(root_fd, "etc/full", &st, 0) < 0 && errno == ENOENT);
		/* What may be written has its bound. */
		big_fd = openat(root_fd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		CHECK(fallocate(big_fd, 0, 0, 2 << 20) < 0 && errno == ENOSPC);
		(void)fd_close(big_fd);
		(void)fd_close(root_fd);
		CHECK_INT(disk_is_free(&bed.places, name), 1);
	}
	fd = openat(bed.places.own_fd, root.name, O_PATH | O_CLOEXEC);
	CHECK(fd < 0 && errno == ENOENT);
	end();
}

static void what_is_no_disk_is_refused(void)
{
	const struct disk_root root = { .name = "0123456789abcdef" };
	struct error err = ERROR_INIT;

	begin();
	CHECK(disk_mount_root(&bed.places, "null", &root, &err) < 0);
	CHECK(strstr(err.text, "no block device") != NULL);
	if (!begin_disk("slot3", false)) {
		end();
		SKIP("no loop device");
	}
	err = (struct error)ERROR_INIT;
	CHECK(disk_mount_root(&bed.places, bed.device, &root, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "no EROFS") != NULL);
	CHECK_INT(disk_is_free(&bed.places, bed.device), 1);
	CHECK(faccessat(bed.places.own_fd, root.name, F_OK, 0) < 0);
	end();
}

static void what_is_no_share_is_refused(void)
{
	_cleanup_fd_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct error err = ERROR_INIT;

	CHECK(disk_mount_shares(fd, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(disk_open_share(fd, "nobody-has-this", true, true, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "nobody-has-this") != NULL);
}

UNIT_MAIN({ "a device is found by its serial", a_device_is_found_by_its_serial },
	  { "a disk is a root", a_disk_is_a_root },
	  { "what is no disk is refused", what_is_no_disk_is_refused },
	  { "what is no share is refused", what_is_no_share_is_refused })
