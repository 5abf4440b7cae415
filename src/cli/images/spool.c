/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

#define SPOOL_PIECE ((size_t)256 * 1024)

static int spool_open(struct spool *s, struct error *err)
{
	const char *dir = getenv("TMPDIR");
	_cleanup_str_ char *path = NULL;

	path = xformat("%s/nacre-import.XXXXXX", str_empty(dir) ? "/var/tmp" : dir);
	s->fd = mkostemp(path, O_CLOEXEC);
	if (s->fd < 0)
		return error_set(err, -errno, "make %.300s", path);
	if (sysio_unlinkat(AT_FDCWD, path, 0) < 0)
		return error_set(err, -errno, "unlink %.300s", path);
	return 0;
}

static int spool_copy(const struct spool *s, struct error *err)
{
	static uint8_t piece[SPOOL_PIECE];

	for (;;) {
		ssize_t n = sysio_read(STDIN_FILENO, piece, sizeof(piece));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, -errno, "read standard input");
		if (n == 0)
			return 0;
		r = fd_write_full(s->fd, piece, (size_t)n);
		if (r < 0)
			return error_set(err, r, "write the copy of standard input");
	}
}

int spool_stdin(struct spool *s, struct error *err)
{
	int r = spool_open(s, err);

	if (r == 0)
		r = spool_copy(s, err);
	if (r == 0)
		(void)str_printf(s->path, sizeof(s->path), "/proc/%d/fd/%d", (int)getpid(), s->fd);
	return r;
}

void spool_done(struct spool *s)
{
	s->fd = fd_close(s->fd);
}
