/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>
#include <sys/wait.h>

#include "base/file/fd.h"
#include "base/text/str.h"

#define RUN_PIECE 65536
#define RUN_BUSY_TRIES 5 /* of a file that somebody is writing, as an installer may */
#define RUN_BUSY_PAUSE 1 /* s */

/* The child, and our ends of its streams. */
struct running {
	struct plugin_run *run;
	pid_t pid;
	int pidfd, in_fd, out_fd, err_fd;
	size_t written;
	nsec_t due;
};

void plugin_run_done(struct plugin_run *p)
{
	buf_done(&p->out);
	buf_done(&p->complaint);
}

static const char *run_name(const struct plugin_run *p)
{
	const char *slash = strrchr(p->path, '/');

	return slash ? slash + 1 : p->path;
}

/* ---- starting ---- */

static int run_actions(posix_spawn_file_actions_t *actions, const int fds[3])
{
	int r = 0;

	for (int i = 0; i < 3 && r == 0; i++)
		r = posix_spawn_file_actions_adddup2(actions, fds[i], i);
	return r == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, 3) : r;
}

static int run_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
							 POSIX_SPAWN_SETSIGDEF);
	if (r == 0)
		r = posix_spawnattr_setpgroup(attributes, 0);
	if (r == 0)
		r = posix_spawnattr_setsigmask(attributes, &none);
	return r == 0 ? posix_spawnattr_setsigdefault(attributes, &all) : r;
}

/* Should: run the plugin as this process, which has all privilege. Must not: hand down a descriptor
 * or a variable that is not meant for it. */
