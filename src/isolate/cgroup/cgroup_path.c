/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"

#define CGROUP_TYPE_MAX 64
#define CGROUP_SLICE_DEFAULT "system.slice"
/* On the groups that were made on the way to another one. Where the kernel has no such attributes
 * on cgroups (before 5.7) they stay. */
#define CGROUP_MADE "user.nacre.made"
#define CGROUP_PATH_TRIES 8

/* A path in its parts; text is the copy that they point into. */
struct cgroup_parts {
	char *text;
	const char *names[CGROUP_PATH_DEPTH_MAX];
	size_t n;
};

static void cgroup_parts_done(struct cgroup_parts *p)
{
	free(p->text);
}

static int cgroup_parts_of(struct cgroup_parts *ret, const char *path, struct error *err)
{
	char *save = NULL;

	*ret = (struct cgroup_parts){ .text = strdup(path) };
	if (!ret->text)
		return error_set(err, -ENOMEM, "the path of a cgroup");
	for (char *name = strtok_r(ret->text, "/", &save); name;
	     name = strtok_r(NULL, "/", &save)) {
		if (str_eq(name, ".") || str_eq(name, "..") || !str_is_clean(name))
			return error_refuse(err, ERROR_INVALID,
					    "\"%s\" cannot be part of a cgroup's path", name);
		if (ret->n == CGROUP_PATH_DEPTH_MAX)
			return error_refuse(err, ERROR_INVALID,
					    "the path of a cgroup is deeper than %d",
					    CGROUP_PATH_DEPTH_MAX);
		ret->names[ret->n++] = name;
	}
	return 0;
}

