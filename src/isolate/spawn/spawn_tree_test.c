/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/magic.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "isolate/mount/mount.h"
#include "isolate/spawn/pty.h"
#include "isolate/tree/tree_bed_test.h"

/* Trees of mounts, devices and paths, as the kernel shows them inside. */

static void default_tree(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_tree(&plan,
		  SH("cd /dev; echo *; stat -c '%n %A %t:%T' null tty; readlink fd; readlink ptmx;"
		     "echo x > null; cat /proc/self/cgroup; ls /; pwd -P; umask;" MOUNTS("")),
		  image);
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK(str_has_prefix(test_text(&t),
			     "fd full mqueue null ptmx pts random shm stderr stdin stdout tty "
			     "urandom zero\nnull crw-rw-rw- 1:3\ntty crw-rw-rw- 5:0\n"
			     "/proc/self/fd\npts/ptmx\n"));
	CHECK(test_has(&t, "bin\ndev\netc\nproc\nsys\ntmp\n/dev\n0022\n"));
	CHECK(test_has(&t, "/proc rw,nosuid,nodev,noexec,relatime proc "));
	CHECK(test_has(&t, "/dev rw,nosuid tmpfs "));
	CHECK(test_has(&t, "/dev/pts rw,nosuid,noexec,relatime devpts "));
	CHECK(test_has(&t, "mode=620,ptmxmode=666"));
	CHECK(test_has(&t, "/dev/shm rw,nosuid,nodev,noexec,relatime tmpfs "));
	CHECK(test_has(&t, "/dev/mqueue rw,nosuid,nodev,noexec,relatime mqueue "));
	CHECK(test_has(&t, "/sys ro,nosuid,nodev,noexec,relatime sysfs "));
	CHECK(test_has(&t, "/sys/fs/cgroup ro,nosuid,nodev,noexec,relatime cgroup2 "));
	CHECK(!strstr(test_text(&t), "shared:") && !strstr(test_text(&t), "master:"));
}

static void binds(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, file = -1;
	struct isolate_mount mounts[6];
	struct isolate_plan plan;
	int dir;

	NEED_ROOT();
	dir = test_source();
	file = open("/mnt/file", O_PATH | O_CLOEXEC);
	image = test_image();
	CHECK(symlinkat("/tmp", image, "link") == 0);
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		mounts[i] = (struct isolate_mount){ .source_fd = dir, .idmap_fd = -1 };
	mounts[0] = test_mounts[0];
	mounts[1].target = "/made/on/the/way";
	mounts[1].attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSYMFOLLOW;
	mounts[2].target = "/link/rbind"; /* a link of the image leads inside */
	mounts[2].recursive = true;
	mounts[2].attr_set = MOUNT_ATTR_RDONLY;
	mounts[3].target = "/rro";
	mounts[3].recursive = true;
	mounts[3].attr_set_below = MOUNT_ATTR_RDONLY;
	mounts[4].target = "/etc/hosts";
	mounts[4].source_fd = file;
	mounts[5].target = "/noatime";
	mounts[5].attr_set = MOUNT_ATTR_NOATIME | MOUNT_ATTR_NODEV;
	mounts[5].attr_clear = MOUNT_ATTR__ATIME;
	test_tree(&plan,
		  SH("ls /made/on/the/way/below | wc -l; cat /made/on/the/way/link || echo nolink;"
		     "touch /tmp/rbind/x || echo ro; touch /tmp/rbind/below/x && echo below;"
		     "touch /rro/x || echo ro; touch /rro/below/y || echo below-ro;"
		     "echo 1.2.3.4 me > /etc/hosts; grep noatime /proc/self/mountinfo | wc -l;"
		     "grep -cE 'shared|master' /proc/self/mountinfo"),
		  image);
	plan.stdio[2] = -1;
	plan.mounts = mounts;
	plan.n_mounts = ARRAY_SIZE(mounts);
	plan.n_devices = 0;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "0\nnolink\nro\nbelow\nro\nbelow-ro\n1\n0\n");
	CHECK(access("/mnt/dir/below/x", F_OK) == 0);
	test_source_done(dir);
}

