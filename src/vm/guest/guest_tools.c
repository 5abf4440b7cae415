/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/guest_tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/spawn/spawn.h"
#include "vm/driver/firmware.h"
#include "vm/driver/jail.h"
#include "vm/qemu/qemu.h"

/*
 * Theory of operation. The dynamic linker itself is asked what QEMU and its modules load; it runs
 * nothing of them for that. The files are copied into a tree beside the set's, the set's own are
 * linked into it, and mkfs.erofs makes the image, which is not compressed: the guest that reads it
 * has the slower processor.
 */

#define TOOLS_IMAGE "tools"
#define TOOLS_TREE "tree"
#define TOOLS_MAKER "/usr/bin/mkfs.erofs"
#define TOOLS_LINKER "/lib64/ld-linux-x86-64.so.2"
#define TOOLS_FIRMWARE "/usr/share/qemu/bios-microvm.bin"
#define TOOLS_GATE "libexec/nacre/nacre-gate"
#define TOOLS_SAID_MAX 65536

/* With what QEMU looks for when it emulates a processor, where that is a file of its own. */
static const char *const tools_programs[] = {
	QEMU_PROGRAM,
	"/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
};

/* ---- programs that are run for it ---- */

/* What it says on its standard output. */
static int tools_run(char *const *argv, int dir_fd, struct buf *said, struct error *err)
{
	_cleanup_(isolate_child_done) struct isolate_child child = ISOLATE_CHILD_INIT;
	_cleanup_fd_ int out_fd = -1, in_fd = -1;
	char *const env[] = { NULL };
	struct isolate_plan plan;
	siginfo_t si = { 0 };
	int pipes[2], exit_code, r;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	in_fd = pipes[0];
	out_fd = pipes[1];
	isolate_plan_init(&plan);
	plan.argv = argv;
	plan.env = env;
	plan.keep_credentials = true;
	plan.keep_oom_score = true;
	plan.stdio[1] = out_fd;
	plan.stdio[2] = STDERR_FILENO;
	plan.keep_fds[0] = dir_fd;
	plan.n_keep_fds = dir_fd >= 0;
	r = isolate_spawn(&plan, &child, err);
	if (r < 0)
		return error_wrap(err, r, "run %s", argv[0]);
	out_fd = fd_close(out_fd);
	r = isolate_child_report(&child, &exit_code, err);
	if (r == 0)
		r = fd_read_all(in_fd, TOOLS_SAID_MAX, said);
	in_fd = fd_close(in_fd);
	if (waitid(P_PIDFD, (id_t)child.pidfd, &si, WEXITED) < 0)
		return error_set(err, -errno, "wait for %s", argv[0]);
	if (r < 0)
		return error_wrap(err, r, "run %s", argv[0]);
	if (si.si_code != CLD_EXITED || si.si_status != 0)
		return error_refuse(err, ERROR_FAULT, "%s %s %d", argv[0],
				    si.si_code == CLD_EXITED ? "ended with status"
							     : "was ended by signal",
				    si.si_status);
	return 0;
}

/* ---- files ---- */

static int tools_make_file(int tree_fd, const char *path, mode_t mode, struct error *err)
{
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int dir_fd = -1;
	char dir[PATH_MAX];
	int fd;

	(void)str_printf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	dir_fd = rootfd_make_dir(tree_fd, dir);
	if (dir_fd < 0)
		return error_set(err, dir_fd, "make the directory of %s", path);
	fd = sysio_openat(dir_fd, slash + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  mode);
	if (fd < 0 && errno == EEXIST)
		return -EEXIST;
	if (fd < 0)
		return error_set(err, -errno, "make %s", path);
	/* Whatever the umask says: who runs it there is another user. */
	if (fchmod(fd, mode) < 0) {
		int r = -errno;

		(void)fd_close(fd);
		return error_set(err, r, "make %s", path);
	}
	return fd;
}

static int tools_copy(int from_fd, int tree_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int to_fd = tools_make_file(tree_fd, path, 0755, err);
	struct stat st;
	off_t at = 0;

	/* Two programs have a library in common. */
	if (to_fd < 0)
		return to_fd == -EEXIST ? 0 : to_fd;
	if (fstat(from_fd, &st) < 0)
		return error_set(err, -errno, "look at %s", path);
	while (at < st.st_size) {
		ssize_t n = sendfile(to_fd, from_fd, &at, (size_t)(st.st_size - at));

		if (n <= 0)
			return error_set(err, n < 0 ? -errno : -EIO, "copy %s", path);
	}
	return 0;
}

static int tools_copy_host(int host_fd, int tree_fd, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = rootfd_open_regular(host_fd, path);

	if (fd < 0)
		return error_set(err, fd, "open %s", path);
	return tools_copy(fd, tree_fd, path, err);
}

/* "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)", or the linker itself, without an
 * arrow. NULL: it is no file. */
static const char *tools_library(char *line)
{
	char *path = strstr(line, " => "), *end;

	path = path ? path + strlen(" => ") : line + strspn(line, "\t ");
	end = strstr(path, " (0x");
	if (*path != '/' || !end)
		return NULL;
	*end = '\0';
	return path;
}

