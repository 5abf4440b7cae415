/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/sysmacros.h>

#include "isolate/tree/tree_bed_test.h"
#include "isolate/tree/tree_path.h"

/* Where mounts, masks and devices go in a root that an image and volumes fill: judged by what is
 * there, on the very mounts that were made. */

static void paths(void)
{
	static const struct {
		const char *path, *clean;
	} cleans[] = { { "/", "" },          { "//a/./b/", "/a/b" }, { "/a/../b", "/b" },
		       { "/../../a", "/a" }, { "/a/b/../..", "" },   { "/..a/b.", "/..a/b." } };
	static const struct {
		const char *clean, *base, *rest;
	} below[] = { { "/dev/pts", "/dev", "pts" },
		      { "/dev", "//dev/.", "" },
		      { "/device", "/dev", NULL },
		      { "/d", "/dev", NULL },
		      { "/dev/a/b", "/", "dev/a/b" } };
	char clean[16];

	for (size_t i = 0; i < ARRAY_SIZE(cleans); i++) {
		CHECK_INT(tree_path_clean(clean, sizeof(clean), cleans[i].path), 0);
		CHECK_STR(clean, cleans[i].clean);
		CHECK(tree_path_is(cleans[i].path, cleans[i].clean));
	}
	CHECK_INT(tree_path_clean(clean, sizeof(clean), "/23456789012345"), 0);
	CHECK_INT(tree_path_clean(clean, sizeof(clean), "/234567890123456"), -ENAMETOOLONG);
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		const char *rest = tree_path_below(below[i].clean, below[i].base);

		CHECK((rest == NULL) == (below[i].rest == NULL));
		if (rest)
			CHECK_STR(rest, below[i].rest);
	}
}

/* ---- targets of system mounts ---- */

enum there { THERE_LINK, THERE_ABSOLUTE, THERE_DANGLING, THERE_LOOP, THERE_FILE, THERE_FIFO };

static void put_there(int dir, const char *name, enum there what)
{
	static const char *const links[] = {
		[THERE_LINK] = "tmp", [THERE_ABSOLUTE] = "/tmp", [THERE_DANGLING] = "none"
	};

	(void)unlinkat(dir, name, AT_REMOVEDIR);
	if (what == THERE_LOOP)
		CHECK(symlinkat(name, dir, name) == 0);
	else if (what == THERE_FILE || what == THERE_FIFO)
		CHECK(mknodat(dir, name, (what == THERE_FILE ? S_IFREG : S_IFIFO) | 0644, 0) == 0);
	else
		CHECK(symlinkat(links[what], dir, name) == 0);
}

static void refuses_tree(int image, const struct isolate_mount *mounts, size_t n, const char *text)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_plan plan;

	test_tree(&plan, SH("echo ran"), image);
	plan.mounts = mounts;
	plan.n_mounts = n;
	plan.n_devices = 0;
	test_run(&plan, &t);
	CHECK(t.r < 0);
	CHECK_STR(t.err.text, text);
	CHECK_STR(test_text(&t), "");
}

/* A system mount goes on a directory of the root itself (A20): no link, file or FIFO, whichever
 * file system it is. */
static void system_targets(void)
{
	static const struct isolate_mount mounts[] = {
		NEW("/place", "proc", NULL, TEST_SAFE),
		NEW("/place", "sysfs", NULL, TEST_SAFE),
		NEW("/place", "cgroup", NULL, TEST_SAFE),
		NEW("/place", "devpts", "newinstance", TEST_SAFE),
		NEW("/place", "mqueue", NULL, TEST_SAFE),
		NEW("/place/below", "proc", NULL, TEST_SAFE),
		NEW("/dev", "tmpfs", NULL, TEST_SAFE),
		NEW("//dev/.", "tmpfs", NULL, TEST_SAFE),
		NEW("/dev", "devtmpfs", NULL, TEST_SAFE),
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		for (enum there what = THERE_LINK; what <= THERE_FIFO; what++) {
			_cleanup_fd_ int image = test_image();
			char text[200];

			put_there(image, strstr(mounts[i].target, "place") ? "place" : "dev", what);
			(void)str_printf(text, sizeof(text),
					 "make the root file system: %s: is %s (the root must have "
					 "a directory there)",
					 mounts[i].target,
					 what < THERE_FILE ? "a symbolic link, or lies behind one"
							   : "not a directory");
			refuses_tree(image, &mounts[i], 1, text);
		}
	}
}

