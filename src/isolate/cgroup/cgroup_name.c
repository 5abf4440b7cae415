/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define NAME_ATTRIBUTE "trusted.nacre.name"
/* More than a layer has cells. */
#define NAME_TRIES_MAX 1024

static int name_open_dir(int parent_fd, const char *name)
{
	int fd = sysio_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int cgroup_make_numbered(int parent_fd, const char *prefix, unsigned *number,
			 char ret_dir[CGROUP_DIR_SIZE], struct error *err)
{
	int fd;
	int r;

	for (int i = 0; i < NAME_TRIES_MAX; i++) {
		r = str_printf(ret_dir, CGROUP_DIR_SIZE, "%s" CGROUP_NUMBERED "%u", prefix,
			       ++*number);
		if (r < 0)
			return error_set(err, r, "name a cgroup");
		if (sysio_mkdirat(parent_fd, ret_dir, 0755) == 0) {
			fd = name_open_dir(parent_fd, ret_dir);
			return fd < 0 ? error_set(err, fd, "open the cgroup %s", ret_dir) : fd;
		}
		if (errno != EEXIST)
			return error_set(err, -errno, "make the cgroup %s", ret_dir);
	}
	return error_set(err, -EEXIST, "make the cgroup %s", ret_dir);
}

unsigned cgroup_number(const char *dir)
{
	const char *plus = strstr(dir, CGROUP_NUMBERED);

	return plus ? (unsigned)strtoul(plus + strlen(CGROUP_NUMBERED), NULL, 10) : 0;
}

int cgroup_set_name(int dir_fd, const char *name)
{
	return fsetxattr(dir_fd, NAME_ATTRIBUTE, name, strlen(name), XATTR_CREATE) < 0 ? -errno : 0;
}

/* -ENODATA where it has none. */
static int name_get(int parent_fd, const char *dir, char ret[CGROUP_DIR_SIZE])
{
	_cleanup_fd_ int fd = name_open_dir(parent_fd, dir);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = fgetxattr(fd, NAME_ATTRIBUTE, ret, CGROUP_DIR_SIZE - 1);
	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

/* Calls visit() for each numbered group until it returns something. */
static int name_each(int parent_fd, int (*visit)(void *data, int parent_fd, const char *dir),
		     void *data)
{
	_cleanup_fd_ int fd = name_open_dir(parent_fd, ".");
	const struct dirent *e;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1;
	while (r == 0) {
		errno = 0;
		e = readdir(dir);
		if (!e) {
			r = -errno;
			break;
		}
		if (e->d_type == DT_DIR && strstr(e->d_name, CGROUP_NUMBERED))
			r = visit(data, parent_fd, e->d_name);
	}
	(void)closedir(dir);
	return r;
}

struct name_search {
	const char *name;
	char *dir;
};

static int name_compare(void *data, int parent_fd, const char *dir)
{
	const struct name_search *search = data;
	char name[CGROUP_DIR_SIZE];

	if (name_get(parent_fd, dir, name) < 0 || !str_eq(name, search->name))
		return 0;
	(void)str_copy(search->dir, CGROUP_DIR_SIZE, dir);
	return 1;
}

int cgroup_find_name(int parent_fd, const char *name, char ret_dir[CGROUP_DIR_SIZE])
{
	struct name_search search = { name, ret_dir };
	_cleanup_fd_ int fd = name_open_dir(parent_fd, name);
	int r;

	if (fd >= 0)
		return str_copy(ret_dir, CGROUP_DIR_SIZE, name);
	r = name_each(parent_fd, name_compare, &search);
	return r > 0 ? 0 : r == 0 ? -ENOENT : r;
}

/* Puts the directory of that name behind the path. */
static int name_append(int base_fd, const char *name, char *path, size_t size)
{
	_cleanup_fd_ int fd = name_open_dir(base_fd, path);
	char dir[CGROUP_DIR_SIZE];
	size_t len = strlen(path);

	if (fd < 0 || cgroup_find_name(fd, name, dir) < 0)
		(void)str_copy(dir, sizeof(dir), name);
	return str_printf(path + len, size - len, "/%s", dir);
}

int cgroup_find_below(int base_fd, const char *group, const char *first, const char *second,
		      char *ret, size_t size)
{
	int r = str_copy(ret, size, group);

	if (r >= 0)
		r = name_append(base_fd, first, ret, size);
	if (r >= 0 && !str_empty(second))
		r = name_append(base_fd, second, ret, size);
	return r < 0 ? r : 0;
}

struct name_walk {
	void (*fn)(void *userdata, const char *dir);
	void *userdata;
};

static int name_look(void *data, int parent_fd, const char *dir)
{
	const struct name_walk *walk = data;
	char name[CGROUP_DIR_SIZE];

	if (name_get(parent_fd, dir, name) == -ENODATA)
		walk->fn(walk->userdata, dir);
	return 0;
}

int cgroup_each_nameless(int parent_fd, void (*fn)(void *userdata, const char *dir), void *userdata)
{
	struct name_walk walk = { fn, userdata };

	return name_each(parent_fd, name_look, &walk);
}