int cgroup_path_check(const char *path)
{
	size_t n = 0;

	if (!str_is_clean(path))
		return -EINVAL;
	do {
		size_t len;

		if (*path++ != '/')
			return -EINVAL;
		len = strcspn(path, "/");
		if (len == 0 || len > NAME_MAX || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.') || ++n > CGROUP_PATH_DEPTH_MAX)
			return -EINVAL;
		path += len;
	} while (*path);
	return 0;
}

static int cgroup_open_part(int parent_fd, const char *name)
{
	int fd = sysio_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* A group that was made below a threaded one is in no state to hold anything until it is threaded
 * too. */
static int cgroup_settle_type(int dir_fd, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = fd_read_file(dir_fd, "cgroup.type", CGROUP_TYPE_MAX, &b);

	/* The root has no type. */
	if (r == -ENOENT || b.len < strlen("domain invalid") ||
	    memcmp(buf_data(&b), "domain invalid", strlen("domain invalid")) != 0)
		return r == -ENOENT || r >= 0 ? 0 : error_set(err, r, "read cgroup.type");
	r = fd_write_file(dir_fd, "cgroup.type", "threaded");
	return r < 0 ? error_set(err, r, "make a cgroup threaded") : 0;
}

static void cgroup_hand_on(int dir_fd, unsigned controllers)
{
	controllers &= cgroup_controllers(dir_fd);
	if (cgroup_enable(dir_fd, controllers, NULL) >= 0)
		return;
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (controllers & 1U << i)
			(void)cgroup_enable(dir_fd, 1U << i, NULL);
}

/* Makes names[i] below parent_fd; *made says whether it was missing. */
static int cgroup_make_part(int parent_fd, const char *name, bool *made, struct error *err)
{
	_cleanup_fd_ int fd = cgroup_open_part(parent_fd, name);
	int r;

	*made = fd == -ENOENT;
	if (fd == -ENOENT)
		fd = cgroup_make(parent_fd, name, err);
	else if (fd < 0)
		return error_set(err, fd, "open the cgroup %s", name);
	if (fd < 0)
		return fd;
	r = cgroup_settle_type(fd, err);
	return r < 0 ? r : TAKE_FD(fd);
}

struct cgroup_made {
	int fds[CGROUP_PATH_DEPTH_MAX]; /* of the parents */
	const char *names[CGROUP_PATH_DEPTH_MAX];
	size_t n;
};

/* Takes away what was made, the deepest first, unless somebody else uses it already. */
static void cgroup_unmake(struct cgroup_made *made, bool remove)
{
	while (made->n) {
		made->n--;
		if (remove)
			(void)sysio_unlinkat(made->fds[made->n], made->names[made->n],
					     AT_REMOVEDIR);
		(void)fd_close(made->fds[made->n]);
	}
}

static int cgroup_make_parts(struct cgroup_made *made, int root_fd, const struct cgroup_parts *p,
			     unsigned needed, unsigned wanted, struct error *err)
{
	_cleanup_fd_ int fd = fd_copy(root_fd);
	int r = fd < 0 ? error_set(err, fd, "copy a descriptor") : 0;

	for (size_t i = 0; i < p->n && r >= 0; i++) {
		bool is_new = false;
		int next;

		r = cgroup_enable(fd, needed, err);
		if (r < 0)
			return r;
		cgroup_hand_on(fd, wanted & ~needed);
		next = cgroup_make_part(fd, p->names[i], &is_new, err);
		if (is_new && next >= 0 && i + 1 < p->n)
			(void)fsetxattr(next, CGROUP_MADE, "y", 1, 0);
		if (is_new) {
			made->names[made->n] = p->names[i];
			made->fds[made->n++] = TAKE_FD(fd);
		}
		(void)fd_close(fd);
		fd = next;
		r = next;
	}
	return r < 0 ? r : TAKE_FD(fd);
}

/* A group on the way may be taken away, by who made it, as soon as nobody is in it. */
static bool cgroup_is_gone(int r)
{
	return r == -ENOENT || r == -ENODEV;
}

int cgroup_make_path(int root_fd, const char *path, unsigned needed, unsigned wanted,
		     struct error *err)
{
	_cleanup_(cgroup_parts_done) struct cgroup_parts p = { .text = NULL };
	struct cgroup_made made = { .n = 0 };
	int r = cgroup_parts_of(&p, path, err);

	if (r < 0)
		return r;
	for (int i = 0; i < CGROUP_PATH_TRIES; i++) {
		if (i > 0 && err)
			*err = (struct error)ERROR_INIT;
		r = cgroup_make_parts(&made, root_fd, &p, needed, wanted, err);
		cgroup_unmake(&made, r < 0);
		if (!cgroup_is_gone(r))
			break;
	}
	return r;
}

int cgroup_open_path(int root_fd, const char *path)
{
	_cleanup_(cgroup_parts_done) struct cgroup_parts p = { .text = NULL };
	_cleanup_fd_ int fd = -1;
	int r = cgroup_parts_of(&p, path, NULL);

	if (r < 0)
		return r;
	fd = cgroup_open_part(root_fd, ".");
	for (size_t i = 0; i < p.n && fd >= 0; i++) {
		int next = cgroup_open_part(fd, p.names[i]);

		(void)fd_close(fd);
		fd = next;
	}
	return fd < 0 ? fd : TAKE_FD(fd);
}

/* Where a path ends, as a descriptor of the group above and its name; the path may be cut there. */
static int cgroup_open_above(int root_fd, char *path, const char **ret_name)
{
	char *last = strrchr(path, '/');

	*ret_name = last ? last + 1 : path;
	if (!last)
		return cgroup_open_part(root_fd, ".");
	*last = '\0';
	return cgroup_open_path(root_fd, path);
}

/* Takes away the groups of the path that cgroup_make_path() has made on its way and that nobody is
 * in any more, the deepest first. */
static void cgroup_remove_above(int root_fd, char *path)
{
	for (bool top = false; !top;) {
		_cleanup_fd_ int fd = cgroup_open_path(root_fd, path);
		_cleanup_fd_ int above = -1;
		const char *name;
		char mark;

		if (fd < 0 || fgetxattr(fd, CGROUP_MADE, &mark, 1) != 1)
			return;
		top = !strchr(path, '/');
		above = cgroup_open_above(root_fd, path, &name);
		if (above < 0 || sysio_unlinkat(above, name, AT_REMOVEDIR) < 0)
			return;
	}
}

int cgroup_remove_path(int root_fd, const char *path)
{
	_cleanup_str_ char *above = strdup(path);
	_cleanup_fd_ int fd = -1;
	const char *name;
	int r;

	if (!above)
		return -ENOMEM;
	fd = cgroup_open_above(root_fd, above, &name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = cgroup_remove(fd, name);
	if (r == 0 && name != above)
		cgroup_remove_above(root_fd, above);
	return r;
}

/* "a-b-c.slice" stands in a-b.slice, that in a.slice; "-.slice" is the root. */
static int cgroup_add_slice(struct buf *b, const char *slice)
{
	size_t len = strlen(slice) - strlen(".slice");
	int r = 0;

	if (str_eq(slice, "-.slice"))
		return 0;
	for (size_t i = 1; i <= len && r >= 0; i++)
		if (i == len || slice[i] == '-')
			r = buf_addf(b, "%.*s.slice/", (int)i, slice);
	return r;
}

static bool cgroup_slice_is_good(const char *slice)
{
	if (!str_has_suffix(slice, ".slice") || strchr(slice, '/'))
		return false;
	if (str_eq(slice, "-.slice"))
		return true;
	/* No empty part between two of the dashes. */
	return *slice != '.' && *slice != '-' && !strstr(slice, "--") && !strstr(slice, "-.slice");
}

static int cgroup_path_of_systemd(struct buf *b, const char *path, const char *name,
				  struct error *err)
{
	_cleanup_str_ char *slice = NULL;
	const char *prefix = strchr(path, ':');
	const char *unit = prefix ? strchr(prefix + 1, ':') : NULL;
	int r;

	if (!*path) {
		r = buf_addf(b, "%s/nacre-%s.scope", CGROUP_SLICE_DEFAULT, name);
		return r < 0 ? error_set(err, r, "the path of a cgroup") : 0;
	}
	if (!unit || strchr(unit + 1, ':') || !unit[1] || strchr(prefix, '/'))
		return error_refuse(err, ERROR_INVALID,
				    "with systemd a cgroup is named as SLICE:PREFIX:NAME");
	slice = prefix == path ? strdup(CGROUP_SLICE_DEFAULT)
			       : strndup(path, (size_t)(prefix - path));
	if (!slice)
		return error_set(err, -ENOMEM, "the path of a cgroup");
	if (!cgroup_slice_is_good(slice))
		return error_refuse(err, ERROR_INVALID, "\"%s\" cannot be the name of a slice",
				    slice);
	prefix++;
	unit++;
	r = cgroup_add_slice(b, slice);
	if (r >= 0 && str_has_suffix(unit, ".slice"))
		r = buf_add_str(b, unit);
	else if (r >= 0)
		r = buf_addf(b, "%.*s%s%s.scope", (int)(unit - 1 - prefix), prefix,
			     unit - 1 == prefix ? "" : "-", unit);
	return r < 0 ? error_set(err, r, "the path of a cgroup") : 0;
}

/* Beside the own group: that holds this process, and so could hand no controller on. */
static int cgroup_path_beside(struct buf *b, const char *own, const char *path)
{
	const char *last = strrchr(own, '/');

	return last ? buf_addf(b, "%.*s/%s", (int)(last - own), own, path) : buf_add_str(b, path);
}

int cgroup_path_of_oci(char *ret, size_t size, const char *cgroups_path, bool systemd,
		       const char *own, const char *name, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_(cgroup_parts_done) struct cgroup_parts p = { .text = NULL };
	_cleanup_str_ char *path = NULL;
	size_t len = 0;
	int r;

	if (systemd)
		r = cgroup_path_of_systemd(&b, cgroups_path, name, err);
	else if (*cgroups_path == '/')
		r = buf_add_str(&b, cgroups_path);
	else
		r = cgroup_path_beside(&b, own, *cgroups_path ? cgroups_path : name);
	if (r < 0)
		return systemd ? r : error_set(err, r, "the path of a cgroup");
	path = buf_take_str(&b);
	if (!path)
		return error_set(err, -ENOMEM, "the path of a cgroup");
	r = cgroup_parts_of(&p, path, err);
	if (r < 0)
		return r;
	if (p.n == 0)
		return error_refuse(err, ERROR_INVALID, "the root of the cgroups is not for one");
	for (size_t i = 0; i < p.n; i++) {
		r = str_printf(ret + len, size - len, "%s%s", i ? "/" : "", p.names[i]);
		if (r < 0)
			return error_refuse(err, ERROR_INVALID, "the path of a cgroup is too long");
		len += (size_t)r;
	}
	return 0;
}
