/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/hosts_block.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rootfd.h"
#include "base/str.h"
#include "base/sysio.h"

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

static int hosts_mount_of(int fd, uint64_t *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_MNT_ID))
		return -EOPNOTSUPP;
	*ret = st.stx_mnt_id;
	return 0;
}

/* 1: the regular file of that name, on this very mount; 0: it is not. */
static int hosts_is_plain(int etc_fd, uint64_t mount, struct stat *ret)
{
	_cleanup_fd_ int fd = rootfd_point(etc_fd, HOSTS_NAME);
	uint64_t found;
	int r;

	if (fd == -ENOENT || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, ret) < 0)
		return -errno;
	r = hosts_mount_of(fd, &found);
	return r < 0 ? r : S_ISREG(ret->st_mode) && found == mount;
}

/* The directory, where it is one and lies on the mount of the root; 0: it is not. */
static int hosts_open_etc(int root_fd, uint64_t *mount)
{
	_cleanup_fd_ int fd = rootfd_open(root_fd, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	uint64_t found;
	int r;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return fd;
	r = hosts_mount_of(root_fd, mount);
	if (r == 0)
		r = hosts_mount_of(fd, &found);
	if (r < 0)
		return r;
	return found == *mount ? TAKE_FD(fd) : 0;
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

static int hosts_read(int etc_fd, const char *block, struct buf *to)
{
	_cleanup_(buf_done) struct buf from = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	int r = rootfd_read(etc_fd, HOSTS_NAME, HOSTS_MAX, &from);

	if (r == -EFBIG || r == -ENOENT || r == -EINVAL || r == -ELOOP)
		return 0;
	if (r < 0)
		return r;
	/* Bytes behind a NUL would be lost. */
	if (from.len && memchr(buf_data(&from), '\0', from.len))
		return 0;
	text = buf_take_str(&from);
	return text ? hosts_replace(to, text, block) : -ENOMEM;
}

static int hosts_put_new(int etc_fd, const struct stat *st, const struct buf *text)
{
	int r = rootfd_put(etc_fd, HOSTS_NEW_NAME, st->st_mode & 0777, buf_data(text), text->len);

	if (r < 0)
		return r;
	if (fchownat(etc_fd, HOSTS_NEW_NAME, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int hosts_exchange(int etc_fd, uint64_t mount, const struct buf *text)
{
	struct stat st;
	int r = hosts_is_plain(etc_fd, mount, &st);

	if (r <= 0)
		return r;
	r = hosts_put_new(etc_fd, &st, text);
	/* Again: a rename onto a name that is mounted upon in another namespace unmounts that. */
	if (r == 0)
		r = hosts_is_plain(etc_fd, mount, &st);
	if (r == 1 && sysio_renameat(etc_fd, HOSTS_NEW_NAME, etc_fd, HOSTS_NAME) < 0)
		r = -errno;
	if (r != 1 && r != -EROFS)
		(void)sysio_unlinkat(etc_fd, HOSTS_NEW_NAME, 0);
	return r;
}

int hosts_block_put(int root_fd, const char *block)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	_cleanup_fd_ int etc_fd = -1;
	uint64_t mount;
	struct stat st;
	int r;

	r = hosts_open_etc(root_fd, &mount);
	if (r <= 0)
		return r;
	etc_fd = r;
	r = hosts_is_plain(etc_fd, mount, &st);
	if (r == 1)
		r = hosts_read(etc_fd, block, &text);
	return r == 1 ? hosts_exchange(etc_fd, mount, &text) : r;
}