static void propagation(void)
{
	static const struct {
		unsigned long flags;
		const char *word; /* of mountinfo, of the mount and of what is below it */
	} cases[] = {
		{ 0, "- -" },
		{ MS_PRIVATE, "- shared" },
		{ MS_SLAVE | MS_REC, "master master" },
		{ MS_SHARED | MS_REC, "shared shared" },
		{ MS_UNBINDABLE, "unbindable shared" },
	};
	int dir;

	NEED_ROOT();
	dir = test_source();
	CHECK(mount(NULL, "/mnt", NULL, MS_REC | MS_SHARED, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_mount mounts[2] = { test_mounts[0], ISOLATE_MOUNT_INIT };
		struct isolate_plan plan;
		char want[64];

		mounts[1].target = "/v";
		mounts[1].source_fd = dir;
		mounts[1].recursive = true;
		mounts[1].propagation = cases[i].flags;
		test_tree(&plan,
			  SH("grep -E ' /v(/below)? ' /proc/self/mountinfo | while read -r a b c d "
			     "e f g h; do g=${g%%:*}; printf '%s ' $g; done"),
			  image);
		plan.mounts = mounts;
		plan.n_mounts = 2;
		plan.n_devices = 0;
		test_run(&plan, &t);
		(void)str_printf(want, sizeof(want), "%s ", cases[i].word);
		CHECK_STR(test_text(&t), want);
	}
	test_source_done(dir);
}

static void root_propagation(void)
{
	static const struct {
		unsigned long flags;
		const char *word;
	} cases[] = { { 0, "-" },
		      { MS_SHARED, "shared" },
		      { MS_SLAVE | MS_REC, "-" }, /* of nobody: the image has no peer */
		      { MS_UNBINDABLE, "unbindable" } };

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		test_tree(&plan,
			  SH("while read -r a b c d e f g h; do [ $e = / ] && printf ${g%%:*}; "
			     "done < /proc/self/mountinfo; true"),
			  image);
		plan.root_propagation = cases[i].flags;
		test_run(&plan, &t);
		CHECK_STR(test_text(&t), cases[i].word);
	}
}

static void copies_up(void)
{
	struct isolate_mount mounts[2] = { test_mounts[0],
					   NEW("/etc", "tmpfs", "size=1m", MOUNT_ATTR_RDONLY) };
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, file = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK(mkdirat(image, "etc/a", 0750) == 0 && mkdirat(image, "etc/a/b", 0700) == 0);
	CHECK(fchownat(image, "etc/a", 7, 8, 0) == 0);
	CHECK(symlinkat("../x", image, "etc/a/link") == 0);
	CHECK(mkfifoat(image, "etc/fifo", 0600) == 0);
	file = openat(image, "etc/a/b/file", O_WRONLY | O_CREAT | O_CLOEXEC, 04711);
	for (int i = 0; i < 3000; i++)
		CHECK(write(file, "0123456789", 10) == 10);
	CHECK(fchmod(file, 04711) == 0);
	for (int i = 0; i < 100; i++) {
		char name[32];

		(void)str_printf(name, sizeof(name), "etc/many-%d", i);
		CHECK(mknodat(image, name, S_IFREG | 0600, 0) == 0);
	}
	test_tree(&plan,
		  SH("cd /etc; ls | wc -l; stat -c '%n %a %u:%g' a a/b a/b/file fifo; readlink "
		     "a/link; wc -c < a/b/file; touch x || echo ro"),
		  image);
	plan.stdio[2] = -1;
	mounts[1].copy_up = true;
	plan.mounts = mounts;
	plan.n_mounts = 2;
	plan.n_devices = 0;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "102\na 750 7:8\na/b 700 0:0\na/b/file 4711 0:0\nfifo 600 0:0\n"
				 "../x\n30000\nro\n");
}

