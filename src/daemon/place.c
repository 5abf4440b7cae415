/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "daemon/replace.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"
#include "volumes/secrets.h"

#define PLACE_RUN_DEFAULT "/run/nacre"
#define PLACE_REPLACES_MAX 8
/* In the run directory: the path of the base group. */
#define PLACE_CGROUP "cgroup"

/* Makes a directory with its parents and opens it; it is ours alone (0700) whatever it was. */
static int place_open_dir(const char *path, struct error *err)
{
	char part[PATH_MAX];
	_cleanup_fd_ int fd = -1;

	if (str_copy(part, sizeof(part), path) < 0)
		return error_refuse(err, ERROR_INVALID, "%.80s…: the path is too long", path);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (sysio_mkdirat(AT_FDCWD, part, 0755) < 0 && errno != EEXIST)
			return error_set(err, -errno, "make the directory %s", part);
		*p = '/';
	}
	if (sysio_mkdirat(AT_FDCWD, part, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory %s", path);
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open the directory %s", path);
	if (fchmod(fd, 0700) < 0)
		return error_set(err, -errno, "close the directory %s to others", path);
	return TAKE_FD(fd);
}

/* A lock of the process: it ends with it. One of flock(2) would be held also by a child of it that
 * has not come to its exec yet. Nothing else in here may open this file: each close() unlocks. */
static int place_try_lock(const struct place *p)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(p->lock_fd, F_SETLK, &lock) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

/* The holder of the lock is asked to end; a second one may be quicker than we are, so that is tried
 * a few times. */
static int place_take_lock(struct place *p, nsec_t replace, struct error *err)
{
	int r;

	for (int i = 0; i < PLACE_REPLACES_MAX; i++) {
		r = replace_owner(p->lock_fd, replace, err);
		if (r < 0 && !(err && err->kind == ERROR_NOT_FOUND))
			return r;
		r = place_try_lock(p);
		if (r == 0)
			return 0;
		if (r != -EAGAIN)
			return error_set(err, r, "lock the run directory");
	}
	return error_refuse(err, ERROR_PRECONDITION,
			    "the run directory is held by somebody who cannot be replaced");
}

static int place_lock(struct place *p, const char *run, nsec_t replace, struct error *err)
{
	int r;

	p->lock_fd =
		sysio_openat(p->run_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (p->lock_fd < 0)
		return error_set(err, -errno, "open %s/lock", run);
	r = place_try_lock(p);
	if (r == 0)
		return 0;
	if (r == -EAGAIN && replace)
		return place_take_lock(p, replace, err);
	if (r == -EAGAIN)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"another daemon uses the run directory %s (--replace takes over "
			"from it)",
			run);
	return error_set(err, r, "lock %s/lock", run);
}

/* What lies in a run directory means nothing after a reboot, also where it is not on a tmpfs. */
static int place_forget_last_boot(struct place *p, struct error *err)
{
	_cleanup_(buf_done) struct buf now = BUF_INIT;
	_cleanup_(buf_done) struct buf then = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm", "run.db-reserve",
					     "i",      "node",       "secrets",    PLACE_CGROUP };
	int r;

	r = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 128, &now);
	if (r < 0)
		return error_set(err, r, "read the id of this boot");
	r = fd_read_file(p->run_fd, "boot", 128, &then);
	/* What cannot be read is not what was never written: what lives must not be forgotten. */
	if (r < 0 && r != -ENOENT)
		return error_set(err, r, "read the file boot");
	if (r == 0 && then.len == now.len && memcmp(buf_data(&then), buf_data(&now), now.len) == 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		r = rootfd_remove_tree(p->run_fd, names[i]);
		if (r < 0)
			return error_set(err, r, "remove %s of an earlier boot", names[i]);
	}
	fd = sysio_openat(p->run_fd, "boot", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			  0600);
	if (fd < 0)
		return error_set(err, -errno, "open the file boot");
	r = fd_write_full(fd, buf_data(&now), now.len);
	return r < 0 ? error_set(err, r, "write the file boot") : 0;
}

/* FNV-1a: tells the run directories of several daemons apart in the names of their groups. */
static uint32_t place_hash(const char *s)
{
	uint32_t h = 2166136261U;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619U;
	return h;
}

static int place_choose_cgroup(struct place *p, const char *run, const char *wanted,
			       struct error *err)
{
	char own[400], real[PATH_MAX];
	int r;

	if (*wanted) {
		(void)str_copy(p->cgroup, sizeof(p->cgroup), wanted);
		return 0;
	}
	r = cgroup_own_path(own, sizeof(own), err);
	if (r < 0)
		return r;
	if (!realpath(run, real))
		return error_set(err, -errno, "resolve %s", run);
	r = str_printf(p->cgroup, sizeof(p->cgroup), "%s%s/nacre", *own ? "/" : "", own);
	if (r >= 0 && !str_eq(real, PLACE_RUN_DEFAULT))
		r = str_printf(p->cgroup, sizeof(p->cgroup), "%s%s/nacre-%08x", *own ? "/" : "",
			       own, place_hash(real));
	return r < 0 ? error_set(err, r, "name the base cgroup") : 0;
}

