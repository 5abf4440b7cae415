/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/idmap.h"
#include "isolate/tree/tree_bed_test.h"

/* Trees in a user namespace, as the kernel shows them inside and on the disk. */

static const struct isolate_id_map test_map[] = { { 0, TEST_BASE, 65536 } };

static void test_userns(struct isolate_plan *plan)
{
	plan->ns[ISOLATE_NS_USER] = ISOLATE_NEW;
	plan->uid_map = test_map;
	plan->n_uid_map = 1;
	plan->gid_map = test_map;
	plan->n_gid_map = 1;
}

/* A whole container in a user namespace: id-mapped image and volume, bound devices, masks. */
static void in_a_user_namespace(void)
{
	char *const masked[] = { (char[]){ "/proc/interrupts" }, (char[]){ "/sys/firmware" },
				 (char[]){ "/proc/keys" }, NULL };
	char *const readonly[] = { (char[]){ "/proc/sys" }, NULL };
	struct isolate_device list[ARRAY_SIZE(test_devices)];
	struct isolate_mount mounts[ARRAY_SIZE(test_mounts) + 1];
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, userns = -1;
	struct error err = ERROR_INIT;
	struct isolate_plan plan;
	struct stat st;
	int dir;

	NEED_ROOT();
	dir = test_source();
	image = test_image();
	userns = isolate_idmap_new(test_map, 1, test_map, 1, &err);
	CHECK(userns >= 0);
	CHECK_INT(isolate_idmap_apply(image, userns, false, &err), 0);
	if (err.code < 0)
		printf("# %s\n", err.text);
	memcpy(list, test_devices, sizeof(list));
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		list[i].fd = open(list[i].path, O_PATH | O_CLOEXEC);
	memcpy(mounts, test_mounts, sizeof(test_mounts));
	mounts[ARRAY_SIZE(test_mounts)] =
		(struct isolate_mount){ .target = "/volume", .source_fd = dir, .idmap_fd = userns };
	test_tree(&plan,
		  SH("id -u; touch /new /volume/new && stat -c '%n %u:%g' /new /volume/new /bin;"
		     "echo x > /dev/null && echo null; stat -c '%n %t:%T' /dev/zero "
		     "/proc/interrupts; ls /sys/firmware | wc -l;"
		     "(echo 1 > /proc/sys/net/ipv4/ip_forward) 2>/dev/null || echo ro;"
		     "mount -t tmpfs none /tmp && echo mounts; echo out > /dev/stdout;" MOUNTS("")),
		  image);
	plan.mounts = mounts;
	plan.n_mounts = ARRAY_SIZE(mounts);
	plan.devices = list;
	plan.masked_paths = masked;
	plan.readonly_paths = readonly;
	test_userns(&plan);
	plan.ns[ISOLATE_NS_TIME] = ISOLATE_NEW;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK(str_has_prefix(test_text(&t),
			     "0\n/new 0:0\n/volume/new 0:0\n/bin 0:0\nnull\n/dev/zero 1:5\n"
			     "/proc/interrupts 1:3\n0\nro\nmounts\nout\n"));
	CHECK(test_has(&t, "/sys/fs/cgroup ro,nosuid,nodev,noexec,relatime cgroup2 "));
	CHECK(test_has(&t, "/dev/mqueue rw,nosuid,nodev,noexec,relatime mqueue "));
	/* On the disk the volume's new file belongs to root: the map is of the mount alone. */
	CHECK(stat("/mnt/dir/new", &st) == 0 && st.st_uid == 0);
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		(void)fd_close(list[i].fd);
	test_source_done(dir);
}

/* Overlay takes no ids of its own, but lower layers that have them; the upper one, in which it
 * works as the one who mounts it, belongs to the ids outside. */
static void overlay_with_mapped_layers(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, userns = -1, fs = -1, root = -1, mnt = -1;
	struct isolate_mount proc = NEW("/proc", "proc", NULL, TEST_SAFE);
	struct error err = ERROR_INIT;
	struct isolate_plan plan;
	struct stat st;

	NEED_ROOT();
	CHECK(mount("none", "/mnt", "tmpfs", 0, "mode=755") == 0);
	CHECK(mkdir("/mnt/lower", 0755) == 0 && mkdir("/mnt/up", 0755) == 0);
	userns = isolate_idmap_new(test_map, 1, test_map, 1, &err);
	image = test_image();
	CHECK_INT(isolate_idmap_apply(image, userns, false, &err), 0);
	CHECK(sysio_move_mount(image, "", AT_FDCWD, "/mnt/lower", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	mnt = open("/mnt/up", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdir("/mnt/up/u", 0755) == 0 && mkdir("/mnt/up/w", 0755) == 0);
	CHECK(chown("/mnt/up/u", TEST_BASE, TEST_BASE) == 0);
	fs = sysio_fsopen("overlay", FSOPEN_CLOEXEC);
	CHECK(sysio_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", "/mnt/lower", 0) == 0 &&
	      sysio_fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", "/mnt/up/u", 0) == 0 &&
	      sysio_fsconfig(fs, FSCONFIG_SET_STRING, "workdir", "/mnt/up/w", 0) == 0);
	if (sysio_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
		CHECK(umount2("/mnt", MNT_DETACH) == 0);
		SKIP("no overlay of tmpfs with mapped ids");
	}
	root = sysio_fsmount(fs, FSMOUNT_CLOEXEC, 0);
	test_tree(&plan, SH("touch /new /etc/new && stat -c '%n %u:%g' /new /etc /bin/busybox"),
		  root);
	test_userns(&plan);
	plan.mounts = &proc;
	plan.n_mounts = 1;
	plan.n_devices = 0;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "/new 0:0\n/etc 0:0\n/bin/busybox 0:0\n");
	CHECK(fstatat(mnt, "u/etc/new", &st, 0) == 0 && st.st_uid == TEST_BASE);
	CHECK(umount2("/mnt", MNT_DETACH) == 0);
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "a container in a user namespace", in_a_user_namespace },
	  { "an overlay of id-mapped layers", overlay_with_mapped_layers },
	  { "removes its cgroup", removes_the_cgroup, true })