static void too_deep_to_copy(void)
{
	struct isolate_mount mount = NEW("/etc", "tmpfs", NULL, 0);
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, at = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	at = openat(image, "etc", O_PATH | O_CLOEXEC);
	for (int i = 0; i < 64; i++) {
		int next;

		CHECK(mkdirat(at, "d", 0755) == 0);
		next = openat(at, "d", O_PATH | O_CLOEXEC);
		(void)close(at);
		at = next;
	}
	mount.copy_up = true;
	test_tree(&plan, SH("true"), image);
	plan.mounts = &mount;
	plan.n_mounts = 1;
	plan.n_devices = 0;
	test_run(&plan, &t);
	CHECK_INT(t.r, -ELOOP);
}

static void masks_and_read_only(void)
{
	char *const masked[] = { (char[]){ "/proc/interrupts" }, (char[]){ "/proc/keys" },
				 (char[]){ "/sys/firmware" },    (char[]){ "/etc" },
				 (char[]){ "/proc/not-there" },  NULL };
	char *const readonly[] = { (char[]){ "/proc/sys" }, (char[]){ "/proc/sysrq-trigger" },
				   (char[]){ "/tmp" }, (char[]){ "/not/there" }, NULL };
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK(mknodat(image, "etc/secret", S_IFREG | 0644, 0) == 0);
	test_tree(&plan,
		  SH("wc -c < /proc/interrupts; stat -c %t:%T /proc/interrupts /proc/keys;"
		     "ls /etc /sys/firmware | wc -l; touch /etc/x || echo ro;"
		     "touch /tmp/x || echo ro; (echo 1 > /proc/sys/kernel/msgmax) || echo ro;"
		     "(echo h > /proc/sysrq-trigger) || echo ro; touch /x && echo rw"),
		  image);
	plan.stdio[2] = -1;
	plan.masked_paths = masked;
	plan.readonly_paths = readonly;
	test_run(&plan, &t);
	CHECK_INT(t.r, 0);
	CHECK_STR(test_text(&t), "0\n1:3\n1:3\n3\nro\nro\nro\nro\nrw\n");
}

/* Mounts on or below /proc (A05). */
static void nothing_in_proc(void)
{
	static const struct {
		const char *target;
		bool is_file, fails;
	} cases[] = {
		{ "/proc/cpuinfo", true, false },
		{ "//proc/./uptime", true, false },
		{ "/proc/sys", false, true },
		{ "/proc/self", false, true },
		{ "/proc/self/attr", false, true },
		{ "/proc", false, true },
		{ "//proc/.", false, true },
		{ "/proc/../proc", false, true },
		{ "/p", false, true },
		{ "/p/sys", false, true },
		{ "/proc/version", true, true },
		{ "/p/cpuinfo", true, true },
		{ "/proc/new", true, true },
	};
	int dir;

	NEED_ROOT();
	dir = test_source();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		_cleanup_fd_ int file = open("/mnt/file", O_PATH | O_CLOEXEC);
		struct isolate_mount mounts[2] = { test_mounts[0], ISOLATE_MOUNT_INIT };
		struct isolate_plan plan;

		CHECK(symlinkat("/proc", image, "p") == 0);
		mounts[1].target = cases[i].target;
		mounts[1].source_fd = cases[i].is_file ? file : dir;
		test_tree(&plan, SH("echo ran"), image);
		plan.mounts = mounts;
		plan.n_mounts = 2;
		plan.n_devices = 0;
		test_run(&plan, &t);
		CHECK_STR(test_text(&t), cases[i].fails ? "" : "ran\n");
		CHECK((t.r < 0) == cases[i].fails);
		if (t.r == 0)
			continue;
		CHECK(t.err.kind == ERROR_INVALID || t.r == -ENOENT || t.r == -EISDIR ||
		      t.err.kind == ERROR_PRECONDITION);
	}
	test_source_done(dir);
}

/* Links of the image at each place where something is made or mounted (A20, A31): all stays inside.
 */
