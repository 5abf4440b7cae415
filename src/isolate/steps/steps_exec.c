/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/user/user.h"

/* Where a program without PATH is looked for. */
#define STEPS_PATH_DEFAULT "/bin:/usr/bin"

/* Made here, it is the user's; what is there by then (the name may be in a volume, where others
 * make and exchange directories) stays whose it is. */
static int steps_cwd_make(const struct isolate_plan *p, int root_fd, const char *cwd)
{
	_cleanup_fd_ int parent_fd = -1, fd = -1;
	char path[PATH_MAX];
	char *name;
	int r = str_copy(path, sizeof(path), cwd);

	if (r < 0)
		return r;
	for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	name = strrchr(path, '/');
	if (!name)
		return rootfd_make_dir(root_fd, cwd);
	*name++ = '\0';
	parent_fd = rootfd_make_dir(root_fd, *path ? path : "/");
	if (parent_fd < 0)
		return parent_fd;
	if (sysio_mkdirat(parent_fd, name, 0755) < 0)
		return errno == EEXIST ? rootfd_open(root_fd, cwd, O_PATH | O_DIRECTORY, 0)
				       : -errno;
	fd = sysio_openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0 || fchownat(fd, "", p->uid, p->gid, AT_EMPTY_PATH) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int steps_cwd_open(struct isolate_steps *s, int root_fd, const char *cwd)
{
	int fd = rootfd_open(root_fd, cwd, O_PATH | O_DIRECTORY, 0);

	if (fd != -ENOENT ||
	    (s->plan->root != ISOLATE_ROOT_CONTAINER && s->plan->root != ISOLATE_ROOT_TREE))
		return fd;
	return steps_cwd_make(s->plan, root_fd, cwd);
}

/*
 * Should: enter the directory as root, and make it in a container where it is missing, since images
 * name directories that nobody has made. Must not: leave the root by a link (security.md A23) nor
 * pass through /proc/self/fd (links of that kind are refused), so that no descriptor of the spawner
 * becomes a place to stand on.
 */
int isolate_step_cwd(struct isolate_steps *s, struct error *err)
{
	const char *cwd = str_empty(s->plan->cwd) ? "/" : s->plan->cwd;
	_cleanup_fd_ int root_fd = -1;
	_cleanup_fd_ int fd = -1;

	(void)umask(0022);
	if (str_eq(cwd, "/"))
		return chdir(cwd) < 0 ? error_set(err, -errno, "%s", cwd) : 0;
	root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0)
		return error_set(err, -errno, "open the root");
	fd = steps_cwd_open(s, root_fd, cwd);
	if (fd < 0)
		return error_set(err, fd, "%s", cwd);
	return fchdir(fd) < 0 ? error_set(err, -errno, "%s", cwd) : 0;
}

/*
 * Should: look below the root that the program will have, in which a volume can cover /etc/passwd.
 * Must not: leave it by a link, wait for a fifo, or read without end; the file is a stranger's.
 */
int isolate_step_home(struct isolate_steps *s, struct error *err)
{
	_cleanup_fd_ int root_fd = -1;

	if (!s->plan->home)
		return 0;
	root_fd = sysio_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (root_fd < 0)
		return error_set(err, -errno, "open the root");
	return isolate_user_home(root_fd, s->plan->uid, s->plan->home, err);
}

static int steps_exec_failed(struct isolate_steps *s, int r, const char *path, struct error *err)
{
	s->exit_hint = r == -ENOENT || r == -ENOTDIR ? ISOLATE_EXIT_NOT_FOUND
						     : ISOLATE_EXIT_NOT_EXECUTABLE;
	return error_set(err, r, "%s", path);
}

/* Whether the search goes on behind a directory in which the exec failed so. */
static bool steps_exec_goes_on(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -ESTALE ||
	       r == -ENAMETOOLONG || r == -ENODEV || r == -ETIMEDOUT || r == -ELOOP;
}

/* Puts "DIR/name" into path, DIR being the first entry of list; an empty one is the working
 * directory. */
static int steps_exec_join(char path[PATH_MAX], const char *list, const char *name)
{
	size_t len = strcspn(list, ":"), n = strlen(name);

	if (len + 1 + n >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path, list, len);
	if (len)
		path[len++] = '/';
	memcpy(path + len, name, n + 1);
	return 0;
}

static int steps_exec_search(const struct isolate_plan *p, const char *name)
{
	const char *list = strv_env_get(p->env, "PATH");
	char path[PATH_MAX];
	bool denied = false;

	for (list = list ?: STEPS_PATH_DEFAULT;; list++) {
		int r = steps_exec_join(path, list, name);

		if (r == 0) {
			(void)execve(path, p->argv, p->env);
			r = -errno;
		}
		if (!steps_exec_goes_on(r))
			return r;
		denied = denied || r == -EACCES;
		list += strcspn(list, ":");
		if (!*list)
			return denied ? -EACCES : -ENOENT;
	}
}

/*
 * Should: become the program; or say whether there is none (127) or it cannot be executed (126).
 * Must not: hand a file that is no program to a shell, as execvp() would.
 */
int isolate_step_exec(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	const char *name = p->argv[0];

	if (s->exec_fd >= 0) {
		(void)syscall(SYS_execveat, s->exec_fd, "", p->argv, p->env, AT_EMPTY_PATH);
		return steps_exec_failed(s, -errno, name, err);
	}
	if (!strchr(name, '/'))
		return steps_exec_failed(s, steps_exec_search(p, name), name, err);
	(void)execve(name, p->argv, p->env);
	return steps_exec_failed(s, -errno, name, err);
}
