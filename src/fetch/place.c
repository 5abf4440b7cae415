/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/place.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"
#include "base/rootfd.h"
#include "base/str.h"

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

int place_find(int root_fd, const char *path, bool make, struct place *ret, struct error *err)
{
	char dir[PLACE_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	struct place p = PLACE_INIT;
	int r;

	(void)str_copy(dir, sizeof(dir), path);
	dir[slash ? slash - path : 0] = '\0';
	r = str_copy(p.name, sizeof(p.name), slash ? slash + 1 : path);
	if (r < 0)
		return place_fail(err, r, "take its name", path);
	if (!*p.name) {
		*ret = p;
		return 0;
	}
	p.dir_fd = rootfd_open(root_fd, *dir ? dir : "/", O_PATH | O_DIRECTORY, 0);
	if (p.dir_fd == -ENOENT && !make)
		return -ENOENT;
	if (p.dir_fd == -ENOENT)
		p.dir_fd = rootfd_make_dir(root_fd, dir);
	if (p.dir_fd < 0)
		return place_fail(err, p.dir_fd, "reach its directory", path);
	*ret = p;
	return 0;
}
