/* SPDX-License-Identifier: Apache-2.0 */
#include "io/unix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "unit.h"

static char dir_name[] = "unix-test-XXXXXX";
static int dir_fd;

static void dir_begin(void)
{
	memcpy(dir_name + sizeof(dir_name) - 7, "XXXXXX", 6);
	CHECK(mkdtemp(dir_name));
	dir_fd = open(dir_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir_fd >= 0);
}

static void dir_end(void)
{
	dir_fd = fd_close(dir_fd);
	CHECK_INT(rootfd_remove_tree(AT_FDCWD, dir_name), 0);
}

static unsigned fds_now(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	if (!d)
		abort();
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static bool is_cloexec_nonblock(int fd)
{
	return fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* ---- listen and connect ---- */

static void talk(int at_fd, const char *name, int type)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int listen_fd = unix_listen(at_fd, name, type, &err);
	_cleanup_fd_ int a = -1, b = -1;
	char got[8];

	CHECK(listen_fd >= 0);
	CHECK_STR(err.text, "");
	a = unix_connect(at_fd, name, type, &err);
	CHECK(a >= 0);
	b = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	CHECK(b >= 0);
	CHECK(is_cloexec_nonblock(listen_fd));
	CHECK(is_cloexec_nonblock(a));
	CHECK(send(a, "hello", 5, 0) == 5);
	CHECK(recv(b, got, sizeof(got), 0) == 5);
}

static void listens_and_connects(void)
{
	struct stat st;
	mode_t was = umask(0);

	dir_begin();
	talk(dir_fd, "s", SOCK_STREAM);
	CHECK(fstatat(dir_fd, "s", &st, 0) == 0);
	CHECK_INT(st.st_mode, S_IFSOCK | 0600);
	talk(dir_fd, "p", SOCK_SEQPACKET);
	/* Again, over the socket that was left. */
	talk(dir_fd, "s", SOCK_STREAM);
	(void)umask(was);
	dir_end();
}

static void refuses(void)
{
	struct error err = ERROR_INIT;
	char longest[120];
	int fd;

	dir_begin();
	CHECK_INT(unix_connect(dir_fd, "none", SOCK_STREAM, &err), -ENOENT);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	CHECK_STR(err.text, "connect to the socket none: No such file or directory");
	fd = unix_listen(dir_fd, "gone", SOCK_STREAM, NULL);
	(void)close(fd);
	CHECK_INT(unix_connect(dir_fd, "gone", SOCK_STREAM, &err), -ECONNREFUSED);
	CHECK_INT(unix_connect(dir_fd, "gone", SOCK_STREAM, NULL), -ECONNREFUSED);
	/* One that listens for another kind of talk is not a daemon that is away. */
	fd = unix_listen(dir_fd, "other", SOCK_SEQPACKET, NULL);
	err = (struct error)ERROR_INIT;
	CHECK_INT(unix_connect(dir_fd, "other", SOCK_STREAM, &err), -EPROTOTYPE);
	CHECK_INT(err.kind, ERROR_FAULT);
	(void)close(fd);

	fd = openat(dir_fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	(void)close(fd);
	CHECK_INT(unix_listen(dir_fd, "file", SOCK_STREAM, &err), -EEXIST);
	CHECK(faccessat(dir_fd, "file", F_OK, 0) == 0);

	memset(longest, 'x', sizeof(longest));
	longest[108] = '\0';
	CHECK_INT(unix_listen(AT_FDCWD, longest, SOCK_STREAM, &err), -ENAMETOOLONG);
	CHECK_INT(unix_listen(dir_fd, longest, SOCK_STREAM, &err), -ENAMETOOLONG);
	longest[107] = '\0';
	fd = unix_listen(AT_FDCWD, longest, SOCK_STREAM, &err);
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(unlink(longest) == 0);
	dir_end();
}

/* A process listens at "s", and another one that it has made holds that socket too; 'x' in pipe
 * when both do. The first one ends by `end`, the second one by the end of its own pipe. */
static pid_t listen_twice(int ready_fd, const int end[2], const int hold[2])
{
	pid_t pid = fork();
	char byte;

	if (pid != 0)
		return pid;
	if (unix_listen(dir_fd, "s", SOCK_STREAM, NULL) < 0)
		_exit(1);
	(void)close(end[1]);
	(void)close(hold[1]);
	pid = fork();
	if (pid == 0) {
		(void)!read(hold[0], &byte, 1);
		_exit(0);
	}
	(void)!write(ready_fd, "x", 1);
	(void)!read(end[0], &byte, 1);
	_exit(0);
}

static void knows_who_listens_from_who_holds_the_socket(void)
{
	int ready[2], end[2], hold[2];
	siginfo_t info;
	pid_t pid;
	char byte;
	int fd;

	dir_begin();
	CHECK(!unix_is_served(dir_fd, "s", SOCK_STREAM));
	CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
	CHECK(pipe2(hold, O_CLOEXEC) == 0);
	pid = listen_twice(ready[1], end, hold);
	CHECK(pid > 0);
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(unix_is_served(dir_fd, "s", SOCK_STREAM));
	(void)close(end[1]);
	/* Ended, not reaped; then reaped. */
	CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
	fd = unix_connect(dir_fd, "s", SOCK_STREAM, NULL);
	CHECK(fd >= 0);
	(void)fd_close(fd);
	CHECK(!unix_is_served(dir_fd, "s", SOCK_STREAM));
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(!unix_is_served(dir_fd, "s", SOCK_STREAM));
	(void)close(hold[1]);
	(void)close(hold[0]);
	(void)close(end[0]);
	(void)close(ready[0]);
	(void)close(ready[1]);
	dir_end();
}

/* Deep below, where no absolute path fits into a socket address. */
static void long_paths_do_not_matter(void)
{
	char path[300];

	dir_begin();
	memset(path, 'd', sizeof(path));
	path[200] = '\0';
	CHECK(mkdirat(dir_fd, path, 0700) == 0);
	{
		_cleanup_fd_ int deep = openat(dir_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

		talk(deep, "socket", SOCK_STREAM);
	}
	dir_end();
}

/* As in a keeper whose private root has no /proc. */
static void works_without_proc(void)
{
	pid_t pid;
	int status = -1;

	dir_begin();
	pid = fork();
	if (pid == 0) {
		char *before = NULL, *after;

		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", "/proc", "tmpfs", 0, NULL) < 0)
			_exit(77);
		before = getcwd(NULL, 0);
		talk(dir_fd, "s", SOCK_STREAM);
		after = getcwd(NULL, 0);
		CHECK_STR(after, before);
		free(before);
		free(after);
		_exit(unit_failures ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("# skipped: no mount namespace to be had\n");
	else
		CHECK_INT(status, 0);
	dir_end();
}

/* ---- descriptors by token ---- */

static int sv[2];

static void pair_begin(void)
{
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0);
}

static void pair_end(void)
{
	(void)close(sv[0]);
	(void)close(sv[1]);
}

static void fdchan_passes(void)
{
	struct fdchan_packet p = { .fd = -1 };
	struct stat a, b;
	int pipe_fds[2];

	pair_begin();
	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	CHECK_INT(fdchan_receive(sv[1], &p), 0);
	CHECK_INT(fdchan_send(sv[0], 0x1122334455667788, "b/c", pipe_fds[0]), 0);
	CHECK_INT(fdchan_send(sv[0], 2, "", pipe_fds[1]), 0);
	CHECK_INT(fdchan_receive(sv[1], &p), 1);
	CHECK(p.token == 0x1122334455667788);
	CHECK_STR(p.target, "b/c");
	CHECK(fstat(p.fd, &a) == 0 && fstat(pipe_fds[0], &b) == 0 && a.st_ino == b.st_ino);
	CHECK_INT(fcntl(p.fd, F_GETFD), FD_CLOEXEC);
	(void)close(p.fd);
	CHECK_INT(fdchan_receive(sv[1], &p), 1);
	CHECK_STR(p.target, "");
	CHECK_INT(p.token, 2);
	(void)close(p.fd);
	CHECK_INT(fdchan_receive(sv[1], &p), 0);
	sv[0] = fd_close(sv[0]);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPIPE);
	CHECK_INT(fdchan_send(sv[1], 3, "", pipe_fds[0]), -EPIPE);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	pair_end();
}

/* More than go in one call, with some that are not there: each arrives by its token. */
static void fdchan_passes_all(void)
{
	uint64_t tokens[2 * FDCHAN_TOGETHER + 3];
	int fds[ARRAY_SIZE(tokens)];
	struct fdchan_packet p = { .fd = -1 };
	unsigned before;

	pair_begin();
	before = fds_now();
	CHECK_INT(fdchan_send_all(sv[0], tokens, "", fds, 0), 0);
	CHECK_INT(fdchan_receive(sv[1], &p), 0);
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
		tokens[i] = 100 + i;
		fds[i] = i % 5 == 1 ? -1 : sv[0];
	}
	CHECK_INT(fdchan_send_all(sv[0], tokens, "a/b", fds, ARRAY_SIZE(fds)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
		if (fds[i] < 0)
			continue;
		CHECK_INT(fdchan_receive(sv[1], &p), 1);
		CHECK_INT(p.token, tokens[i]);
		CHECK_STR(p.target, "a/b");
		p.fd = fd_close(p.fd);
	}
	CHECK_INT(fdchan_receive(sv[1], &p), 0);
	CHECK_INT(fds_now(), before);
	fds[2] = 1 << 20;
	CHECK_INT(fdchan_send_all(sv[0], tokens, "", fds, ARRAY_SIZE(fds)), -EBADF);
	CHECK_INT(fdchan_send_all(sv[0], tokens, "../x", fds, ARRAY_SIZE(fds)), -EINVAL);
	pair_end();
}

static void fdchan_fills_up(void)
{
	struct fdchan_packet p;
	unsigned n_sent = 0, n_got = 0, before;

	pair_begin();
	before = fds_now();
	for (; n_sent < 100000; n_sent++)
		if (fdchan_send(sv[0], n_sent, "a/b/c/d", sv[0]) < 0)
			break;
	CHECK_INT(fdchan_send(sv[0], 1, "", sv[0]), -EAGAIN);
	CHECK(n_sent >= 100);
	while (fdchan_receive(sv[1], &p) == 1) {
		CHECK_INT(p.token, n_got);
		n_got++;
		(void)close(p.fd);
	}
	CHECK_INT(n_got, n_sent);
	CHECK_INT(fds_now(), before);
	pair_end();
}

static void fdchan_send_refuses(void)
{
	char target[FDCHAN_TARGET_MAX + 1];

	pair_begin();
	memset(target, 'x', sizeof(target));
	target[FDCHAN_TARGET_MAX] = '\0';
	CHECK_INT(fdchan_send(sv[0], 1, target, sv[0]), -EINVAL);
	CHECK_INT(fdchan_send(sv[0], 1, "../x", sv[0]), -EINVAL);
	CHECK_INT(fdchan_send(sv[0], 1, "a", -1), -EBADF);
	pair_end();
}

/* What a hostile or broken peer may send. */
static void raw_send(const void *data, size_t len, unsigned n_fds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(64 * sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec iov = { .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char copy[2048];

	memcpy(copy, data, len);
	iov.iov_base = copy;
	if (n_fds) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (unsigned i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &sv[0], sizeof(int));
	}
	CHECK(sendmsg(sv[0], &msg, MSG_DONTWAIT) == (ssize_t)len);
}

/* A packet as fdchan_send() makes it, to be spoiled. */
static size_t raw_packet(unsigned char *to, size_t size)
{
	ssize_t n;

	CHECK(fdchan_send(sv[0], 1, "ab", sv[0]) == 0);
	n = recv(sv[1], to, size, 0);
	CHECK(n > 0);
	return (size_t)n;
}

static void fdchan_refuses_others(void)
{
	unsigned char good[2048] = { 0 }, bad[2048];
	struct fdchan_packet p = { .fd = -1 };
	unsigned before;
	size_t n;

	pair_begin();
	before = fds_now();
	n = raw_packet(good, sizeof(good));
	/* Too many descriptors (4 fit, 5 and 64 do not), none, too short, too long. */
	for (unsigned i = 2; i <= 64; i += i < 5 ? 1 : 59) {
		raw_send(good, n, i);
		CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
		CHECK_INT(fds_now(), before);
	}
	raw_send(good, n, 0);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	for (size_t len = 1; len < n; len++) {
		raw_send(good, len, 1);
		CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	}
	raw_send(good, n + 1, 1);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	raw_send(good, sizeof(good), 1);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	/* No byte at all, but a descriptor. */
	raw_send(good, 0, 1);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	/* Each byte of the header and target spoiled; the token may be anything. */
	for (size_t i = 0; i < n; i++) {
		if (i >= 8 && i < 16)
			continue;
		memcpy(bad, good, n);
		bad[i] ^= 0x80;
		raw_send(bad, n, 1);
		CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	}
	CHECK_INT(p.fd, -1);
	CHECK_INT(fds_now(), before);
	raw_send(good, n, 1);
	CHECK_INT(fdchan_receive(sv[1], &p), 1);
	(void)close(p.fd);
	CHECK_INT(fds_now(), before);
	pair_end();
}

static void fdchan_targets(void)
{
	unsigned char packet[2048] = { 0 };
	struct fdchan_packet p = { .fd = -1 };
	uint32_t len = FDCHAN_TARGET_MAX;
	size_t n;

	pair_begin();
	n = raw_packet(packet, sizeof(packet));
	packet[n - 1] = '\0';
	raw_send(packet, n, 1);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	/* As long as there is room for, which leaves none for the end of the text. */
	memset(packet + n - strlen("ab"), 'a', FDCHAN_TARGET_MAX);
	memcpy(packet + sizeof(uint32_t), &len, sizeof(len));
	raw_send(packet, n - strlen("ab") + FDCHAN_TARGET_MAX, 1);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPROTO);
	CHECK_INT(p.fd, -1);
	pair_end();
}

/* Whoever goes without having read all that was sent to him is gone too. */
static void fdchan_peer_goes(void)
{
	struct fdchan_packet p = { .fd = -1 };
	int pipe_fds[2];

	pair_begin();
	/* No target is the empty one. */
	CHECK_INT(fdchan_send(sv[1], 1, NULL, sv[1]), 0);
	CHECK_INT(fdchan_receive(sv[0], &p), 1);
	CHECK_STR(p.target, "");
	(void)close(p.fd);
	p.fd = -1;
	CHECK_INT(fdchan_send(sv[1], 1, "", sv[1]), 0);
	(void)close(sv[0]);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPIPE);
	CHECK_INT(fdchan_receive(sv[1], &p), -EPIPE);
	(void)close(sv[1]);
	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	CHECK_INT(fdchan_receive(pipe_fds[0], &p), -ENOTSOCK);
	CHECK_INT(fdchan_send(pipe_fds[1], 1, "", pipe_fds[0]), -ENOTSOCK);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

static void fdchan_table_is_full(void)
{
	struct rlimit was, none;
	struct fdchan_packet p;

	pair_begin();
	CHECK_INT(fdchan_send(sv[0], 1, "", sv[0]), 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
	none = was;
	none.rlim_cur = 3;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK_INT(fdchan_receive(sv[1], &p), -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
	pair_end();
}

/* Whoever has the socket by now: the process that has made it, also when it has ended. */
static void tells_which_process_has_connected(void)
{
	struct error err = ERROR_INIT;
	int listen_fd, fd, pidfd, status;
	pid_t child, pid = 0;

	dir_begin();
	listen_fd = unix_listen(dir_fd, "s", SOCK_STREAM, &err);
	CHECK(listen_fd >= 0);
	fd = unix_connect(dir_fd, "s", SOCK_STREAM, &err);
	child = fork();
	if (child == 0)
		_exit(unix_connect(dir_fd, "s", SOCK_STREAM, &err) < 0);
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	for (int i = 0; i < 2; i++) {
		_cleanup_fd_ int got = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

		pidfd = unix_peer_process(got, &pid);
		if (pidfd == -ENOPROTOOPT)
			break;
		CHECK(pidfd >= 0);
		CHECK_INT(pid, i == 0 ? getpid() : child);
		CHECK(pidfd_has_ended(pidfd) == (i == 1));
		(void)fd_close(pidfd);
	}
	(void)fd_close(fd);
	(void)fd_close(listen_fd);
	dir_end();
}

UNIT_MAIN({ "listens and connects", listens_and_connects },
	  { "knows_who_listens_from_who_holds_the_socket",
	    knows_who_listens_from_who_holds_the_socket },
	  { "tells_which_process_has_connected", tells_which_process_has_connected },
	  { "refuses", refuses }, { "long paths do not matter", long_paths_do_not_matter },
	  { "works without /proc", works_without_proc }, { "fdchan passes", fdchan_passes },
	  { "fdchan passes all", fdchan_passes_all }, { "fdchan fills up", fdchan_fills_up },
	  { "fdchan refuses to send", fdchan_send_refuses },
	  { "fdchan refuses others", fdchan_refuses_others },
	  { "fdchan and its targets", fdchan_targets },
	  { "fdchan whose peer goes", fdchan_peer_goes },
	  { "fdchan with a full table", fdchan_table_is_full })
