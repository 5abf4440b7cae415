/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/named.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"
#include "oci/cmd/report.h"
#include "oci/config/convert.h"
#include "oci/config/given.h"

#define NAMED_FILE_MAX 65536

/* The hierarchy's root, or -ENOENT: this container wants no group in it. */
static int named_root(const struct container *c, struct error *err)
{
	const struct oci_mount *m = c->config ? convert_named_mount(c->config) : NULL;
	_cleanup_fd_ int fd = -1;
	struct statfs fs;

	if (!m || !c->cgroup)
		return -ENOENT;
	fd = given_open(m->source, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return error_set(err, fd, "open %s", m->source);
	if (fstatfs(fd, &fs) < 0)
		return error_set(err, -errno, "look at %s", m->source);
	return fs.f_type == CGROUP_SUPER_MAGIC ? TAKE_FD(fd) : -ENOENT;
}

/* Of this process, below the root of the hierarchy. */
static int named_own(int root, struct error *err)
{
	static const char mark[] = ":name=systemd:/";
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char *line, *save = NULL;
	int fd = -ENOENT;
	int r;

	r = given_read("/proc/thread-self/cgroup", NAMED_FILE_MAX, &b);
	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return error_set(err, r, "read /proc/thread-self/cgroup");
	for (line = strtok_r((char *)b.base + b.head, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		const char *path = strstr(line, mark);

		if (!path)
			continue;
		path += strlen(mark);
		fd = *path ? cgroup_open_path(root, path) : fd_copy(root);
		break;
	}
	return fd < 0 ? error_set(err, fd, "find the own group of name=systemd") : fd;
}

/* "0" is the thread that writes. */
static int named_go(int group_fd, struct error *err)
{
	int r = fd_write_file(group_fd, "tasks", "0");

	return r < 0 ? error_set(err, r, "enter a group of name=systemd") : 0;
}

int named_spawn(const struct container *c, struct isolate_plan *plan, struct isolate_child *child,
		struct error *err)
{
	_cleanup_fd_ int root = named_root(c, err), group = -1, own = -1;
	struct error back = ERROR_INIT;
	int r;

	if (root == -ENOENT)
		return isolate_spawn(plan, child, err);
	if (root < 0)
		return root;
	own = named_own(root, err);
	if (own < 0)
		return own;
	group = cgroup_make_path(root, c->cgroup, 0, 0, err);
	if (group < 0)
		return error_wrap(err, group, "make the group of name=systemd");
	r = named_go(group, err);
	if (r < 0)
		return r;
	r = isolate_spawn(plan, child, err);
	if (named_go(own, &back) < 0)
		report_warning("%s", error_text(&back));
	return r;
}

int named_remove(const struct container *c, struct error *err)
{
	_cleanup_fd_ int root = named_root(c, err);
	int r;

	if (root < 0)
		return root == -ENOENT ? 0 : root;
	r = cgroup_remove_path(root, c->cgroup);
	return r < 0 ? error_set(err, r, "remove the group %s of name=systemd", c->cgroup) : 0;
}