static void hostile_links(void)
{
	static const char *const names[] = { "dev", "proc", "sys" };

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		CHECK(mount("none", "/mnt", "tmpfs", 0, NULL) == 0);
		CHECK(mknod("/mnt/ptmx", S_IFREG | 0600, 0) == 0);
		CHECK(mkdirat(image, "mnt", 0755) == 0);
		CHECK(symlinkat("/../../../mnt", image, names[i]) == 0);
		test_tree(&plan, SH("echo ran"), image);
		test_run(&plan, &t);
		{
			char *const argv[] = { (char[]){ "/mnt" }, NULL };
			_cleanup_fd_ int dir = open(argv[0], O_RDONLY | O_CLOEXEC);
			_cleanup_strv_ char **list = NULL;

			CHECK(fd_list_dir(dir, &list) == 0);
			CHECK(strv_len(list) == 1 && str_eq(list[0], "ptmx"));
		}
		CHECK(umount("/mnt") == 0);
	}
}

static void devices(void)
{
	struct isolate_device list[] = {
		{ "/dev/null", 'c', 1, 3, 0666, 0, 0, -1 },
		{ "/dev/deep/er/fuse", 'u', 10, 229, 0640, 5, 6, -1 },
		{ "/dev/loop9", 'b', 7, 9, 0600, 0, 0, -1 },
		{ "/dev/fifo", 'p', 0, 0, 0622, 0, 3, -1 },
		{ "/etc/zero", 'c', 1, 5, 0666, 0, 0, -1 },
		{ "/dev/bound", 'c', 1, 5, 0, 0, 0, -1 },
	};
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1, zero = open("/dev/zero", O_PATH | O_CLOEXEC);
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK(mknodat(image, "etc/zero", S_IFCHR | 0600, makedev(1, 5)) == 0);
	test_tree(&plan,
		  SH("cd /dev; stat -c '%n %A %t:%T %u:%g' null deep/er/fuse loop9 fifo /etc/zero; "
		     "head -c 2 bound | wc -c"),
		  image);
	list[5].fd = zero;
	plan.devices = list;
	plan.n_devices = ARRAY_SIZE(list);
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "null crw-rw-rw- 1:3 0:0\ndeep/er/fuse crw-r----- a:e5 5:6\n"
				 "loop9 brw------- 7:9 0:0\nfifo prw--w--w- 0:0 0:3\n"
				 "/etc/zero crw------- 1:5 0:0\n2\n");
}

static void wrong_devices(void)
{
	static const struct {
		struct isolate_device device;
		const char *text;
	} cases[] = {
		{ { "/etc/null", 'c', 1, 3, 0666, 0, 0, -1 },
		  "make the root file system: /etc/null: the root has something else there" },
		{ { "/proc/null", 'c', 1, 3, 0666, 0, 0, -1 },
		  "make the root file system: /proc/: nothing is made in a procfs" },
		{ { "/dev/bound", 'c', 1, 3, 0666, 0, 0, 0 },
		  "devices: /dev/bound is another device" },
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		_cleanup_fd_ int zero = open("/dev/zero", O_PATH | O_CLOEXEC);
		struct isolate_device device = cases[i].device;
		struct isolate_plan plan;

		/* What would be a way out for a chown that follows it. */
		CHECK(symlinkat("/dev/zero", image, "etc/null") == 0);
		if (device.fd == 0)
			device.fd = zero;
		test_tree(&plan, SH("echo ran"), image);
		plan.devices = &device;
		plan.n_devices = 1;
		test_run(&plan, &t);
		CHECK(t.r < 0);
		CHECK_STR(t.err.text, cases[i].text);
		CHECK_STR(test_text(&t), "");
	}
}

static void console(void)
{
	_cleanup_(isolate_pty_done) struct isolate_pty pty = ISOLATE_PTY_INIT;
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK(isolate_pty_new(&pty, &(struct isolate_ids){ .count = 0 }, NULL) == 0);
	test_tree(&plan,
		  SH("readlink /proc/self/fd/0; stat -c %t:%T /dev/console /dev/pts/0;"
		     "grep -c ' /dev/console ' /proc/self/mountinfo"),
		  image);
	plan.terminal = true;
	plan.new_session = true;
	plan.stdio[0] = pty.slave_fd;
	plan.pts_fd = pty.mount_fd;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "/dev/pts/0\n88:0\n88:0\n1\n");
}