static int tools_copy_libraries(int host_fd, int tree_fd, const char *program, struct error *err)
{
	char *const argv[] = { (char[]){ TOOLS_LINKER }, (char[]){ "--list" },
			       (char *)(uintptr_t)program, NULL };
	_cleanup_(buf_done) struct buf said = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *rest;
	int r;

	r = tools_run(argv, -1, &said, err);
	if (r < 0)
		return r;
	text = buf_take_str(&said);
	if (!text)
		return error_set(err, -ENOMEM, "list the libraries of %s", program);
	rest = text;
	for (;;) {
		char *line = strsep(&rest, "\n");
		const char *path = line ? tools_library(line) : NULL;

		if (!line)
			return 0;
		if (strstr(line, "not found"))
			return error_refuse(err, ERROR_PRECONDITION, "%s lacks a library: %s",
					    program, line + strspn(line, "\t "));
		r = path ? tools_copy_host(host_fd, tree_fd, path, err) : 0;
		if (r < 0)
			return r;
	}
}

/* The first must be there. */
static int tools_copy_programs(int tree_fd, struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err), firmware_fd = -1;

	if (host_fd < 0)
		return host_fd;
	for (size_t i = 0; i < ARRAY_SIZE(tools_programs); i++) {
		_cleanup_fd_ int fd = rootfd_open_regular(host_fd, tools_programs[i]);
		int r;

		if (fd == -ENOENT && i == 0)
			return error_refuse(err, ERROR_PRECONDITION,
					    "there is no %s (the package qemu-system-x86)",
					    tools_programs[i]);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return error_set(err, fd, "open %s", tools_programs[i]);
		r = tools_copy(fd, tree_fd, tools_programs[i], err);
		if (r == 0)
			r = tools_copy_libraries(host_fd, tree_fd, tools_programs[i], err);
		if (r < 0)
			return r;
	}
	firmware_fd = firmware_open(VM_FIRMWARE_NONE, err);
	return firmware_fd < 0 ? firmware_fd
			       : tools_copy(firmware_fd, tree_fd, TOOLS_FIRMWARE, err);
}

static int tools_link_set(const struct guest_tools *t, int tree_fd, struct error *err)
{
	static const char *const names[] = { "kernel", "initrd", "set" };
	char dir[NAME_MAX + sizeof("guest/")];
	_cleanup_fd_ int sets_fd = -1, set_fd = -1;

	(void)str_printf(dir, sizeof(dir), "guest/%s", t->name);
	set_fd = rootfd_make_dir(tree_fd, dir);
	sets_fd = rootfd_make_dir(tree_fd, "guest");
	if (set_fd < 0 || sets_fd < 0)
		return error_set(err, MIN(set_fd, sets_fd), "make %s", dir);
	if (sysio_symlinkat(t->name, sets_fd, "default") < 0)
		return error_set(err, -errno, "make guest/default");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (linkat(t->dir_fd, names[i], set_fd, names[i], 0) < 0)
			return error_set(err, -errno, "link %s", names[i]);
	return 0;
}

static int tools_fill(const struct guest_tools *t, int tree_fd, struct error *err)
{
	static const char *const places[] = { "dev", "proc", "sys" };
	_cleanup_fd_ int gate_fd = -1;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (sysio_mkdirat(tree_fd, places[i], 0755) < 0)
			return error_set(err, -errno, "make %s", places[i]);
	r = tools_copy_programs(tree_fd, err);
	if (r == 0)
		r = tools_link_set(t, tree_fd, err);
	if (r < 0)
		return r;
	gate_fd = tools_make_file(tree_fd, TOOLS_GATE, 0755, err);
	if (gate_fd < 0)
		return gate_fd;
	r = fd_write_full(gate_fd, t->gate, t->gate_len);
	return r < 0 ? error_set(err, r, "write " TOOLS_GATE) : 0;
}

/* ---- the image ---- */

static int tools_make_image(const struct guest_tools *t, struct error *err)
{
	char *const argv[] = { (char[]){ TOOLS_MAKER }, (char[]){ "--quiet" },
			       (char[]){ "/proc/self/fd/3/" TOOLS_IMAGE },
			       (char[]){ "/proc/self/fd/3/" TOOLS_TREE }, NULL };
	_cleanup_(buf_done) struct buf said = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	int r = tools_run(argv, t->dir_fd, &said, err);

	if (r < 0)
		return r;
	fd = rootfd_open_regular(t->dir_fd, TOOLS_IMAGE);
	if (fd < 0)
		return error_set(err, fd, "open what %s has made", TOOLS_MAKER);
	return fchmod(fd, 0644) < 0 || sysio_fsync(fd) < 0
		       ? error_set(err, -errno, "write the tools of a guest set to the disk")
		       : 0;
}

static int tools_check(struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err), fd = -1;

	if (host_fd < 0)
		return host_fd;
	fd = rootfd_open(host_fd, TOOLS_MAKER, O_PATH, 0);
	if (fd == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "there is no %s (the package erofs-utils)", TOOLS_MAKER);
	return fd < 0 ? error_set(err, fd, "open %s", TOOLS_MAKER) : 0;
}

int guest_tools_make(const struct guest_tools *t, struct error *err)
{
	_cleanup_fd_ int tree_fd = -1;
	int r = tools_check(err);

	if (r < 0)
		return r;
	if (sysio_mkdirat(t->dir_fd, TOOLS_TREE, 0755) < 0)
		return error_set(err, -errno, "make a directory for tools");
	tree_fd = sysio_openat(t->dir_fd, TOOLS_TREE, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	r = tree_fd < 0 ? error_set(err, -errno, "open a directory for tools") : 0;
	/* Whatever the umask says. */
	if (r == 0 && fchmod(tree_fd, 0755) < 0)
		r = error_set(err, -errno, "open a directory for tools");
	if (r == 0)
		r = tools_fill(t, tree_fd, err);
	if (r == 0)
		r = tools_make_image(t, err);
	(void)rootfd_remove_tree(t->dir_fd, TOOLS_TREE);
	return r < 0 ? error_wrap(err, r, "the tools of a guest set") : 0;
}
