/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/look.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/memory/buf.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "unit.h"

static bool note(void *userdata, const struct inventory_finding *f)
{
	CHECK(buf_addf(userdata, "%s %s\n", f->kind, f->name) == 0);
	return true;
}

/* Nothing of it is recorded: the findings are what was seen. */
static char *seen(struct inventory *t)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	CHECK(buf_add_str(&b, "") == 0);
	inventory_each(t, note, &b);
	inventory_done(t);
	return buf_take_str(&b);
}

static void mounts(void)
{
	char text[] = "22 1 0:20 / / rw - ext4 /dev/x rw\n"
		      "23 22 0:21 / /var/lib/nacre rw - tmpfs x rw\n"
		      "24 22 0:22 / /var/lib/nacre/layers rw shared:1 - tmpfs x rw\n"
		      "25 22 0:23 / /var/lib/nacre/containers/1/upper rw - tmpfs x rw\n"
		      "26 22 0:24 / /var/lib/nacre2/a/b rw - tmpfs x rw\n"
		      "27 22 0:25 / /var/lib/nacre/logs/with\\040blank rw - tmpfs x rw\n";
	_cleanup_str_ char *said = NULL;
	struct inventory t;

	inventory_init(&t);
	look_mounts(&t, text, "/var/lib/nacre");
	said = seen(&t);
	CHECK_STR(said, "mount /var/lib/nacre/containers/1/upper\n"
			"mount /var/lib/nacre/logs/with blank\n");
}

static int make(int dir_fd, const char *path)
{
	return rootfd_make_dir(dir_fd, path);
}

static void directories(void)
{
	char name[] = "/tmp/look-XXXXXX";
	_cleanup_fd_ int fd = -1;
	_cleanup_fd_ int groups_fd = -1;
	_cleanup_str_ char *said = NULL;
	struct error err = ERROR_INIT;
	struct look look;
	struct inventory t;

	CHECK(mkdtemp(name));
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	inventory_init(&t);
	groups_fd = make(fd, "groups");
	CHECK(groups_fd >= 0);
	look = (struct look){ .root_fd = fd, .run_fd = fd, .cgroup_fd = fd };
	(void)fd_close(make(fd, "groups/a/b"));
	(void)fd_close(make(fd, "logs/1"));
	(void)fd_close(make(fd, "blobs/sha256/2"));
	(void)fd_close(make(fd, "i/3"));
	(void)fd_close(make(fd, "machines/4"));
	(void)fd_close(make(fd, "node"));
	CHECK(mknodat(fd, "i/3/rpc.sock", S_IFREG | 0600, 0) == 0);
	CHECK(fd_write_file(fd, "i/3/rpc.sock", "") == 0);
	CHECK(mknodat(fd, "i/3/qmp.sock", S_IFREG | 0600, 0) == 0);
	look.cgroup_fd = openat(fd, "groups", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mknodat(fd, "machines/4/qmp.sock", S_IFREG | 0600, 0) == 0);
	CHECK(mknodat(look.cgroup_fd, "a/cgroup.events", S_IFREG | 0600, 0) == 0);
	CHECK(fd_write_file(look.cgroup_fd, "a/cgroup.events", "populated 1\nfrozen 0\n") == 0);
	CHECK_INT(look_take(&look, &t, &err), 0);
	(void)fd_close(look.cgroup_fd);
	said = seen(&t);
	/* Of a path below another one only the upper is told. */
	CHECK_STR(said, "cgroup a\nprocesses a\ndirectory node\ndirectory i/3\n"
			"socket i/3/rpc.sock\nsocket i/3/qmp.sock\ndirectory machines/4\n"
			"socket machines/4/qmp.sock\nlog 1\nblob 2\n");
	for (const char *const *n = (const char *const[]){ "groups", "logs", "blobs", "i",
							   "machines", "node", NULL };
	     *n; n++)
		CHECK_INT(rootfd_remove_tree(fd, *n), 0);
	CHECK(rmdir(name) == 0);
}

UNIT_MAIN({ "mount points", mounts }, { "directories", directories })
