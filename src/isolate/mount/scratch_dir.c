/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/scratch_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define SCRATCH_DIR_MODE 0777
#define SCRATCH_FILE_MODE 0666

/* Its mode, whatever the umask is. Only who has made it sets that: a container may have changed it
 * since. */
static int scratch_make_dir(int own_fd, const char *place)
{
	_cleanup_fd_ int fd = -1;

	if (sysio_mkdirat(own_fd, place, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = rootfd_open(own_fd, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	return fchmod(fd, SCRATCH_DIR_MODE) < 0 ? -errno : 0;
}

static int scratch_make_file(int own_fd, const char *place)
{
	_cleanup_fd_ int fd = rootfd_open(own_fd, place, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
					  SCRATCH_FILE_MODE);

	if (fd < 0)
		return fd == -EEXIST ? 0 : fd;
	return fchmod(fd, SCRATCH_FILE_MODE) < 0 ? -errno : 0;
}

int scratch_dir_open(int own_fd, const char *name, bool is_file, struct error *err)
{
	char place[sizeof(SCRATCH_DIR_PREFIX) + SCRATCH_DIR_NAME_MAX];
	int r;

	if (str_empty(name) || strchr(name, '/') ||
	    str_printf(place, sizeof(place), SCRATCH_DIR_PREFIX "%s", name) < 0)
		return error_set(err, -EINVAL, "make the volume %.80s", name);
	r = is_file ? scratch_make_file(own_fd, place) : scratch_make_dir(own_fd, place);
	if (r == 0)
		r = rootfd_open(own_fd, place, O_PATH | O_NOFOLLOW, 0);
	return r < 0 ? error_set(err, r, "make the volume %s", name) : r;
}