/* The same where the place lies in a volume that is mounted before, also as a plain directory; in a
 * file system that is made for the container it may lie. */
static void system_targets_in_volumes(void)
{
	static const struct {
		const char *target, *text;
	} cases[] = {
		{ "/vol/proc",
		  "lies in a volume that is mounted before it (the root itself must have "
		  "a directory there)" },
		{ "/vol/below/new",
		  "lies in a volume that is mounted before it (the root itself must "
		  "have a directory there)" },
		{ "/vol/link/x", "is a symbolic link, or lies behind one (the root must have a "
				 "directory there)" },
		{ "/vol/file", "is not a directory (the root must have a directory there)" },
		{ "/vol", "lies in a volume that is mounted before it (the root itself must have a "
			  "directory there)" },
		/* The list puts a volume there by another name. */
		{ "/real/proc", "lies in a volume that is mounted before it (the root itself must "
				"have a directory there)" },
	};
	struct isolate_mount own[] = { NEW("/own", "tmpfs", NULL, TEST_SAFE),
				       NEW("/own/a/proc", "proc", NULL, TEST_SAFE) };
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;
	int dir;

	NEED_ROOT();
	dir = test_source();
	CHECK(mkdir("/mnt/dir/proc", 0755) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct isolate_mount mounts[] = { ISOLATE_MOUNT_INIT,
						  NEW(cases[i].target, "proc", NULL, TEST_SAFE) };
		_cleanup_fd_ int other = test_image();
		char text[200];

		CHECK(mkdirat(other, "real", 0755) == 0 && symlinkat("real", other, "name") == 0);
		mounts[0].target = i + 1 < ARRAY_SIZE(cases) ? "/vol" : "/name";
		mounts[0].source_fd = dir;
		mounts[0].recursive = true;
		(void)str_printf(text, sizeof(text), "make the root file system: %s: %s",
				 cases[i].target, cases[i].text);
		refuses_tree(other, mounts, ARRAY_SIZE(mounts), text);
	}
	test_source_done(dir);

	image = test_image();
	test_tree(&plan, SH("test -e /own/a/proc/uptime && echo there"), image);
	plan.mounts = own;
	plan.n_mounts = ARRAY_SIZE(own);
	plan.n_devices = 0;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "there\n");
}

/* Masks, read-only paths, devices and links are in the mounts that were made, although a volume
 * covers these by the end. */
static void on_the_very_mounts(void)
{
	char *const masked[] = { (char[]){ "/sys/kernel" }, NULL };
	char *const readonly[] = { (char[]){ "/sys/fs" }, NULL };
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_mount mounts[ARRAY_SIZE(test_mounts) + 2];
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;
	int dir;

	NEED_ROOT();
	dir = test_source();
	CHECK(mkdir("/mnt/dir/kernel", 0755) == 0 && mkdir("/mnt/dir/fs", 0755) == 0);
	image = test_image();
	CHECK(symlinkat("/sys", image, "s") == 0 && symlinkat("/dev", image, "d") == 0);
	memcpy(mounts, test_mounts, sizeof(test_mounts));
	for (size_t i = ARRAY_SIZE(test_mounts); i < ARRAY_SIZE(mounts); i++) {
		mounts[i] = (struct isolate_mount)ISOLATE_MOUNT_INIT;
		mounts[i].source_fd = dir;
	}
	mounts[ARRAY_SIZE(test_mounts)].target = "/s";
	mounts[ARRAY_SIZE(test_mounts) + 1].target = "/d";
	test_tree(&plan, SH("ls /dev; touch /sys/kernel/a /sys/fs/b && echo rw"), image);
	plan.mounts = mounts;
	plan.n_mounts = ARRAY_SIZE(mounts);
	plan.masked_paths = masked;
	plan.readonly_paths = readonly;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "below\nfile\nfs\nkernel\nlink\nrw\n");
	test_source_done(dir);
}

