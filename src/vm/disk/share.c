/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/share.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "io/unix.h"
#include "isolate/mount/graft.h"

/*
 * virtiofsd listens and takes one connection. Ours is in the queue before it is started, and the
 * name of the socket is gone by then: nobody else can be the one whom it serves.
 *
 * What it says goes into a memfd that cannot grow: neither a full disk nor a pipe that nobody reads
 * any more can come of a guest that makes it complain.
 */

#define SHARE_SOCKET "share.sock"
/* Of what it said, in an error. */
#define SHARE_QUOTE_MAX 160

static int share_says_new(struct error *err)
{
	_cleanup_fd_ int fd = memfd_create("virtiofsd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || sysio_ftruncate(fd, SHARE_SAYS_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return error_set(err, -errno, "make room for what virtiofsd says");
	return TAKE_FD(fd);
}

/* The last whole line that it said, or "". */
static void share_quote(const struct share *s, char quote[SHARE_QUOTE_MAX])
{
	char text[SHARE_SAYS_MAX + 1] = "";
	char *line = text, *end;
	ssize_t n = s->says_fd < 0 ? 0 : sysio_pread(s->says_fd, text, SHARE_SAYS_MAX, 0);

	text[n < 0 ? 0 : n] = '\0';
	quote[0] = '\0';
	end = strrchr(text, '\n');
	if (!end)
		return;
	*end = '\0';
	end = strrchr(text, '\n');
	line = end ? end + 1 : text;
	for (char *p = line; *p; p++)
		*p = (char)(*p < ' ' || *p > '~' ? '?' : *p);
	(void)str_printf(quote, SHARE_QUOTE_MAX, ": %.140s", line);
}

static void share_release(struct share *s)
{
	loop_fd_done(&s->report);
	loop_child_done(&s->watch);
	isolate_child_done(&s->child);
	s->says_fd = fd_close(s->says_fd);
	s->running = false;
	s->up = false;
}

static void share_read_report(struct share *s)
{
	int exit_code, r;

	if (s->child.report_fd < 0)
		return;
	loop_fd_done(&s->report);
	r = isolate_child_report(&s->child, &exit_code, &s->err);
	s->child.report_fd = fd_close(s->child.report_fd);
	if (r < 0)
		return;
	s->up = true;
}

static void share_on_report(struct loop_fd *source, unsigned events)
{
	struct share *s = container_of(source, struct share, report);

	share_read_report(s);
	if (s->up)
		s->ops->on_up(s);
}

static void share_judge(struct share *s, int code, int status)
{
	char quote[SHARE_QUOTE_MAX];

	if (s->err.code || s->killed || (code == CLD_EXITED && status == 0))
		return;
	share_quote(s, quote);
	if (code == CLD_EXITED)
		(void)error_refuse(&s->err, ERROR_FAULT, "virtiofsd ended with status %d%s", status,
				   quote);
	else if (code != 0)
		(void)error_refuse(&s->err, ERROR_FAULT, "virtiofsd was killed by signal %d%s",
				   status, quote);
	else
		(void)error_refuse(&s->err, ERROR_FAULT, "virtiofsd has ended");
}

static void share_on_child(struct loop_child *source, int code, int status)
{
	struct share *s = container_of(source, struct share, watch);
	struct error err;

	share_read_report(s);
	share_judge(s, code, status);
	err = s->err;
	share_release(s);
	s->ops->on_end(s, err.code ? &err : NULL);
}

static void share_begin(struct share *s, const struct share_config *config,
			const struct share_ops *ops)
{
	*s = (struct share){ .ops = ops,
			     .loop = config->loop,
			     .pool = config->pool,
			     .proc_fd = config->proc_fd,
			     .child = ISOLATE_CHILD_INIT,
			     .says_fd = -1,
			     .err = ERROR_INIT };
}

/* Both ends of a connection that one program accepts from the first of them. */
static int share_connect(int dir_fd, int *ret_listen_fd, int *ret_fd, struct error *err)
{
	_cleanup_fd_ int listen_fd = unix_listen(dir_fd, SHARE_SOCKET, SOCK_STREAM, err);
	_cleanup_fd_ int fd = -1;
	int r;

	if (listen_fd < 0)
		return listen_fd;
	fd = unix_connect(dir_fd, SHARE_SOCKET, SOCK_STREAM, err);
	(void)sysio_unlinkat(dir_fd, SHARE_SOCKET, 0);
	if (fd < 0)
		return fd;
	/* Both programs set themselves what they need. */
	r = fd_set_nonblock(listen_fd, false);
	if (r == 0)
		r = fd_set_nonblock(fd, false);
	if (r < 0)
		return error_set(err, r, "make the socket of virtiofsd");
	*ret_listen_fd = TAKE_FD(listen_fd);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int share_start(struct share *s, const struct share_config *config, const struct share_ops *ops,
		int *ret_fd, struct error *err)
{
	_cleanup_fd_ int listen_fd = -1, fd = -1, says_fd = share_says_new(err);
	int r;

	share_begin(s, config, ops);
	if (says_fd < 0)
		return says_fd;
	r = share_connect(config->dir_fd, &listen_fd, &fd, err);
	if (r == 0)
		r = share_jail_spawn(config->program, config->cgroup_fd, listen_fd, says_fd,
				     &s->child, err);
	if (r < 0)
		return r;
	s->says_fd = TAKE_FD(says_fd);
	s->running = true;
	loop_fd_init(&s->report, s->loop, s->child.report_fd, LOOP_READ, share_on_report);
	loop_child_init(&s->watch, s->loop, s->child.pidfd, share_on_child);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int share_adopt(struct share *s, const struct share_config *config, const struct share_ops *ops,
		pid_t pid, unsigned long long start_time, struct error *err)
{
	unsigned long long began;
	int r;

	share_begin(s, config, ops);
	s->child.pidfd = pidfd_of(pid);
	r = s->child.pidfd < 0 ? s->child.pidfd : process_start_time(config->proc_fd, pid, &began);
	if (r == 0 && (began != start_time || pidfd_has_ended(s->child.pidfd)))
		r = -ESRCH;
	if (r < 0) {
		isolate_child_done(&s->child);
		if (r != -ESRCH && r != -ENOENT)
			return error_set(err, r, "look for virtiofsd");
		(void)error_refuse(err, ERROR_NOT_FOUND, "virtiofsd is gone");
		return -ESRCH;
	}
	s->child.pid = pid;
	s->running = true;
	s->up = true;
	loop_child_init(&s->watch, s->loop, s->child.pidfd, share_on_child);
	return 0;
}

void share_stop(struct share *s)
{
	if (!s->running)
		return;
	s->killed = true;
	(void)pidfd_kill(s->child.pidfd, SIGKILL);
}

void share_done(struct share *s)
{
	if (s->running)
		share_release(s);
}

/* ---- volumes ---- */

bool share_name_is_valid(const char *name)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char more[] =
		"._-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = name ? strlen(name) : 0;

	return len > 0 && len <= SHARE_NAME_MAX && strspn(name, first) > 0 &&
	       strspn(name, more) == len;
}

/* Its mount namespace. A number that has passed on to another process is noticed: the right one was
 * there afterwards. */
static int share_open_ns(const struct share_change *c, struct error *err)
{
	_cleanup_fd_ int fd = isolate_ns_open(c->proc_fd, c->pid, ISOLATE_NS_MOUNT);

	if (pidfd_has_ended(c->pidfd))
		return error_refuse(err, ERROR_UNAVAILABLE, "virtiofsd has ended");
	return fd < 0 ? error_set(err, fd, "open the mount namespace of virtiofsd") : TAKE_FD(fd);
}

static int share_restrict(const struct share_change *c, struct error *err)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			    (c->read_only ? (uint64_t)MOUNT_ATTR_RDONLY : 0),
		.propagation = MS_PRIVATE,
	};

	if (sysio_mount_setattr(c->mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
		return error_set(err, -errno, "restrict a mount");
	return 0;
}

/* On a thread. */
static void share_change_run(struct pool_work *work)
{
	struct share_change *c = container_of(work, struct share_change, work);
	_cleanup_fd_ int ns_fd = share_open_ns(c, &c->err);

	c->r = ns_fd < 0 ? ns_fd : 0;
	if (c->r == 0 && c->mount_fd < 0) {
		c->r = isolate_prune(ns_fd, SHARE_PLACE, c->name, &c->err);
	} else if (c->r == 0) {
		c->r = share_restrict(c, &c->err);
		if (c->r == 0)
			c->r = isolate_graft(ns_fd, SHARE_PLACE, c->name, TAKE_FD(c->mount_fd),
					     &c->err);
	}
	/* The file system on which the names are has no room for another one. */
	if (c->r == -ENOSPC)
		(void)error_refuse(&c->err, ERROR_EXHAUSTED,
				   "this machine has %d volumes already, the limit",
				   SHARE_VOLUMES_MAX);
	if (c->r < 0)
		(void)error_wrap(&c->err, c->r, "the volume \"%s\"", c->name);
}

static void share_change_done(struct pool_work *work)
{
	struct share_change *c = container_of(work, struct share_change, work);

	c->mount_fd = fd_close(c->mount_fd);
	c->pidfd = fd_close(c->pidfd);
	c->done(c, c->r, c->r < 0 ? &c->err : NULL);
}

/* Fills a change but for the mount. */
static int share_prepare(const struct share *s, struct share_change *c, const char *name,
			 share_change_fn done, struct error *err)
{
	int pidfd;

	if (!share_name_is_valid(name))
		return error_refuse(err, ERROR_INVALID, "\"%.80s\" is no name of a volume",
				    name ?: "");
	if (!s->up)
		return error_refuse(err, ERROR_PRECONDITION,
				    "virtiofsd is not up: there can be no volumes");
	pidfd = fd_copy(s->child.pidfd);
	if (pidfd < 0)
		return error_set(err, pidfd, "hold virtiofsd");
	*c = (struct share_change){ .work = { .run = share_change_run, .done = share_change_done },
				    .done = done,
				    .proc_fd = s->proc_fd,
				    .pid = s->child.pid,
				    .pidfd = pidfd,
				    .mount_fd = -1,
				    .err = ERROR_INIT };
	(void)str_copy(c->name, sizeof(c->name), name);
	return 0;
}

int share_add(struct share *s, struct share_change *c, const char *name, int mount_fd,
	      bool read_only, share_change_fn done, struct error *err)
{
	_cleanup_fd_ int fd = mount_fd;
	int r = share_prepare(s, c, name, done, err);

	assert(mount_fd >= 0);
	if (r < 0)
		return r;
	c->mount_fd = TAKE_FD(fd);
	c->read_only = read_only;
	pool_submit(s->pool, &c->work);
	return 0;
}

int share_remove(struct share *s, struct share_change *c, const char *name, share_change_fn done,
		 struct error *err)
{
	int r = share_prepare(s, c, name, done, err);

	if (r == 0)
		pool_submit(s->pool, &c->work);
	return r;
}
