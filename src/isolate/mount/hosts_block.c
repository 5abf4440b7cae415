/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/hosts_block.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define HOSTS_NAME "hosts"
/* A name that no program looks for, in the directory of the file that it replaces. */
#define HOSTS_NEW_NAME ".hosts.nacre"
#define HOSTS_BEGIN "# Pods of the network "
#define HOSTS_END "# End of the pods\n"

int hosts_block_begin(struct buf *b, const char *network)
{
	return buf_addf(b, HOSTS_BEGIN "%s; nacre keeps these lines\n", network);
}

int hosts_block_end(struct buf *b)
{
	return buf_add_str(b, HOSTS_END);
}

/* What leads nowhere, away from this mount, or is of another kind, is the container's own affair.
 */
static bool hosts_is_own(int r)
{
	return r == -ENOENT || r == -ELOOP || r == -ENOTDIR || r == -EXDEV || r == -ENXIO ||
	       r == -EACCES;
}

/* The regular file of that name, on the mount of the directory; 0: it is none. */
static int hosts_open(int etc_fd, struct stat *ret)
{
	_cleanup_fd_ int fd = rootfd_open_beneath(
		etc_fd, HOSTS_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return hosts_is_own(fd) ? 0 : fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? TAKE_FD(fd) : 0;
}

/* The directory; 0: there is none on the mount of the root. */
static int hosts_open_etc(int root_fd)
{
	int fd = rootfd_open_beneath(root_fd, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return hosts_is_own(fd) ? 0 : fd;
}

/* 1: `to` is the text with another block; 0: nothing is to be replaced. */
static int hosts_replace(struct buf *to, char *text, const char *block)
{
	char *begin = str_has_prefix(text, HOSTS_BEGIN) ? text : strstr(text, "\n" HOSTS_BEGIN);
	char *end;
	size_t len;

	if (!begin)
		return 0;
	begin += *begin == '\n';
	end = strstr(begin, "\n" HOSTS_END);
	if (!end)
		return 0;
	end += strlen("\n" HOSTS_END);
	len = (size_t)(end - begin);
	if (len == strlen(block) && memcmp(begin, block, len) == 0)
		return 0;
	if (buf_add(to, text, (size_t)(begin - text)) < 0 || buf_add_str(to, block) < 0 ||
	    buf_add_str(to, end) < 0)
		return -ENOMEM;
	return 1;
}

static int hosts_read(int fd, const char *block, struct buf *to)
{
	_cleanup_(buf_done) struct buf from = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	int r = fd_read_all(fd, HOSTS_MAX, &from);

	if (r == -EFBIG)
		return 0;
	if (r < 0)
		return r;
	/* Bytes behind a NUL would be lost. */
	if (from.len && memchr(buf_data(&from), '\0', from.len))
		return 0;
	text = buf_take_str(&from);
	return text ? hosts_replace(to, text, block) : -ENOMEM;
}

static int hosts_write(int fd, const struct stat *st, const struct buf *text)
{
	int r = fd_write_full(fd, buf_data(text), text->len);

	if (r < 0)
		return r;
	if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 0777) < 0)
		return -errno;
	return 1;
}

/* 1; 0: the container has something else of that name. */
static int hosts_put_new(int etc_fd, const struct stat *st, const struct buf *text)
{
	_cleanup_fd_ int fd = -1;

	if (sysio_unlinkat(etc_fd, HOSTS_NEW_NAME, 0) < 0 && errno != ENOENT)
		return errno == EISDIR || errno == EPERM ? 0 : -errno;
	fd = sysio_openat(etc_fd, HOSTS_NEW_NAME,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	return hosts_write(fd, st, text);
}

static int hosts_exchange(int etc_fd, const struct stat *old, const struct buf *text)
{
	struct stat st;
	int r = hosts_put_new(etc_fd, old, text);
	_cleanup_fd_ int again_fd = -1;

	if (r == 0 || r == -EROFS)
		return r;
	/* A rename onto a name that is mounted upon in another namespace unmounts that. */
	if (r == 1) {
		r = hosts_open(etc_fd, &st);
		again_fd = r;
	}
	if (r > 0) {
		r = sysio_renameat(etc_fd, HOSTS_NEW_NAME, etc_fd, HOSTS_NAME);
		if (r == 0)
			return 1;
		r = -errno;
	}
	(void)sysio_unlinkat(etc_fd, HOSTS_NEW_NAME, 0);
	return r;
}

int hosts_block_put(int root_fd, const char *block)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	_cleanup_fd_ int etc_fd = -1, fd = -1;
	struct stat st;
	int r;

	r = hosts_open_etc(root_fd);
	if (r <= 0)
		return r;
	etc_fd = r;
	r = hosts_open(etc_fd, &st);
	if (r <= 0)
		return r;
	fd = r;
	r = hosts_read(fd, block, &text);
	return r == 1 ? hosts_exchange(etc_fd, &st, &text) : r;
}