static int run_spawn(struct running *g, const int fds[3])
{
	char *argv[] = { (char *)(uintptr_t)g->run->path, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	(void)posix_spawnattr_init(&attributes);
	r = run_attributes(&attributes);
	if (r == 0)
		r = run_actions(&actions, fds);
	if (r == 0)
		r = posix_spawn(&g->pid, g->run->path, &actions, &attributes, argv, g->run->env);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return -r;
}

static int run_pipe(int *ret_ours, int *ret_its, bool we_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_ours = fds[we_write];
	*ret_its = fds[!we_write];
	return fd_set_nonblock(*ret_ours, true);
}

static int run_start(struct running *g, struct error *err)
{
	_cleanup_fd_ int in = -1, out = -1, complaint = -1;
	int r = run_pipe(&g->in_fd, &in, true);

	if (r == 0)
		r = run_pipe(&g->out_fd, &out, false);
	if (r == 0)
		r = run_pipe(&g->err_fd, &complaint, false);
	if (r == 0)
		r = run_spawn(g, (const int[3]){ in, out, complaint });
	for (int i = 0; i < RUN_BUSY_TRIES && r == -ETXTBSY; i++) {
		struct timespec pause = { .tv_sec = RUN_BUSY_PAUSE };

		(void)nanosleep(&pause, NULL);
		r = run_spawn(g, (const int[3]){ in, out, complaint });
	}
	if (r < 0) {
		(void)error_set(err, r, "execute the plugin %s", g->run->path);
		if (err)
			err->kind = ERROR_PRECONDITION;
		return r;
	}
	g->pidfd = pidfd_of(g->pid);
	return g->pidfd < 0 ? error_set(err, g->pidfd, "watch the plugin %s", g->run->path) : 0;
}

/* ---- while it runs ---- */

static void run_close(int *fd)
{
	*fd = fd_close(*fd);
}

/* A plugin that does not read its document to the end is none of our business. */
static void run_feed(struct running *g)
{
	const uint8_t *data = g->run->input;
	ssize_t n = write(g->in_fd, data + g->written, g->run->input_len - g->written);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	g->written += n > 0 ? (size_t)n : 0;
	if (n < 0 || g->written == g->run->input_len)
		run_close(&g->in_fd);
}

/* Takes what is there. */
static int run_take(int *fd, struct buf *to, bool drop_rest)
{
	uint8_t piece[RUN_PIECE / 8];

	for (;;) {
		ssize_t n = read(*fd, piece, sizeof(piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			run_close(fd);
			return 0;
		}
		if (drop_rest && to->len + (size_t)n > PLUGIN_STDERR_MAX)
			continue;
		if (!drop_rest && to->len + (size_t)n > PLUGIN_OUT_MAX)
			return -EFBIG;
		if (buf_add(to, piece, (size_t)n) < 0)
			return -ENOMEM;
		if (!drop_rest)
			continue;
		/* A flood of complaints does not keep us from looking at the time. */
		return 0;
	}
}

static int run_fail(const struct running *g, int r, struct error *err)
{
	if (r == -EFBIG)
		return error_refuse(err, ERROR_INVALID,
				    "the plugin %s wrote more than the limit of %zu bytes",
				    run_name(g->run), PLUGIN_OUT_MAX);
	return error_set(err, r, "run the plugin %s", run_name(g->run));
}

/* 1: it has ended; 0: something was done. */
static int run_turn(struct running *g, struct error *err)
{
	struct pollfd p[] = { { .fd = g->pidfd, .events = POLLIN },
			      { .fd = g->in_fd, .events = POLLOUT },
			      { .fd = g->out_fd, .events = POLLIN },
			      { .fd = g->err_fd, .events = POLLIN },
			      { .fd = g->run->cancel_fd, .events = POLLIN } };
	const nsec_t now = clock_mono();
	int r = 0;

	if (now >= g->due)
		return error_refuse(
			err, ERROR_DEADLINE,
			"the plugin %s did not end within %llu.%llu seconds and was killed",
			run_name(g->run), (unsigned long long)(g->run->limit / NSEC_PER_SEC),
			(unsigned long long)(g->run->limit / (NSEC_PER_SEC / 10) % 10));
	if (poll(p, ARRAY_SIZE(p), (int)((g->due - now) / NSEC_PER_MSEC + 1)) < 0)
		return errno == EINTR ? 0 : run_fail(g, -errno, err);
	if (p[4].revents)
		return error_refuse(err, ERROR_CANCELLED,
				    "the plugin %s was killed: the daemon ends", run_name(g->run));
	if (p[1].revents)
		run_feed(g);
	if (p[2].revents)
		r = run_take(&g->out_fd, &g->run->out, false);
	if (r == 0 && p[3].revents)
		r = run_take(&g->err_fd, &g->run->complaint, true);
	if (r < 0)
		return run_fail(g, r, err);
	return p[0].revents && !p[2].revents && !p[3].revents;
}

static void run_reap(struct running *g, bool kill_it)
{
	siginfo_t info = { .si_code = 0 };

	if (kill_it)
		(void)kill(-g->pid, SIGKILL);
	while (waitid(P_PID, (id_t)g->pid, &info, WEXITED) < 0 && errno == EINTR)
		;
	g->run->status = info.si_code == CLD_EXITED ? info.si_status : -1;
	g->run->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
}

int plugin_run(struct plugin_run *p, struct error *err)
{
	struct running g = { .run = p,
			     .pid = -1,
			     .pidfd = -1,
			     .in_fd = -1,
			     .out_fd = -1,
			     .err_fd = -1,
			     .due = clock_mono() + p->limit };
	int r;

	buf_clear(&p->out);
	buf_clear(&p->complaint);
	p->code = 0;
	r = run_start(&g, err);
	if (r == 0 && p->input_len == 0)
		run_close(&g.in_fd);
	while (r == 0)
		r = run_turn(&g, err);
	if (g.pid > 0)
		run_reap(&g, r < 0);
	run_close(&g.in_fd);
	run_close(&g.out_fd);
	run_close(&g.err_fd);
	run_close(&g.pidfd);
	return r < 0 ? r : 0;
}