static void without_pivot(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_tree(&plan, SH("ls /; pwd; read -r a < /proc/1/comm; echo $a"), image);
	plan.no_pivot = true;
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "bin\ndev\netc\nproc\nsys\ntmp\n/\nsh\n");
}

static void read_only_root(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	test_tree(&plan,
		  SH("touch /x 2>/dev/null || echo ro; touch /dev/x /dev/shm/x && echo rw; pwd"),
		  image);
	plan.root_read_only = true;
	plan.cwd = "/made/here";
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "ro\nrw\n/made/here\n");
}

/* All is there when the plan's owner is called, and the old root still is. */
static int test_mounted(const struct isolate_at *at, struct error *err)
{
	char byte = 'r';

	(void)err;
	if (at->point == ISOLATE_POINT_MOUNTED) {
		struct statfs fs;
		_cleanup_fd_ int old = open("/proc/self/exe", O_PATH | O_CLOEXEC);

		byte = statfs("/proc", &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC && old >= 0 ? 'm'
											      : 'x';
	} else if (at->point == ISOLATE_POINT_NAMESPACES) {
		byte = 'n';
	}
	return write(at->fd, &byte, 1) == 1 ? 0 : -EPIPE;
}

static void acts_when_mounted(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;
	char seen[4] = "";
	int pair[2];

	NEED_ROOT();
	image = test_image();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	test_tree(&plan, SH("echo ran"), image);
	plan.at = test_mounted;
	plan.at_fd = pair[1];
	test_run(&plan, &t);
	CHECK_STR(test_text(&t), "ran\n");
	(void)close(pair[1]);
	CHECK(read(pair[0], seen, sizeof(seen)) == 3);
	CHECK_STR(seen, "nmr");
	(void)close(pair[0]);
}

/* Mounts by name below the place of the root, as a hook does. */
static int test_mounts_by_name(const struct isolate_at *at, struct error *err)
{
	if (at->point != ISOLATE_POINT_MOUNTED)
		return 0;
	if (mount("none", "/mnt/tmp", "tmpfs", 0, "mode=0700") < 0 ||
	    mount("/mnt/bin/busybox", "/mnt/etc/file", NULL, MS_BIND, NULL) < 0)
		return error_set(err, -errno, "mount by name");
	return mkdir("/mnt/tmp/seen", 0700) < 0 ? error_set(err, -errno, "mkdir") : 0;
}

static void root_at_its_place(void)
{
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = test_is_root ? test_image() : -1;
	struct isolate_plan plan;

	NEED_ROOT();
	CHECK(mknodat(image, "etc/file", S_IFREG | 0644, 0) == 0);
	CHECK(sysio_move_mount(image, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	for (int pivot = 0; pivot < 2; pivot++) {
		_cleanup_fd_ int copy = mount_copy(AT_FDCWD, "/mnt", NULL);

		test_tree(&plan,
			  SH("ls /tmp; test -x /etc/file && echo file; ls /mnt || echo none"),
			  copy);
		plan.root_place = "/mnt";
		plan.no_pivot = !pivot;
		plan.at = test_mounts_by_name;
		plan.stdio[2] = -1;
		test_run(&plan, &t);
		CHECK_STR(test_text(&t), "seen\nfile\nnone\n");
		test_run_done(&t);
	}
	CHECK(access("/mnt/tmp/seen", F_OK) < 0 && access("/mnt/etc/file", X_OK) < 0);
	CHECK(umount2("/mnt", MNT_DETACH) == 0);
}

/* What has the name by now is not what the spawner has opened. */
static void place_of_another_root(void)
{
	static const char *const paths[] = { "/mnt", "/nonexistent", "/dev/null" };

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		test_tree(&plan, SH("echo ran"), image);
		plan.root_place = paths[i];
		test_run(&plan, &t);
		CHECK(t.r < 0);
		CHECK(strstr(t.err.text, paths[i]) != NULL);
		CHECK_STR(test_text(&t), "");
	}
}

static void wrong_mounts(void)
{
	struct isolate_mount none = NEW("/x", "no-such-fs", NULL, 0),
			     option = NEW("/x", "tmpfs", "size=1m,no_such=1", 0);
	const struct isolate_mount *const mounts[] = { &none, &option };
	static const char *const texts[] = {
		"make the root file system: /x: the kernel has no file system no-such-fs",
		"make the root file system: /x: tmpfs: option no_such: Invalid argument",
	};

	NEED_ROOT();
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = test_image();
		struct isolate_plan plan;

		test_tree(&plan, SH("echo ran"), image);
		plan.mounts = mounts[i];
		plan.n_mounts = 1;
		plan.n_devices = 0;
		test_run(&plan, &t);
		CHECK(t.r < 0);
		CHECK_STR(t.err.text, texts[i]);
	}
}

/* The spawner's own mounts and descriptors are as before after failures and successes. */
static void leaves_nothing(void)
{
	_cleanup_(buf_done) struct buf before = BUF_INIT, after = BUF_INIT;
	int fd_before = -1, fd_after, dir;

	NEED_ROOT();
	dir = test_source();
	for (int i = 0; i < 8; i++) {
		_cleanup_(test_run_done) struct test_run t;
		_cleanup_fd_ int image = -1;
		struct isolate_mount mounts[2] = { ISOLATE_MOUNT_INIT, ISOLATE_MOUNT_INIT };
		struct isolate_plan plan;

		if (i == 2) {
			fd_before = open("/dev/null", O_RDONLY | O_CLOEXEC);
			CHECK(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &before) ==
			      0);
			(void)close(fd_before);
		}
		image = test_image();
		test_tree(&plan, SH("true"), image);
		mounts[0].source_fd = mounts[1].source_fd = dir;
		mounts[0].target = "/a";
		/* With and without a failure of the spawner's: it cannot be mapped twice. */
		mounts[1].target = "/b";
		mounts[1].idmap_fd = i & 1 ? dir : -1;
		plan.mounts = mounts;
		plan.n_mounts = 2;
		plan.n_devices = 0;
		test_run(&plan, &t);
		CHECK((t.r < 0) == (i & 1));
	}
	CHECK(fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &after) == 0);
	fd_after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd_after, fd_before);
	(void)close(fd_after);
	CHECK(before.len == after.len &&
	      memcmp(buf_data(&before), buf_data(&after), after.len) == 0);
	test_source_done(dir);
}

