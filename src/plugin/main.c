/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-cni: runs the plugins of CNI for the daemon (doc/decisions/cni.md). The daemon starts it
 * before it gives up its privilege, with a socket as descriptor 3, and speaks wire/message/cnimsg.h
 * with it:
 *
 *   nacre-cni CONF_DIR BIN_DIRS STATE_DIR NETNS_DIR
 *
 * Some threads take requests from the socket, each one at a time. The first one watches the
 * configuration, and another one undoes what could not be undone before. Where the daemon ends, all
 * plugins are killed; whoever comes next finds the records.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "plugin/service.h"

#define CNI_SOCKET_FD 3
#define CNI_THREADS 16
#define CNI_LOOK_EVERY 5000    /* ms */
#define CNI_LOOK_SOON 100      /* ms, until a writer is done */
#define CNI_CLEAN_EVERY 5      /* s */
#define CNI_COLLECT_EVERY 3600 /* s */
#define CNI_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct program {
	struct service service;
	struct book book;
	pthread_t workers[CNI_THREADS], janitor;
	size_t n_workers;
	int end_fd; /* readable: the daemon has ended */
};

/* ---- the socket ---- */

/* The length of a packet, 0 at the end; *ret_fd is -1 or its descriptor. */
static ssize_t program_receive(uint8_t *packet, int *ret_fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .room = { 0 } };
	struct iovec data = { .iov_base = packet, .iov_len = CNIMSG_SIZE_MAX };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(CNI_SOCKET_FD, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return n;
}