/* With and without a mount on /dev, a device is made behind no link of the image. */
static void devices_behind_links(void)
{
	static const struct isolate_device device = { "/dev/sub/null", 'c', 1, 3, 0666, 0, 0, -1 };

	NEED_ROOT();
	for (int i = 0; i < 2; i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		CHECK(mkdirat(image, "tmp/sub", 0755) == 0);
		if (i == 0)
			CHECK(symlinkat("tmp", image, "dev") == 0);
		else
			CHECK(mkdirat(image, "dev", 0755) == 0 &&
			      symlinkat("/tmp/sub", image, "dev/sub") == 0);
		test_tree(&plan, SH("echo ran"), image);
		plan.n_mounts = 0;
		plan.devices = &device;
		plan.n_devices = 1;
		test_run(&plan, &t);
		CHECK_STR(t.err.text,
			  "make the root file system: /dev/sub/: is a symbolic link, or lies "
			  "behind one (the root must have a directory there)");
	}
}

/* ---- targets of volumes ---- */

static const char to_root[] = "leads to the root, and nothing can be mounted on that";
static const char to_part[] =
	"leads into /dev or /sys of the container, and nothing can be mounted "
	"there but on /dev/shm and new names in /dev";
static const char to_proc[] = "nothing is mounted in a procfs";

static const struct {
	const char *link, *target;
	bool is_file;
	const char *container, *tree; /* the refusal; NULL: it is mounted */
} volume_cases[] = {
	{ "..", "/x", false, to_root, to_root },
	{ "/", "/x", false, to_root, to_root },
	{ "tmp/..", "/x/.", false, to_root, to_root },
	{ "../../..", "//x/", false, to_root, to_root },
	{ "tmp", "/x/..", false, to_root, to_root },
	{ "/proc", "/x", false, to_proc, to_proc },
	{ "/proc/sys", "/x/kernel", false, to_proc, to_proc },
	{ "/sys", "/x", false, to_part, NULL },
	{ "/sys/fs", "/x/cgroup", false, to_part, NULL },
	{ "/sys/kernel", "/x", false, to_part, NULL },
	{ "/dev", "/x", false, to_part, NULL },
	{ "/dev", "/x/new", false, to_part, NULL },
	{ "/dev", "/x/pts", false, to_part, NULL },
	{ "/dev", "/x/mqueue", false, to_part, NULL },
	{ "/dev/shm", "/x/sub", false, to_part, NULL },
	{ "/dev/shm", "/x", false, NULL, NULL },
	{ "/dev", "/x/shm", false, NULL, NULL },
	{ "tmp", "/dev/own", false, NULL, NULL },
	{ "tmp", "//dev/./own", true, NULL, NULL },
	{ "tmp", "/dev/own/sub", false, NULL, NULL },
	{ "tmp", "/dev/own/deep/down", true, NULL, NULL },
	{ "tmp", "/dev/shm/sub", false, to_part, NULL },
	{ "tmp", "/dev/fd", false, to_proc, NULL },
	{ "tmp", "/dev/null", true, to_part, NULL },
	{ "tmp", "/x/y", false, NULL, NULL },
	{ "/dev/null", "/x", true, to_part, NULL },
	{ "/dev/shm", "/x/new", true, to_part, NULL },
	{ "/dev/pts", "/x/ptmx", true, to_part, NULL },
	{ "/sys/kernel", "/x/uevent_seqnum", true, to_part, NULL },
	{ "/tmp", "/x/new", true, NULL, NULL },
};