/* Only what is not there need not be hidden. */
static void mask_that_cannot_be(void)
{
	char *const masked[] = { (char[]){ "/nothing" }, (char[]){ "/loop" }, NULL };
	_cleanup_(test_run_done) struct test_run t;
	_cleanup_fd_ int image = -1;
	struct isolate_plan plan;

	NEED_ROOT();
	image = test_image();
	CHECK(symlinkat("/loop", image, "loop") == 0);
	test_tree(&plan, SH("echo ran"), image);
	plan.masked_paths = masked;
	test_run(&plan, &t);
	CHECK_INT(t.r, -ELOOP);
	CHECK(strstr(t.err.text, "hide /loop: ") != NULL);
	CHECK_STR(test_text(&t), "");
}

UNIT_MAIN({ "makes namespaces for the test itself", own_namespaces, true },
	  { "the tree that the field has by default", default_tree },
	  { "binds with their attributes", binds }, { "propagation of binds", propagation },
	  { "propagation of the root", root_propagation },
	  { "a tmpfs with what was there", copies_up },
	  { "a tree too deep to be copied", too_deep_to_copy },
	  { "masked and read-only paths", masks_and_read_only },
	  { "a path that cannot be masked", mask_that_cannot_be },
	  { "nothing is mounted in a procfs", nothing_in_proc },
	  { "links of an image stay inside", hostile_links }, { "devices", devices },
	  { "devices that are something else", wrong_devices },
	  { "a terminal and its console", console }, { "without pivot_root", without_pivot },
	  { "a read-only root", read_only_root },
	  { "the plan's owner acts when all is mounted", acts_when_mounted },
	  { "the root lies at its place until then", root_at_its_place },
	  { "a place that another directory has", place_of_another_root },
	  { "mounts that cannot be", wrong_mounts }, { "the spawner is as before", leaves_nothing },
	  { "removes its cgroup", removes_the_cgroup, true })