static void program_send(const struct buf *b)
{
	/* A daemon that has ended does not miss it. */
	while (send(CNI_SOCKET_FD, buf_data(b), b->len, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void program_end(struct program *p)
{
	const uint64_t one = 1;

	(void)fd_write_full(p->end_fd, &one, sizeof(one));
}

static void *program_work(void *arg)
{
	struct program *p = arg;
	uint8_t *packet = malloc(CNIMSG_SIZE_MAX);

	while (packet) {
		_cleanup_(buf_done) struct buf answer = BUF_INIT;
		_cleanup_fd_ int netns_fd = -1;
		struct cnimsg m;
		ssize_t n = program_receive(packet, &netns_fd);

		if (n <= 0)
			break;
		if (cnimsg_read(&m, packet, (size_t)n) == 0 &&
		    service_serve(&p->service, &m, netns_fd, &answer) == 0)
			program_send(&answer);
	}
	free(packet);
	program_end(p);
	return NULL;
}

/* ---- what is done now and then ---- */

/* Until the daemon ends, so many milliseconds at most, or until one of another descriptor has
 * something. Whether it goes on. */
static bool program_wait(const struct program *p, int fd, int ms)
{
	struct pollfd f[] = { { .fd = p->end_fd, .events = POLLIN },
			      { .fd = fd, .events = POLLIN } };

	return poll(f, ARRAY_SIZE(f), ms) < 0 ? errno == EINTR : !f[0].revents;
}

static void *program_clean(void *arg)
{
	struct program *p = arg;
	nsec_t due = 0;

	do {
		struct error err = ERROR_INIT;

		(void)service_clean(&p->service);
		if (clock_mono() < due || !p->book.ready)
			continue;
		due = clock_mono() + CNI_COLLECT_EVERY * NSEC_PER_SEC;
		if (service_collect(&p->service, &err) < 0)
			log_warn("garbage of networks cannot be collected", LOG_ERR(&err));
	} while (program_wait(p, -1, CNI_CLEAN_EVERY * 1000));
	return NULL;
}

static void program_tell_state(struct program *p)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = cnimsg_put(&b, "verb", "state");

	str_clean(p->book.reason);
	if (r == 0)
		r = cnimsg_put(&b, "ready", "%s", p->book.ready ? "yes" : "no");
	if (r == 0)
		r = cnimsg_put(&b, "network", "%s", p->book.network);
	if (r == 0)
		r = cnimsg_put(&b, "text", "%s", p->book.reason);
	if (r == 0)
		program_send(&b);
}

static void program_watch(int fd, const char *dir)
{
	(void)inotify_add_watch(fd, dir,
				IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
					IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* The directories of the configuration and above it, and those of the programs; again each time,
 * since each of them may have been made anew. */
static void program_watch_all(const struct program *p, int fd)
{
	char dir[4096];
	char *slash;

	program_watch(fd, p->book.conf_dir);
	if (str_copy(dir, sizeof(dir), p->book.conf_dir) == 0) {
		slash = strrchr(dir, '/');
		if (slash && slash > dir) {
			*slash = '\0';
			program_watch(fd, dir);
		}
	}
	for (const char *at = p->book.bin_dirs; *at;) {
		size_t n = strcspn(at, ":");

		if (str_printf(dir, sizeof(dir), "%.*s", (int)n, at) >= 0)
			program_watch(fd, dir);
		at += n + (at[n] == ':');
	}
}

static void program_look(struct program *p)
{
	_cleanup_fd_ int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char events[4096];
	bool goes_on = true;

	for (bool first = true; goes_on; first = false) {
		program_watch_all(p, fd);
		if (book_refresh(&p->book) || first)
			program_tell_state(p);
		goes_on = program_wait(p, fd, CNI_LOOK_EVERY);
		if (read(fd, events, sizeof(events)) <= 0)
			continue;
		goes_on = goes_on && program_wait(p, -1, CNI_LOOK_SOON);
		while (read(fd, events, sizeof(events)) > 0)
			;
	}
}

/* ---- beginning and end ---- */

/* The records are one program's at a time: the last one is killing its plugins. */
static int program_lock(const char *dir)
{
	int fd;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return fd;
}

/* The daemon's first word. Before it nothing is served. */
static bool program_begin(struct program *p)
{
	uint8_t *packet = malloc(CNIMSG_SIZE_MAX);
	_cleanup_fd_ int fd = -1;
	struct cnimsg m;
	ssize_t n = packet ? program_receive(packet, &fd) : 0;
	bool begins = n > 0 && cnimsg_read(&m, packet, (size_t)n) == 0 &&
		      str_eq(cnimsg_get(&m, "verb"), "keep");

	if (begins)
		service_keep(&p->service, &m);
	free(packet);
	return begins;
}

static void program_run(struct program *p)
{
	while (p->n_workers < CNI_THREADS &&
	       pthread_create(&p->workers[p->n_workers], NULL, program_work, p) == 0)
		p->n_workers++;
	if (p->n_workers > 0 && pthread_create(&p->janitor, NULL, program_clean, p) == 0) {
		program_look(p);
		(void)pthread_join(p->janitor, NULL);
	}
	(void)shutdown(CNI_SOCKET_FD, SHUT_RDWR);
	for (size_t i = 0; i < p->n_workers; i++)
		(void)pthread_join(p->workers[i], NULL);
}

int main(int argc, char **argv)
{
	struct program p = { .end_fd = eventfd(0, EFD_CLOEXEC) };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	if (argc != 5 || fcntl(CNI_SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "nacre-cni is started by `nacre daemon` alone\n");
		return 2;
	}
	/* A daemon that is told to end has us end by its socket, after its last word. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGTERM, &ignore, NULL);
	(void)sigaction(SIGHUP, &ignore, NULL);
	(void)umask(022);
	p.book = (struct book){ .conf_dir = argv[1],
				.bin_dirs = argv[2],
				.path = getenv("PATH") ?: CNI_PATH,
				.cancel_fd = p.end_fd };
	p.service = (struct service){ .bin_dirs = argv[2],
				      .path = p.book.path,
				      .netns_dir = argv[4],
				      .cancel_fd = p.end_fd,
				      .book = &p.book };
	p.service.state_fd = program_lock(argv[3]);
	if (p.end_fd < 0 || p.service.state_fd < 0 || service_init(&p.service) < 0) {
		(void)fprintf(stderr, "nacre-cni: cannot have %s\n", argv[3]);
		return 1;
	}
	book_init(&p.book);
	if (program_begin(&p))
		program_run(&p);
	book_done(&p.book);
	service_done(&p.service);
	(void)fd_close(p.service.state_fd);
	(void)fd_close(p.end_fd);
	return 0;
}
