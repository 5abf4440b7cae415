/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/place.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"

void place_done(struct place *p)
{
	p->dir_fd = fd_close(p->dir_fd);
}

int place_fail(struct error *err, int r, const char *what, const char *path)
{
	static const int faults_of_archive[] = { -ENOENT, -ENOTDIR, -EISDIR,   -ELOOP,
						 -EEXIST, -EINVAL,  -EXDEV,    -ENAMETOOLONG,
						 -EPERM,  -EMLINK,  -ENOTEMPTY };

	for (size_t i = 0; i < ARRAY_SIZE(faults_of_archive); i++)
		if (faults_of_archive[i] == r)
			return error_refuse(err, ERROR_INVALID, "entry \"%.200s\": cannot %s: %s",
					    path, what, strerror(-r));
	return error_set(err, r, "entry \"%.200s\": cannot %s", path, what);
}

int place_normalise(char ret[PLACE_PATH_MAX + 1], const char *name, struct error *err)
{
	size_t len = 0;

	if (!name)
		return error_refuse(err, ERROR_INVALID, "an entry has no name that can be read");
	while (*name) {
		size_t n = strcspn(name, "/");

		if (n == 2 && memcmp(name, "..", 2) == 0)
			return error_refuse(err, ERROR_INVALID,
					    "entry \"%.200s\": a name must not hold \"..\"", name);
		if (n > PLACE_NAME_MAX || len + n + 1 > PLACE_PATH_MAX)
			return error_refuse(err, ERROR_INVALID,
					    "entry \"%.80s...\": the name is too long", name);
		if (n > 0 && !(n == 1 && *name == '.')) {
			if (len)
				ret[len++] = '/';
			memcpy(ret + len, name, n);
			len += n;
		}
		name += n + (name[n] == '/');
	}
	ret[len] = '\0';
	return 0;
}

static void place_dir(char ret[PLACE_PATH_MAX + 1], const char *path)
{
	const char *slash = strrchr(path, '/');

	(void)str_copy(ret, PLACE_PATH_MAX + 1, path);
	ret[slash ? slash - path : 0] = '\0';
}

int place_look(int root_fd, const char *path, struct place *ret)
{
	char dir[PLACE_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	struct place p = PLACE_INIT;
	int r;

	place_dir(dir, path);
	r = str_copy(p.name, sizeof(p.name), slash ? slash + 1 : path);
	if (r < 0)
		return r;
	if (*p.name) {
		p.dir_fd = rootfd_open(root_fd, *dir ? dir : "/", O_PATH | O_DIRECTORY, 0);
		if (p.dir_fd < 0)
			return p.dir_fd;
	}
	*ret = p;
	return 0;
}

int place_find(int root_fd, const char *path, bool make, struct place *ret, struct error *err)
{
	int r = place_look(root_fd, path, ret);

	if (r == -ENOENT && !make)
		return -ENOENT;
	if (r == -ENOENT) {
		_cleanup_fd_ int fd = -1;
		char dir[PLACE_PATH_MAX + 1];

		place_dir(dir, path);
		fd = rootfd_make_dir(root_fd, dir);
		r = fd < 0 ? fd : place_look(root_fd, path, ret);
	}
	return r < 0 ? place_fail(err, r, "reach its directory", path) : 0;
}
