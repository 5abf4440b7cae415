/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "net/port/port.h"

/* Deeper than instances, cells and containers can be; what a container makes below is its own. */
#define LOOK_DEPTH_MAX 40
#define LOOK_MOUNTINFO_MAX (16U * 1024 * 1024)

static void look_close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* NULL with a negative errno. */
static DIR *look_open_dir(int dir_fd, const char *name, int *ret)
{
	int fd = sysio_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	DIR *dir = NULL;

	if (fd >= 0)
		dir = fdopendir(fd);
	if (dir)
		return dir;
	*ret = -errno;
	(void)fd_close(fd);
	return NULL;
}

/* ---- cgroups ---- */

static bool look_is_populated(int group_fd)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;

	if (fd_read_file(group_fd, "cgroup.events", 4096, &b) < 0)
		return false;
	text = buf_take_str(&b);
	return text && strstr(text, "populated 1");
}

/* NOLINTNEXTLINE(misc-no-recursion): not deeper than LOOK_DEPTH_MAX */
static int look_groups(struct inventory *t, int parent_fd, const char *name, const char *path,
		       unsigned depth)
{
	_cleanup_(look_close_dir) DIR *dir = NULL;
	int r;

	dir = look_open_dir(parent_fd, name, &r);
	if (!dir)
		return r == -ENOENT || r == -ENODEV ? 0 : r;
	if (*path) {
		inventory_seen(t, "cgroup", path);
		if (look_is_populated(dirfd(dir)))
			inventory_seen(t, "processes", path);
	}
	if (depth == LOOK_DEPTH_MAX)
		return 0;
	for (;;) {
		const struct dirent *e = readdir(dir);
		char below[PATH_MAX];

		if (!e)
			return 0;
		if (e->d_type != DT_DIR || str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
		    str_printf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", e->d_name) <
			    0)
			continue;
		r = look_groups(t, dirfd(dir), e->d_name, below, depth + 1);
		if (r < 0)
			return r;
	}
}

/* ---- directories ---- */

static int look_names(struct inventory *t, const char *kind, int dir_fd, const char *name)
{
	_cleanup_(look_close_dir) DIR *dir = NULL;
	int r;

	dir = look_open_dir(dir_fd, name, &r);
	if (!dir)
		return r == -ENOENT ? 0 : r;
	for (;;) {
		const struct dirent *e = readdir(dir);

		if (!e)
			return 0;
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			inventory_seen(t, kind, e->d_name);
	}
}

/* The sockets of a keeper, or of what stands in front of it (instance/provider.h), without the file
 * for its last words. */
static void look_sockets(struct inventory *t, int run_fd, const char *dir)
{
	static const char *const names[] = { "rpc.sock", "fd.sock", "gate.sock", "qmp.sock" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[NAME_MAX + 64];
		int fd;

		if (str_printf(path, sizeof(path), "%s/%s", dir, names[i]) < 0)
			continue;
		fd = sysio_openat(run_fd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
		if (fd >= 0)
			inventory_seen(t, "socket", path);
		(void)fd_close(fd);
	}
}

/* One for each that has processes of its own: `of` is "i" or "machines". */
static int look_places(struct inventory *t, int run_fd, const char *of)
{
	_cleanup_(look_close_dir) DIR *dir = NULL;
	int r;

	dir = look_open_dir(run_fd, of, &r);
	if (!dir)
		return r == -ENOENT ? 0 : r;
	for (;;) {
		const struct dirent *e = readdir(dir);
		char path[NAME_MAX + 16];

		if (!e)
			return 0;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, "..") ||
		    str_printf(path, sizeof(path), "%s/%s", of, e->d_name) < 0)
			continue;
		inventory_seen(t, "directory", path);
		look_sockets(t, run_fd, path);
	}
}

static int look_run(struct inventory *t, int run_fd)
{
	_cleanup_fd_ int node_fd = -1;
	int r;

	node_fd = sysio_openat(run_fd, "node", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (node_fd >= 0) {
		inventory_seen(t, "directory", "node");
		look_sockets(t, run_fd, "node");
	}
	r = look_places(t, run_fd, "i");
	return r < 0 ? r : look_places(t, run_fd, "machines");
}

/* ---- mounts ---- */

/* The kernel writes blanks and the like as \040. */
static void look_unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* Field 5 of a line. */
static char *look_mount_point(char *line)
{
	char *save = NULL;
	char *word = strtok_r(line, " ", &save);

	for (int i = 1; i < 5 && word; i++)
		word = strtok_r(NULL, " ", &save);
	if (word)
		look_unescape(word);
	return word;
}

void look_mounts(struct inventory *t, char *mountinfo, const char *dir)
{
	size_t n = strlen(dir);
	char *save = NULL;

	for (char *line = strtok_r(mountinfo, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *point = look_mount_point(line);

		if (point && strncmp(point, dir, n) == 0 && point[n] == '/' &&
		    strchr(point + n + 1, '/'))
			inventory_seen(t, "mount", point);
	}
}

static int look_mounts_of(struct inventory *t, int dir_fd)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char link[40], dir[PATH_MAX];
	ssize_t n;
	int r;

	r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", LOOK_MOUNTINFO_MAX, &b);
	if (r < 0)
		return r;
	text = buf_take_str(&b);
	if (!text)
		return -ENOMEM;
	(void)str_printf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	n = readlink(link, dir, sizeof(dir) - 1);
	if (n < 0)
		return -errno;
	dir[n] = '\0';
	look_mounts(t, text, dir);
	return 0;
}

static int look_ports(struct inventory *t, struct error *err)
{
	char thing[IF_NAMESIZE + 8];
	struct port_seen *seen = NULL;
	size_t n = 0;
	int r = port_list(&seen, &n, err);

	inventory_may_below(t, "port", "ports");
	for (size_t i = 0; i < n && r == 0; i++) {
		(void)str_printf(thing, sizeof(thing), "ports/%s", seen[i].name);
		inventory_seen(t, "port", thing);
	}
	free(seen);
	return r;
}

/* ---- all of it ---- */

int look_take(const struct look *l, struct inventory *t, struct error *err)
{
	static const struct {
		const char *kind, *name;
	} dirs[] = {
		{ "log", "logs" },     { "rootfs", "containers" }, { "blob", "blobs/sha256" },
		{ "layer", "layers" }, { "staging", "staging" },   { "erofs", "erofs" },
	};
	int r;

	r = look_groups(t, l->cgroup_fd, ".", "", 0);
	if (r < 0)
		return error_set(err, r, "read the cgroups");
	r = look_run(t, l->run_fd);
	if (r < 0)
		return error_set(err, r, "read the run directory");
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		r = look_names(t, dirs[i].kind, l->root_fd, dirs[i].name);
		if (r < 0)
			return error_set(err, r, "read %s in the root directory", dirs[i].name);
	}
	r = look_mounts_of(t, l->root_fd);
	if (r == 0)
		r = look_mounts_of(t, l->run_fd);
	return r < 0 ? error_set(err, r, "read the mounts") : look_ports(t, err);
}
