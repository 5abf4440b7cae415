/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/hosts_block.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

#define BLOCK(lines)                                                                               \
	"# Pods of the network blue; nacre keeps these lines\n" lines "# End of the pods\n"
#define OLD BLOCK("10.0.0.2\tdb db.blue\n")
#define NEW BLOCK("10.0.0.2\tdb db.blue\n10.0.0.3\tweb web.blue\n")

static char bed_path[64];

static int bed_open(void)
{
	int fd;

	(void)snprintf(bed_path, sizeof(bed_path), "/tmp/nacre-hosts-test-XXXXXX");
	CHECK(mkdtemp(bed_path) != NULL);
	fd = open(bed_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	return fd;
}

static void bed_close(int fd)
{
	(void)fd_close(fd);
	CHECK_INT(scratch_remove(bed_path), 0);
}

static void put(int fd, const char *name, const char *text, size_t len)
{
	_cleanup_fd_ int file_fd = openat(fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	CHECK(file_fd >= 0);
	CHECK_INT(fd_write_full(file_fd, text, len), 0);
}

static bool reads(int fd, const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *found = NULL;

	if (rootfd_read(fd, name, HOSTS_MAX * 2, &b) == 0)
		found = buf_take_str(&b);
	if (found && !str_eq(found, text))
		printf("# %s\n", found);
	return found && str_eq(found, text);
}

static bool gives(const char *was, const char *is, int result)
{
	int fd = bed_open(), r;
	bool right;

	put(fd, "etc/hosts", was, strlen(was));
	r = hosts_block_put(fd, NEW);
	right = r == result && reads(fd, "etc/hosts", is) &&
		faccessat(fd, "etc/.hosts.nacre", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	if (r != result)
		printf("# result %d\n", r);
	bed_close(fd);
	return right;
}

static void makes_the_lines_around_the_names(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;

	CHECK_INT(hosts_block_begin(&b, "blue"), 0);
	CHECK_INT(hosts_block_end(&b), 0);
	text = buf_take_str(&b);
	CHECK(text && str_eq(text, BLOCK("")));
}

static void replaces_the_block_and_keeps_what_stands_around_it(void)
{
	CHECK(gives("127.0.0.1\tlocalhost\n" OLD, "127.0.0.1\tlocalhost\n" NEW, 1));
	CHECK(gives(OLD "10.9.9.9\town\n", NEW "10.9.9.9\town\n", 1));
	CHECK(gives("1.1.1.1 a\n" OLD "2.2.2.2 b", "1.1.1.1 a\n" NEW "2.2.2.2 b", 1));
}

static void leaves_a_file_that_is_not_as_the_node_made_it(void)
{
	static const char *const own[] = {
		"",
		"127.0.0.1\tlocalhost\n",
		"# Pods of the network blue; nacre keeps these lines\n10.0.0.2\tdb\n",
		"# End of the pods\n",
		"x # Pods of the network blue; nacre keeps these lines\n# End of the pods\n",
		"# Pods of the network blue; nacre keeps these lines # End of the pods\n",
		"# Pods of the network blue; nacre keeps these lines\n# End of the pods",
		NEW,
	};

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		CHECK(gives(own[i], own[i], 0));
}

static void leaves_what_is_no_file_of_the_container(void)
{
	static const char odd[] = "a\0" OLD;
	int fd = bed_open();
	_cleanup_str_ char *large = malloc(HOSTS_MAX + 1);

	CHECK_INT(hosts_block_put(fd, NEW), 0);
	put(fd, "etc/hosts", odd, sizeof(odd) - 1);
	CHECK_INT(hosts_block_put(fd, NEW), 0);
	CHECK(large != NULL);
	memset(large, 'x', HOSTS_MAX + 1);
	put(fd, "etc/hosts", large, HOSTS_MAX + 1);
	CHECK_INT(hosts_block_put(fd, NEW), 0);
	CHECK_INT(unlinkat(fd, "etc/hosts", 0), 0);
	put(fd, "target", OLD, strlen(OLD));
	CHECK_INT(symlinkat("../target", fd, "etc/hosts"), 0);
	CHECK_INT(hosts_block_put(fd, NEW), 0);
	CHECK(reads(fd, "target", OLD));
	CHECK_INT(unlinkat(fd, "etc/hosts", 0), 0);
	CHECK_INT(mkfifoat(fd, "etc/hosts", 0600), 0);
	CHECK_INT(hosts_block_put(fd, NEW), 0);
	CHECK_INT(unlinkat(fd, "etc/hosts", 0), 0);
	CHECK_INT(unlinkat(fd, "etc", AT_REMOVEDIR), 0);
	CHECK_INT(hosts_block_put(fd, NEW), 0);
	put(fd, "etc", OLD, strlen(OLD));
	CHECK_INT(hosts_block_put(fd, NEW), 0);
	bed_close(fd);
}

static void keeps_owner_and_mode(void)
{
	int fd = bed_open();
	struct stat st;

	put(fd, "etc/hosts", OLD, strlen(OLD));
	CHECK_INT(fchmodat(fd, "etc/hosts", 0604, 0), 0);
	CHECK_INT(fchownat(fd, "etc/hosts", 7, 8, 0), 0);
	CHECK_INT(hosts_block_put(fd, NEW), 1);
	CHECK_INT(fstatat(fd, "etc/hosts", &st, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_INT(st.st_mode & 07777, 0604);
	CHECK_INT(st.st_uid, 7);
	CHECK_INT(st.st_gid, 8);
	bed_close(fd);
}

/* A volume's file or directory is never written, and one that is read-only is told. */
static void stays_on_the_mount_of_the_root(void)
{
	char path[96];
	int fd = bed_open(), root_fd;

	CHECK_INT(unshare(CLONE_NEWNS), 0);
	CHECK_INT(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	put(fd, "etc/hosts", OLD, strlen(OLD));
	put(fd, "volume", OLD, strlen(OLD));
	CHECK_INT(mount(bed_path, bed_path, NULL, MS_BIND, NULL), 0);
	root_fd = open(bed_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root_fd >= 0);
	CHECK_INT(mount(NULL, bed_path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	CHECK_INT(hosts_block_put(root_fd, NEW), -EROFS);
	CHECK_INT(mount(NULL, bed_path, NULL, MS_REMOUNT | MS_BIND, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/etc/hosts", bed_path);
	CHECK_INT(mount(path, path, NULL, MS_BIND, NULL), 0);
	CHECK_INT(hosts_block_put(root_fd, NEW), 0);
	CHECK_INT(umount2(path, MNT_DETACH), 0);
	CHECK_INT(hosts_block_put(root_fd, NEW), 1);
	(void)fd_close(root_fd);
	CHECK_INT(umount2(bed_path, MNT_DETACH), 0);
	bed_close(fd);
}

UNIT_MAIN({ "makes the lines around the names", makes_the_lines_around_the_names },
	  { "replaces the block and keeps what stands around it",
	    replaces_the_block_and_keeps_what_stands_around_it },
	  { "leaves a file that is not as the node made it",
	    leaves_a_file_that_is_not_as_the_node_made_it },
	  { "leaves what is no file of the container", leaves_what_is_no_file_of_the_container },
	  { "keeps owner and mode", keeps_owner_and_mode },
	  { "stays on the mount of the root", stays_on_the_mount_of_the_root })
