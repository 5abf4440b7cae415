/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_TESTS_SCRATCH_H
#define NACRE_TESTS_SCRATCH_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"

/* Removes a test's directory in /tmp, which may be a mount of its own. 0 or a negative errno. */
static inline int scratch_remove(const char *path)
{
	_cleanup_fd_ int tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (tmp_fd < 0)
		return -errno;
	return rootfd_remove_tree(tmp_fd, strrchr(path, '/') + 1);
}

#endif
