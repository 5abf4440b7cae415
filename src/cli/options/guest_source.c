/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/guest_source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/args.h"
#include "base/text/str.h"

#define SOURCE_KERNEL "vmlinuz-"
/* What a machine with nothing but virtio needs, and a third of the size. */
#define SOURCE_PREFERRED "cloud"
#define SOURCE_GATE "nacre-gate"

static int source_open(const char *path, int flags, struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | flags, 0);

	return fd < 0 ? error_set(err, -errno, "open %s", path) : fd;
}

/* Whether kernel a is the better choice. */
static bool source_is_better(const char *a, const char *b)
{
	bool small = strstr(a, SOURCE_PREFERRED), other_small = strstr(b, SOURCE_PREFERRED);

	return small != other_small ? small : strverscmp(a, b) > 0;
}

/* The release of the kernel in DIR/boot that is taken. */
static int source_choose(const char *from, char *ret, size_t size, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int boot_fd = -1;
	const char *best = NULL;
	char boot[PATH_MAX];

	if (str_printf(boot, sizeof(boot), "%s/boot", from) < 0)
		return error_set(err, -ENAMETOOLONG, "look into %s", from);
	boot_fd = sysio_openat(AT_FDCWD, boot, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (boot_fd >= 0 && fd_list_dir(boot_fd, &names) < 0)
		return error_set(err, -EIO, "list %s", boot);
	for (size_t i = 0; names && names[i]; i++)
		if (str_has_prefix(names[i], SOURCE_KERNEL) &&
		    (!best || source_is_better(names[i], best)))
			best = names[i];
	if (!best)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "there is no kernel in %s: install linux-image-cloud-amd64, or "
				    "unpack it somewhere (dpkg-deb -x) and say --from DIR, or name "
				    "one by --kernel and --modules",
				    boot);
	return str_copy(ret, size, best + strlen(SOURCE_KERNEL));
}

static int source_find_kernel(struct guest_source *s, const char *from, struct error *err)
{
	static const char *const places[] = { "lib/modules", "usr/lib/modules" };
	char release[NAME_MAX + 1], path[PATH_MAX];
	int r = source_choose(from, release, sizeof(release), err);

	if (r < 0)
		return r;
	if (str_printf(path, sizeof(path), "%s/boot/" SOURCE_KERNEL "%s", from, release) < 0)
		return error_set(err, -ENAMETOOLONG, "look into %s", from);
	s->kernel_fd = source_open(path, 0, err);
	if (s->kernel_fd < 0)
		return s->kernel_fd;
	for (size_t i = 0; i < ARRAY_SIZE(places) && s->modules_fd < 0; i++)
		if (str_printf(path, sizeof(path), "%s/%s/%s", from, places[i], release) > 0)
			s->modules_fd =
				sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (s->modules_fd < 0)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "the kernel %s is in %s/boot, and its modules are not in "
				    "%s/lib/modules/%s",
				    release, from, from, release);
	return 0;
}

static int source_take_kernel(struct guest_source *s, const struct args *args, struct error *err)
{
	const char *kernel = args_value(args, "kernel"), *modules = args_value(args, "modules");
	const char *from = args_value(args, "from");

	if (!kernel && modules)
		return error_refuse(err, ERROR_INVALID,
				    "--modules are those of a --kernel, which is missing");
	if (kernel && from)
		return error_refuse(err, ERROR_INVALID, "--from and --kernel exclude each other");
	if (!kernel)
		return source_find_kernel(s, from ? from : "", err);
	s->kernel_fd = source_open(kernel, 0, err);
	if (s->kernel_fd < 0 || !modules)
		return MIN(s->kernel_fd, 0);
	s->modules_fd = source_open(modules, O_DIRECTORY, err);
	return MIN(s->modules_fd, 0);
}

/* Beside this program in a build tree, or where it was installed. */
static int source_find_gate(struct error *err)
{
	static const char *const beside[] = { "libexec/nacre", "../libexec/nacre" };
	char exe[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;
	int fd;

	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside) && slash; i++) {
		if (str_printf(path, sizeof(path), "%s/%s/" SOURCE_GATE, exe, beside[i]) < 0)
			continue;
		fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
		if (fd >= 0)
			return fd;
	}
	return error_refuse(err, ERROR_NOT_FOUND,
			    "there is no " SOURCE_GATE " beside this program: without it nobody "
			    "reaches a guest; name it by --gate FILE");
}

static int source_take_programs(struct guest_source *s, const struct args *args, struct error *err)
{
	const char *gate = args_value(args, "gate");

	s->nacre_fd = source_open("/proc/self/exe", 0, err);
	if (s->nacre_fd < 0)
		return s->nacre_fd;
	if (gate && str_eq(gate, "none"))
		return 0;
	s->gate_fd = gate ? source_open(gate, 0, err) : source_find_gate(err);
	return MIN(s->gate_fd, 0);
}

int guest_source_find(struct guest_source *s, const struct args *args, struct error *err)
{
	int r = source_take_kernel(s, args, err);

	return r < 0 ? r : source_take_programs(s, args, err);
}

void guest_source_done(struct guest_source *s)
{
	s->kernel_fd = fd_close(s->kernel_fd);
	s->modules_fd = fd_close(s->modules_fd);
	s->nacre_fd = fd_close(s->nacre_fd);
	s->gate_fd = fd_close(s->gate_fd);
}

int guest_source_root(const char *root, bool make, struct error *err)
{
	int fd;

	if (make && sysio_mkdirat(AT_FDCWD, root, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", root);
	fd = sysio_openat(AT_FDCWD, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0 && errno == ENOENT)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "there is no %s yet: the daemon makes it, or nacre guest build",
				    root);
	return fd < 0 ? error_set(err, -errno, "open %s", root) : fd;
}