/* Whether something of an earlier daemon may live there. */
static bool place_has_groups(const char *cgroup)
{
	_cleanup_fd_ int root = cgroup_open_root(NULL);
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (root < 0 || cgroup[0] != '/' || !cgroup[1])
		return false;
	fd = sysio_openat(root, cgroup + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink > 2;
}

/*
 * What lives keeps its group, so a daemon that is started from elsewhere, or is told another one,
 * goes on with the group of the one before, as long as there is anything in it.
 */
static int place_keep_cgroup(struct place *p, struct error *err)
{
	_cleanup_(buf_done) struct buf was = BUF_INIT;
	_cleanup_fd_ int fd = -1;
	char last[sizeof(p->cgroup)];
	int r;

	r = fd_read_file(p->run_fd, PLACE_CGROUP, sizeof(last) - 1, &was);
	if (r < 0 && r != -ENOENT)
		return error_set(err, r, "read the file " PLACE_CGROUP);
	(void)str_printf(last, sizeof(last), "%.*s", (int)was.len,
			 was.len ? (const char *)buf_data(&was) : "");
	if (str_eq(last, p->cgroup))
		return 0;
	if (place_has_groups(last)) {
		log_info("workloads live in another cgroup, which stays in use",
			 LOG_STR("cgroup", last), LOG_STR("instead_of", p->cgroup));
		(void)str_copy(p->cgroup, sizeof(p->cgroup), last);
		return 0;
	}
	fd = sysio_openat(p->run_fd, PLACE_CGROUP ".new",
			  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fd_write_full(fd, p->cgroup, strlen(p->cgroup));
	if (r == 0 && sysio_renameat(p->run_fd, PLACE_CGROUP ".new", p->run_fd, PLACE_CGROUP) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "write the file " PLACE_CGROUP) : 0;
}

/* The base group and those above it hand on to workloads what these are counted and limited by. A
 * group that holds processes cannot: of the daemon's own one nothing comes down then. */
static int place_open_cgroup(struct place *p, struct error *err)
{
	unsigned have;

	p->top_fd = cgroup_open_root(err);
	if (p->top_fd < 0)
		return p->top_fd;
	p->cgroup_fd =
		cgroup_make_path(p->top_fd, p->cgroup + 1, 0, CGROUP_CONTROLLERS_WORKLOAD, err);
	if (p->cgroup_fd < 0)
		return error_wrap(err, p->cgroup_fd, "cgroup: %s", p->cgroup);
	have = cgroup_controllers(p->cgroup_fd) & CGROUP_CONTROLLERS_WORKLOAD;
	if (have)
		(void)cgroup_enable(p->cgroup_fd, have, NULL);
	return 0;
}

int place_open(struct place *p, const char *root, const char *run, const char *wanted_cgroup,
	       nsec_t replace, struct error *err)
{
	int r;

	*p = (struct place){ .root_fd = -1,
			     .run_fd = -1,
			     .lock_fd = -1,
			     .logs_fd = -1,
			     .secrets_fd = -1,
			     .sets_fd = -1,
			     .top_fd = -1,
			     .cgroup_fd = -1 };
	p->run_fd = place_open_dir(run, err);
	if (p->run_fd < 0)
		return p->run_fd;
	p->root_fd = place_open_dir(root, err);
	if (p->root_fd < 0)
		return p->root_fd;
	r = place_choose_cgroup(p, run, wanted_cgroup, err);
	if (r < 0)
		return r;
	/* Last of what can fail for want of a right or a directory: who takes over from a daemon
	 * must not end it for nothing. */
	r = place_lock(p, run, replace, err);
	if (r < 0)
		return r;
	r = place_forget_last_boot(p, err);
	if (r == 0)
		r = place_keep_cgroup(p, err);
	if (r < 0)
		return r;
	if (sysio_mkdirat(p->root_fd, "logs", 0750) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s/logs", root);
	p->logs_fd = sysio_openat(p->root_fd, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (p->logs_fd < 0)
		return error_set(err, -errno, "open %s/logs", root);
	p->secrets_fd = secrets_open(p->root_fd, err);
	if (p->secrets_fd < 0)
		return p->secrets_fd;
	p->sets_fd = secrets_open(p->run_fd, err);
	return p->sets_fd < 0 ? p->sets_fd : place_open_cgroup(p, err);
}

void place_remove_cgroup(struct place *p)
{
	p->cgroup_fd = fd_close(p->cgroup_fd);
	if (p->top_fd >= 0 && sysio_unlinkat(p->top_fd, p->cgroup + 1, AT_REMOVEDIR) < 0)
		log_debug("the base cgroup stays", LOG_STR("cgroup", p->cgroup));
}

void place_done(struct place *p)
{
	p->root_fd = fd_close(p->root_fd);
	p->run_fd = fd_close(p->run_fd);
	p->lock_fd = fd_close(p->lock_fd);
	p->logs_fd = fd_close(p->logs_fd);
	p->secrets_fd = fd_close(p->secrets_fd);
	p->sets_fd = fd_close(p->sets_fd);
	p->cgroup_fd = fd_close(p->cgroup_fd);
	p->top_fd = fd_close(p->top_fd);
}

void place_find_helper(const char *libexec, const char *name, char *ret, size_t size)
{
	static const char *const beside[] = { "libexec/nacre", "../libexec/nacre" };
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (libexec[0]) {
		(void)str_printf(ret, size, "%s/%s", libexec, name);
		return;
	}
	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside) && slash; i++)
		if (str_printf(ret, size, "%s/%s/%s", exe, beside[i], name) > 0 &&
		    access(ret, X_OK) == 0)
			return;
	(void)str_printf(ret, size, NACRE_LIBEXECDIR "/%s", name);
}

char *place_helper(const char *libexec, const char *name)
{
	char path[PATH_MAX];

	place_find_helper(libexec, name, path, sizeof(path));
	return strdup(path);
}
