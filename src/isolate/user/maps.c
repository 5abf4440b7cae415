/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/user/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define MAPS_WRITE_MAX 4095 /* the kernel takes one write of less than a page */
#define MAPS_READ_MAX (ISOLATE_ID_MAPS_MAX * 33 + 1)

static int maps_open(int proc_fd, pid_t pid, const char *file, int flags)
{
	char name[48];
	int r = str_printf(name, sizeof(name), "%d/%s", (int)pid, file);

	return r < 0 ? r : rootfd_open_beneath(proc_fd, name, flags);
}

/* Whether the lines of text are just these ranges, in any order, since the kernel sorts many. */
static bool maps_are(char *text, const struct isolate_id_map *map, size_t n)
{
	size_t seen = 0;
	char *at = text;

	for (;;) {
		struct isolate_id_map line;
		char *end;
		bool known = false;

		line.inside = (uint32_t)strtoul(at, &end, 10);
		if (end == at)
			return seen == n;
		line.outside = (uint32_t)strtoul(end, &end, 10);
		line.count = (uint32_t)strtoul(end, &at, 10);
		for (size_t i = 0; i < n; i++)
			known = known ||
				(map[i].inside == line.inside && map[i].outside == line.outside &&
				 map[i].count == line.count);
		if (!known)
			return false;
		seen++;
	}
}

static int maps_read(int proc_fd, pid_t pid, const char *file, char text[MAPS_READ_MAX])
{
	_cleanup_fd_ int fd = maps_open(proc_fd, pid, file, O_RDONLY);
	size_t len = 0;

	if (fd < 0)
		return fd;
	while (len < MAPS_READ_MAX - 1) {
		ssize_t k = sysio_read(fd, text + len, MAPS_READ_MAX - 1 - len);

		if (k < 0)
			return -errno;
		if (k == 0)
			break;
		len += (size_t)k;
	}
	text[len] = '\0';
	return 0;
}

static int maps_read_back(int proc_fd, pid_t pid, const char *file,
			  const struct isolate_id_map *map, size_t n)
{
	char text[MAPS_READ_MAX];
	int r = maps_read(proc_fd, pid, file, text);

	if (r < 0)
		return r;
	return maps_are(text, map, n) ? 0 : -EIO;
}

int maps_look(int proc_fd, pid_t pid, uint32_t uid, uint32_t *ret)
{
	char text[MAPS_READ_MAX];
	char *at = text;
	int r = maps_read(proc_fd, pid, "uid_map", text);

	if (r < 0)
		return r;
	for (;;) {
		char *end;
		unsigned long inside = strtoul(at, &end, 10), outside, count;

		if (end == at)
			return -ENOENT;
		outside = strtoul(end, &end, 10);
		count = strtoul(end, &at, 10);
		if (uid < inside || uid - inside >= count)
			continue;
		*ret = (uint32_t)(outside + (uid - inside));
		return 0;
	}
}

static int maps_write_file(int proc_fd, pid_t pid, const char *file, const char *text, size_t len,
			   struct error *err)
{
	_cleanup_fd_ int fd = maps_open(proc_fd, pid, file, O_WRONLY);

	if (fd < 0)
		return error_set(err, fd, "%s: open it", file);
	if (sysio_write(fd, text, len) == (ssize_t)len)
		return 0;
	if (errno == EPERM)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s: these ids need CAP_SETUID and CAP_SETGID", file);
	if (errno == EINVAL)
		return error_refuse(err, ERROR_INVALID, "%s: ranges overlap", file);
	return error_set(err, -errno, "%s: write it", file);
}

static int maps_write_map(int proc_fd, pid_t pid, const char *file,
			  const struct isolate_id_map *map, size_t n, struct error *err)
{
	char text[MAPS_WRITE_MAX + 1] = "";
	size_t len = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		r = str_printf(text + len, sizeof(text) - len, "%u %u %u\n", map[i].inside,
			       map[i].outside, map[i].count);
		if (r < 0)
			return error_refuse(err, ERROR_INVALID,
					    "%s: more ranges than fit into one write", file);
		len += (size_t)r;
	}
	r = maps_write_file(proc_fd, pid, file, text, len, err);
	if (r < 0)
		return r;
	r = maps_read_back(proc_fd, pid, file, map, n);
	return r < 0 ? error_set(err, r, "%s: read it back", file) : 0;
}

int maps_write(int proc_fd, pid_t pid, const struct maps *maps, struct error *err)
{
	int r = 0;

	if (maps->deny_setgroups)
		r = maps_write_file(proc_fd, pid, "setgroups", "deny", strlen("deny"), err);
	if (r == 0)
		r = maps_write_map(proc_fd, pid, "gid_map", maps->gid, maps->n_gid, err);
	if (r == 0)
		r = maps_write_map(proc_fd, pid, "uid_map", maps->uid, maps->n_uid, err);
	return r;
}

uint32_t maps_outside(const struct isolate_id_map *map, size_t n, uint32_t inside)
{
	for (size_t i = 0; i < n; i++)
		if (inside >= map[i].inside && inside - map[i].inside < map[i].count)
			return map[i].outside + (inside - map[i].inside);
	return inside;
}
