/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_BED_TEST_H
#define NACRE_ISOLATE_TREE_BED_TEST_H

#include "isolate/spawn/spawn_bed_test.h"

/* The mounts that other runtimes make in a container by default, and sources to bind. */

#define TEST_BASE 100000
#define TEST_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

#define NEW(where, kind, what, attrs)                                                              \
	{                                                                                          \
		.target = (where), .fs = (kind), .options = (what), .attr_set = (attrs),           \
		.source_fd = -1, .idmap_fd = -1                                                    \
	}

/* The mounts in the default configurations of other runtimes. */
static _unused_ const struct isolate_mount test_mounts[] = {
	NEW("/proc", "proc", NULL, TEST_SAFE),
	NEW("/dev", "tmpfs", "mode=755,size=65536k", MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME),
	NEW("/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620,gid=5",
	    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
	NEW("/dev/shm", "tmpfs", "mode=1777,size=65536k", TEST_SAFE),
	NEW("/dev/mqueue", "mqueue", NULL, TEST_SAFE),
	NEW("/sys", "sysfs", NULL, TEST_SAFE | MOUNT_ATTR_RDONLY),
	NEW("/sys/fs/cgroup", "cgroup", NULL, TEST_SAFE | MOUNT_ATTR_RDONLY),
};

static _unused_ const struct isolate_device test_devices[] = {
	{ "/dev/null", 'c', 1, 3, 0666, 0, 0, -1 },    { "/dev/zero", 'c', 1, 5, 0666, 0, 0, -1 },
	{ "/dev/full", 'c', 1, 7, 0666, 0, 0, -1 },    { "/dev/random", 'c', 1, 8, 0666, 0, 0, -1 },
	{ "/dev/urandom", 'c', 1, 9, 0666, 0, 0, -1 }, { "/dev/tty", 'c', 5, 0, 0666, 0, 0, -1 },
};

static _unused_ void test_tree(struct isolate_plan *plan, char *const *argv, int image_fd)
{
	test_plan(plan, argv);
	for (int i = 0; i <= ISOLATE_NS_CGROUP; i++)
		plan->ns[i] = ISOLATE_NEW;
	plan->root = ISOLATE_ROOT_TREE;
	plan->root_fd = image_fd;
	plan->mounts = test_mounts;
	plan->n_mounts = ARRAY_SIZE(test_mounts);
	plan->devices = test_devices;
	plan->n_devices = ARRAY_SIZE(test_devices);
	plan->cgroup_fd = test_cgroup_fd;
}

#define MOUNTS(options)                                                                            \
	"while read -r a b c d where opts rest; do echo $where ${opts} ${rest#*- }; done "         \
	"< /proc/self/mountinfo" options

/* A directory with files, on a tmpfs at /tmp/nacre-bed, for binds. */
static _unused_ int test_source(void)
{
	CHECK(mount("none", "/mnt", "tmpfs", 0, "mode=755") == 0);
	CHECK(mkdir("/mnt/dir", 0755) == 0 && mkdir("/mnt/dir/below", 0755) == 0);
	CHECK(mknod("/mnt/file", S_IFREG | 0644, 0) == 0);
	CHECK(symlink("file", "/mnt/dir/link") == 0);
	CHECK(mknod("/mnt/dir/file", S_IFREG | 0644, 0) == 0);
	CHECK(mount("none", "/mnt/dir/below", "tmpfs", 0, NULL) == 0);
	CHECK(mknod("/mnt/dir/below/deep", S_IFREG | 0644, 0) == 0);
	return open("/mnt/dir", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static _unused_ void test_source_done(int fd)
{
	(void)close(fd);
	CHECK(umount2("/mnt", MNT_DETACH) == 0);
}

#endif