static void volume_case(size_t i, bool is_tree, int dir, int file)
{
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_mount mounts[ARRAY_SIZE(test_mounts) + 1];
	_cleanup_fd_ int image = test_image();
	const char *text = is_tree ? volume_cases[i].tree : volume_cases[i].container;
	size_t n = is_tree ? ARRAY_SIZE(test_mounts) : 0;
	struct isolate_plan plan;
	char want[200];

	CHECK(symlinkat(volume_cases[i].link, image, "x") == 0);
	if (is_tree) {
		test_tree(&plan, SH("echo ran"), image);
		plan.n_devices = 0;
		memcpy(mounts, test_mounts, sizeof(test_mounts));
	} else {
		test_container(&plan, SH("echo ran"), image);
	}
	mounts[n] = (struct isolate_mount)ISOLATE_MOUNT_INIT;
	mounts[n].target = volume_cases[i].target;
	mounts[n].source_fd = volume_cases[i].is_file ? file : dir;
	plan.mounts = mounts;
	plan.n_mounts = n + 1;
	test_run(&plan, &t);
	if (!text) {
		CHECK_INT(t.r, 0);
		CHECK_STR(test_text(&t), "ran\n");
		return;
	}
	(void)str_printf(want, sizeof(want), "make the root file system: %s: %s", mounts[n].target,
			 text);
	CHECK_STR(t.err.text, want);
	CHECK_INT(t.err.kind, ERROR_INVALID);
	CHECK_STR(test_text(&t), "");
}

/* A volume on a target that leads to where none may be: judged where it arrives. */
static void volumes_through_links(void)
{
	int dir, file;

	NEED_ROOT();
	dir = test_source();
	file = open("/mnt/file", O_PATH | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(volume_cases); i++) {
		volume_case(i, false, dir, file);
		volume_case(i, true, dir, file);
	}
	(void)close(file);
	test_source_done(dir);
}

/* Volumes in volumes, also in one on /dev/shm, are not mistaken for these. */
static void volumes_in_volumes(void)
{
	static const char *const targets[] = { "/dev/shm", "/a", "/a/below", "/a/below/deep",
					       "/a/l" };
	_cleanup_(test_run_done) struct test_run t;
	struct isolate_mount mounts[ARRAY_SIZE(targets)];
	_cleanup_fd_ int image = -1, file = -1;
	struct isolate_plan plan;
	int dir;

	NEED_ROOT();
	dir = test_source();
	CHECK(symlink("below", "/mnt/dir/l") == 0);
	file = open("/mnt/file", O_PATH | O_CLOEXEC);
	image = test_image();
	test_container(&plan, SH("ls /a; test -f /a/below/file && echo below"), image);
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		mounts[i] = (struct isolate_mount)ISOLATE_MOUNT_INIT;
		mounts[i].target = targets[i];
		mounts[i].source_fd = i == 3 ? file : dir;
		mounts[i].recursive = i == 1;
	}
	plan.mounts = mounts;
	plan.n_mounts = ARRAY_SIZE(mounts);
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "below\ndeep\nfile\nl\nlink\nbelow\n");
	test_source_done(dir);
}

UNIT_MAIN({ "paths as text", paths },
	  { "makes namespaces for the test itself", own_namespaces, true },
	  { "system mounts go on directories", system_targets },
	  { "system mounts go into no volume", system_targets_in_volumes },
	  { "what belongs to a mount is made in that very mount", on_the_very_mounts },
	  { "devices are made behind no link", devices_behind_links },
	  { "volumes through links", volumes_through_links },
	  { "volumes in volumes", volumes_in_volumes },
	  { "removes its cgroup", removes_the_cgroup, true })
