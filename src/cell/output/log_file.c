/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"

#define FILE_NAME_MAX (NAME_LABEL_MAX + 24)

void log_file_init(struct log_file *f, int fd, int dir_fd, const char *name,
		   const struct log_policy *policy)
{
	struct stat st;

	*f = (struct log_file){
		.fd = fd,
		.dir_fd = dir_fd,
		.max_bytes = dir_fd >= 0 && policy->max_files > 0 ? policy->max_bytes : 0,
		.max_files = policy->max_files,
	};
	(void)str_printf(f->name, sizeof(f->name), "%s.log", name);
	if (fd >= 0 && fstat(fd, &st) == 0)
		f->size = (uint64_t)st.st_size;
}

void log_file_change(struct log_file *f, int fd)
{
	(void)fd_close(f->fd);
	f->fd = fd;
	f->torn = false;
}

void log_file_done(struct log_file *f)
{
	f->fd = fd_close(f->fd);
	f->dir_fd = fd_close(f->dir_fd);
}

/* ---- a new file ---- */

/* The n-th oldest: 0 is the one that is written. */
static void log_file_name(const struct log_file *f, uint32_t n, char to[FILE_NAME_MAX])
{
	if (n == 0)
		(void)str_copy(to, FILE_NAME_MAX, f->name);
	else
		(void)str_printf(to, FILE_NAME_MAX, "%s.%u", f->name, n);
}

static int log_file_create(const struct log_file *f, const char *name)
{
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = sysio_openat(f->dir_fd, name, flags, 0640);

	if (fd < 0 && errno == EEXIST && sysio_unlinkat(f->dir_fd, name, 0) == 0)
		fd = sysio_openat(f->dir_fd, name, flags, 0640);
	return fd < 0 ? -errno : fd;
}

