/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The volumes of a VM without a daemon, for tests:
 *
 *   share-driver PLACE start FD           FD is a unix socket: QEMU's end goes over it
 *   share-driver PLACE adopt PID START    takes up what another driver has left
 *
 * PLACE is a directory of its own. Commands come on stdin, one a line: "add NAME PATH rw|ro",
 * "remove NAME", "stop", "leave". What happens goes to stdout: "up PID START", "add NAME 0",
 * "remove NAME 1", "end" or "end TEXT"; where a command fails the number is negative and a text
 * follows.
 */

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "isolate/mount/bind.h"
#include "isolate/seccomp/confine.h"
#include "vm/disk/share.h"

struct driver {
	struct loop *loop;
	struct pool *pool;
	struct share share;
	struct loop_fd in;
	char line[4096];
	size_t n_line;
	struct share_change change; /* one at a time */
};

static struct driver driver;

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vprintf(format, ap);
	va_end(ap);
	(void)fflush(stdout);
}

static int driver_fail(const struct error *err)
{
	(void)fprintf(stderr, "%s\n", error_text(err));
	return 1;
}

static void on_up(struct share *s)
{
	unsigned long long start = 0;

	(void)process_start_time(s->proc_fd, s->child.pid, &start);
	say("up %d %llu\n", (int)s->child.pid, start);
}

static void on_end(struct share *s, const struct error *err)
{
	say("end%s%s\n", err ? " " : "", err ? error_text(err) : "");
	loop_quit(driver.loop, 0);
}

static const struct share_ops driver_ops = { on_up, on_end };

static void on_change(struct share_change *c, int r, const struct error *err)
{
	say("done %s %d%s%s\n", c->name, r, err ? " " : "", err ? error_text(err) : "");
}

static void driver_add(const char *name, const char *path, bool read_only)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	int mount_fd = fd < 0 ? -1 : isolate_bind(fd, 0, &err);

	if (mount_fd < 0 || share_add(&driver.share, &driver.change, name, mount_fd, read_only,
				      on_change, &err) < 0)
		say("done %s -1 %s\n", name, error_text(&err));
}

static void driver_command(char *line)
{
	char *words[4] = { NULL }, *save = NULL;
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < 4; i++)
		words[i] = strtok_r(i ? NULL : line, " ", &save);
	if (!words[0])
		return;
	if (strcmp(words[0], "add") == 0 && words[3])
		driver_add(words[1], words[2], strcmp(words[3], "ro") == 0);
	else if (strcmp(words[0], "remove") == 0 && words[1]) {
		if (share_remove(&driver.share, &driver.change, words[1], on_change, &err) < 0)
			say("done %s -1 %s\n", words[1], error_text(&err));
	} else if (strcmp(words[0], "stop") == 0)
		share_stop(&driver.share);
	else
		loop_quit(driver.loop, 0);
}

static void on_input(struct loop_fd *source, unsigned events)
{
	ssize_t n = read(STDIN_FILENO, driver.line + driver.n_line,
			 sizeof(driver.line) - driver.n_line - 1);
	char *end;

	if (n <= 0) {
		loop_quit(driver.loop, 0);
		return;
	}
	driver.n_line += (size_t)n;
	driver.line[driver.n_line] = '\0';
	for (end = strchr(driver.line, '\n'); end; end = strchr(driver.line, '\n')) {
		*end = '\0';
		driver_command(driver.line);
		driver.n_line -= (size_t)(end + 1 - driver.line);
		memmove(driver.line, end + 1, driver.n_line + 1);
	}
}

static int driver_send(int socket_fd, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec io = { (char[]){ "q" }, 1 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket_fd, &m, 0) == 1 ? 0 : -1;
}

static int driver_start(const struct share_config *config, int socket_fd, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r = share_start(&driver.share, config, &driver_ops, &fd, err);

	if (r == 0 && driver_send(socket_fd, fd) < 0)
		return error_set(err, -1, "hand over the socket");
	return r;
}

int main(int argc, char **argv)
{
	struct share_config config = { .program = SHARE_PROGRAM, .cgroup_fd = -1 };
	struct error err = ERROR_INIT;
	int r;

	if (argc != 4 && argc != 5)
		return 2;
	config.dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	config.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (loop_new(&driver.loop) < 0 || pool_new(&driver.pool, driver.loop, 2) < 0)
		return 2;
	/* As the daemon: what it gave up, virtiofsd has not. */
	isolate_spawn_begin();
	if (confine_daemon(&err) < 0)
		say("# %s\n", error_text(&err));
	config.loop = driver.loop;
	config.pool = driver.pool;
	if (argc == 4)
		r = driver_start(&config, (int)strtol(argv[3], NULL, 10), &err);
	else
		r = share_adopt(&driver.share, &config, &driver_ops,
				(pid_t)strtol(argv[3], NULL, 10), strtoull(argv[4], NULL, 10),
				&err);
	if (r < 0)
		return driver_fail(&err);
	if (argc == 5)
		on_up(&driver.share);
	loop_fd_init(&driver.in, driver.loop, STDIN_FILENO, LOOP_READ, on_input);
	(void)loop_run(driver.loop);
	loop_fd_done(&driver.in);
	driver.pool = pool_free(driver.pool);
	share_done(&driver.share);
	driver.loop = loop_free(driver.loop);
	return 0;
}
