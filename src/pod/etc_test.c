/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/etc.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/rootfd.h"
#include "base/str.h"
#include "scratch.h"
#include "unit.h"

static char *bed_path;

static int bed_open(void)
{
	static char path[] = "/tmp/nacre-etc-test-XXXXXX";

	(void)snprintf(path, sizeof(path), "/tmp/nacre-etc-test-XXXXXX");
	bed_path = mkdtemp(path);
	CHECK(bed_path != NULL);
	return open(bed_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void bed_close(int fd)
{
	CHECK_INT(scratch_remove(bed_path), 0);
	(void)fd_close(fd);
}

static char *hosts(int fd)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	return rootfd_read(fd, "etc/hosts", 4096, &b) < 0 ? NULL : buf_take_str(&b);
}

static void fills_an_empty_root(void)
{
	struct error err = ERROR_INIT;
	int fd = bed_open();
	_cleanup_str_ char *text = NULL;

	CHECK_INT(etc_fill(fd, "web", &err), 0);
	text = hosts(fd);
	CHECK_STR(text, "127.0.0.1\tlocalhost web\n::1\tlocalhost ip6-localhost ip6-loopback\n");
	bed_close(fd);
}

static void fills_an_empty_file(void)
{
	struct error err = ERROR_INIT;
	int fd = bed_open();
	_cleanup_str_ char *text = NULL;

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	CHECK_INT(mknodat(fd, "etc/hosts", S_IFREG | 0644, 0), 0);
	CHECK_INT(etc_fill(fd, "web", &err), 0);
	text = hosts(fd);
	CHECK(text && str_has_prefix(text, "127.0.0.1\tlocalhost web\n"));
	bed_close(fd);
}

static void leaves_what_the_image_says(void)
{
	struct error err = ERROR_INIT;
	int fd = bed_open();
	_cleanup_str_ char *text = NULL;
	_cleanup_fd_ int file_fd = -1;

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	file_fd = openat(fd, "etc/hosts", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK_INT(fd_write_full(file_fd, "mine\n", 5), 0);
	CHECK_INT(etc_fill(fd, "web", &err), 0);
	text = hosts(fd);
	CHECK_STR(text, "mine\n");
	bed_close(fd);
}

/* A link to anywhere, or /etc as one: nothing outside of the root is touched. */
static void follows_no_link_out(void)
{
	char outside[] = "/tmp/nacre-etc-test-outside-XXXXXX";
	struct error err = ERROR_INIT;
	int fd = bed_open();
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int out_fd = -1;

	CHECK(mkdtemp(outside) != NULL);
	CHECK_INT(symlinkat(outside, fd, "etc"), 0);
	(void)etc_fill(fd, "web", &err);
	out_fd = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(fd_list_dir(out_fd, &names), 0);
	CHECK_INT(strv_len(names), 0);
	CHECK_INT(rmdir(outside), 0);
	bed_close(fd);
}

UNIT_MAIN({ "fills an empty root", fills_an_empty_root },
	  { "fills an empty file", fills_an_empty_file },
	  { "leaves what the image says", leaves_what_the_image_says },
	  { "follows no link out", follows_no_link_out })