/* From the oldest on, so that no name is taken twice; again, it goes on where it failed. */
static int log_file_shift(struct log_file *f)
{
	char from[FILE_NAME_MAX], to[FILE_NAME_MAX];

	if (!f->moving)
		f->hole = (uint32_t)MIN(f->number + 1, (uint64_t)f->max_files - 1);
	f->moving = true;
	for (; f->hole > 0; f->hole--) {
		log_file_name(f, f->hole - 1, from);
		log_file_name(f, f->hole, to);
		if (sysio_renameat(f->dir_fd, from, f->dir_fd, to) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* Until the last step this file goes on to be the one that is written. */
static int log_file_begin_next(struct log_file *f, uint64_t at)
{
	char fresh[FILE_NAME_MAX], head[CRILOG_MARK_MAX];
	_cleanup_fd_ int fd = -1;
	size_t n;
	int r;

	(void)str_printf(fresh, sizeof(fresh), "%s.new", f->name);
	fd = log_file_create(f, fresh);
	if (fd < 0)
		return fd;
	n = crilog_mark_file(head, clock_real(), f->number + 1, at);
	r = fd_write_full(fd, head, n);
	if (r == 0)
		r = log_file_shift(f);
	if (r == 0 && sysio_renameat(f->dir_fd, fresh, f->dir_fd, f->name) < 0)
		r = -errno;
	if (r < 0) {
		(void)sysio_unlinkat(f->dir_fd, fresh, 0);
		return r;
	}
	(void)fd_close(f->fd);
	f->fd = TAKE_FD(fd);
	f->moving = false;
	f->number++;
	f->size = n;
	return 0;
}

/* ---- writing ---- */

static size_t through_line(const uint8_t *data, size_t len)
{
	const uint8_t *feed = memchr(data, '\n', len);

	return feed ? (size_t)(feed - data) + 1 : len;
}

/* How much of the data belongs into this file; 0: none of it. */
static size_t log_file_room(const struct log_file *f, const uint8_t *data, size_t len)
{
	const uint8_t *feed;

	if (f->max_bytes == 0 || f->size + len <= f->max_bytes)
		return len;
	if (f->torn)
		return through_line(data, len);
	feed = f->size < f->max_bytes ? memrchr(data, '\n', f->max_bytes - f->size) : NULL;
	if (feed)
		return (size_t)(feed - data) + 1;
	/* A file has one line at least. */
	return f->size <= CRILOG_MARK_MAX ? through_line(data, len) : 0;
}

static int log_file_put(struct log_file *f, const void *data, size_t len, size_t *ret_n)
{
	ssize_t n;

	do
		n = sysio_write(f->fd, data, len);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	f->size += (uint64_t)n;
	*ret_n = (size_t)n;
	return 0;
}

int log_file_write(struct log_file *f, const uint8_t *data, size_t len, uint64_t end, size_t *ret_n)
{
	int r = 0;

	*ret_n = 0;
	while (*ret_n < len && r == 0) {
		const uint8_t *rest = data + *ret_n;
		size_t room = log_file_room(f, rest, len - *ret_n), n = 0;

		if (room == 0) {
			r = log_file_begin_next(f, end - crilog_count(rest, len - *ret_n));
			continue;
		}
		r = log_file_put(f, rest, room, &n);
		if (n > 0)
			f->torn = rest[n - 1] != '\n';
		*ret_n += n;
	}
	return r;
}

/* ---- going on ---- */

#define LOG_FILE_READ_SIZE ((size_t)65536)

/* The file that is written; where a change of names was cut off, that is brought to its end. */
static int log_file_reopen(const struct log_file *f)
{
	int flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
	char fresh[FILE_NAME_MAX], before[FILE_NAME_MAX];
	int fd = sysio_openat(f->dir_fd, f->name, flags, 0);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	(void)str_printf(fresh, sizeof(fresh), "%s.new", f->name);
	log_file_name(f, 1, before);
	if (sysio_renameat(f->dir_fd, fresh, f->dir_fd, f->name) < 0 &&
	    sysio_renameat(f->dir_fd, before, f->dir_fd, f->name) < 0)
		flags |= O_CREAT;
	fd = sysio_openat(f->dir_fd, f->name, flags, 0640);
	return fd < 0 ? -errno : fd;
}

/* Counts whole lines on from *at; a mark says where the output stands. */
static void log_file_count(struct log_file *f, const uint8_t *lines, size_t len, uint64_t *at)
{
	struct crilog_record record;

	while (len > 0) {
		size_t n = through_line(lines, len);

		if (crilog_parse(&record, lines, n) == 0 && record.mark == CRILOG_MARK_FILE) {
			f->number = record.file;
			*at = record.number;
		} else {
			*at += crilog_count(lines, n);
		}
		lines += n;
		len -= n;
	}
}

/* Where the output stands behind the whole lines of the file, and which file it is. */
static int log_file_measure(struct log_file *f, uint64_t *ret_at)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	uint64_t at = 0, end = 0;
	uint8_t *to;
	int r;

	for (;;) {
		const uint8_t *feed;
		size_t whole;
		ssize_t n;

		r = buf_reserve(&b, LOG_FILE_READ_SIZE, &to);
		if (r < 0)
			return r;
		n = sysio_pread(f->fd, to, LOG_FILE_READ_SIZE, (off_t)(end + b.len));
		if (n <= 0) {
			f->size = end;
			*ret_at = at;
			return n < 0 ? -errno : 0;
		}
		buf_added(&b, (size_t)n);
		feed = memrchr(buf_data(&b), '\n', b.len);
		if (!feed)
			continue;
		whole = (size_t)(feed - buf_data(&b)) + 1;
		log_file_count(f, buf_data(&b), whole, &at);
		end += whole;
		buf_consume(&b, whole);
	}
}

static int log_file_go_on(struct log_file *f, uint64_t *ret_at)
{
	int r = f->fd < 0 ? f->fd : log_file_measure(f, ret_at);

	/* A line that is not whole is told again by whoever has it. */
	if (r == 0 && sysio_ftruncate(f->fd, (off_t)f->size) < 0)
		r = -errno;
	if (r < 0)
		log_file_done(f);
	return r;
}

int log_file_resume(struct log_file *f, int dir_fd, const char *name,
		    const struct log_policy *policy, uint64_t *ret_at)
{
	log_file_init(f, -1, dir_fd, name, policy);
	f->fd = log_file_reopen(f);
	return log_file_go_on(f, ret_at);
}

int log_file_mark(struct log_file *f, uint64_t at)
{
	char mark[CRILOG_MARK_MAX];
	size_t n = crilog_mark_file(mark, clock_real(), f->number + 1, at);
	int r = fd_write_full(f->fd, mark, n);

	if (r < 0)
		return r;
	f->number++;
	f->size += n;
	return 0;
}

int log_file_take(struct log_file *f, int fd, const struct log_policy *policy, bool fresh,
		  uint64_t *ret_at)
{
	int r;

	log_file_init(f, fd, -1, "", policy);
	if (!fresh)
		return log_file_go_on(f, ret_at);
	*ret_at = 0;
	r = f->size > 0 ? log_file_mark(f, 0) : 0;
	if (r < 0)
		log_file_done(f);
	return r;
}
