/* SPDX-License-Identifier: Apache-2.0 */
#include "init/system_main.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/process/thread.h"
#include "base/process/title.h"
#include "base/text/str.h"
#include "init/guest_power.h"
#include "init/system_mounts.h"
#include "init/system_net.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

/*
 * Theory of operation. One state, which only goes on:
 *
 * NETWORK      the network comes up; the daemon is started when it has, or after a while.
 * SERVING      the daemon runs, or is due again.
 * STOPPING     the daemon was asked (SIGPWR) to stop all workloads, and to end.
 * TERMINATING  it has ended, or its time has: all that is left has got SIGTERM.
 * KILLING      and SIGKILL.
 * OVER         disks are written; the machine is switched off, or this process ends.
 *
 * Each way on has a limit, so that nothing that hangs keeps a machine from its end.
 */

#define SYSTEM_DAEMON_ENDS_WITHIN (8 * NSEC_PER_SEC) /* beyond the time of its workloads */
#define SYSTEM_TERM_WITHIN (3 * NSEC_PER_SEC)
#define SYSTEM_KILL_WITHIN (5 * NSEC_PER_SEC)
#define SYSTEM_SYNC_SECONDS 30
#define SYSTEM_AGAIN_FIRST (100 * NSEC_PER_MSEC)
#define SYSTEM_AGAIN_MAX (30 * NSEC_PER_SEC)
#define SYSTEM_RAN_WELL (60 * NSEC_PER_SEC)
/* So often a daemon may end in a row, soon, until the next one gets another configuration. */
#define SYSTEM_TRIES 3
/* So many are reaped at once, beside a workload that forks without end. */
#define SYSTEM_REAP_MAX 256
#define SYSTEM_ARGS_MAX 32
/* Where --root cannot be written to. */
#define SYSTEM_ROOT "/run/nacre-root"
#define SYSTEM_NO_CONFIG "/dev/null"

enum system_state {
	SYSTEM_NETWORK,
	SYSTEM_SERVING,
	SYSTEM_STOPPING,
	SYSTEM_TERMINATING,
	SYSTEM_KILLING,
	SYSTEM_OVER,
	SYSTEM_STATE_COUNT
};

enum system_event {
	SYSTEM_READY,    /* the network */
	SYSTEM_ASKED,    /* to end */
	SYSTEM_GONE,     /* the daemon */
	SYSTEM_LIMIT,    /* the time of this state */
	SYSTEM_NO_CHILD, /* nothing is left */
	SYSTEM_EVENT_COUNT
};

/* A state that an event does not change is named again. */
static const enum system_state system_edges[SYSTEM_STATE_COUNT][SYSTEM_EVENT_COUNT] = {
	[SYSTEM_NETWORK] = { SYSTEM_SERVING, SYSTEM_STOPPING, SYSTEM_NETWORK, SYSTEM_SERVING,
			     SYSTEM_NETWORK },
	[SYSTEM_SERVING] = { SYSTEM_SERVING, SYSTEM_STOPPING, SYSTEM_SERVING, SYSTEM_SERVING,
			     SYSTEM_SERVING },
	[SYSTEM_STOPPING] = { SYSTEM_STOPPING, SYSTEM_STOPPING, SYSTEM_TERMINATING,
			      SYSTEM_TERMINATING, SYSTEM_STOPPING },
	[SYSTEM_TERMINATING] = { SYSTEM_TERMINATING, SYSTEM_KILLING, SYSTEM_TERMINATING,
				 SYSTEM_KILLING, SYSTEM_OVER },
	[SYSTEM_KILLING] = { SYSTEM_KILLING, SYSTEM_KILLING, SYSTEM_KILLING, SYSTEM_OVER,
			     SYSTEM_OVER },
	[SYSTEM_OVER] = { SYSTEM_OVER, SYSTEM_OVER, SYSTEM_OVER, SYSTEM_OVER, SYSTEM_OVER },
};

struct system_pid1 {
	const struct system_start *start;
	struct system_config config;
	enum system_state state;
	bool machine, restart;
	int log_fd;
	struct loop *loop;
	struct loop_signal signals;
	struct loop_fd button;
	struct loop_timer limit, again;
	struct loop_defer reap, follow;
	struct system_net net;
	bool has_net; /* it was begun, with a configuration that was read */
	/* The daemon. */
	int exe_fd;
	struct isolate_child daemon;
	bool running;
	nsec_t began, delay;
	unsigned n_failed;
	bool broken;        /* the configuration could not be read */
	bool bare;          /* the next one gets none */
	struct error fault; /* why */
};

/* ---- the daemon ---- */

/* The words of its command, in `words`; the last of an option is the one that counts. */
static void system_words(const struct system_pid1 *s, const char **words)
{
	size_t n = 0;

	for (; n < s->start->argc && n < SYSTEM_ARGS_MAX - 5; n++)
		words[n] = s->start->argv[n];
	if (!system_can_write(s->start->root)) {
		log_warn("nothing can be written to the root directory: images and logs are kept "
			 "in memory",
			 LOG_STR("root", s->start->root), LOG_STR("instead", SYSTEM_ROOT));
		words[n++] = "--root";
		words[n++] = SYSTEM_ROOT;
	}
	if (s->bare) {
		words[n++] = "--config";
		words[n++] = SYSTEM_NO_CONFIG;
	}
	words[n] = NULL;
}

/*
 * This program, for the daemon to be. By the name that it was started by: what /proc/self/exe leads
 * to lies in the mount namespace that was left, of which no mount can be cloned.
 */
static int system_open_exe(void)
{
	const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	_cleanup_fd_ int exe_fd = -1, named_fd = -1;
	struct stat exe, named;

	exe_fd = sysio_openat(AT_FDCWD, "/proc/self/exe", O_PATH | O_CLOEXEC, 0);
	named_fd = name ? sysio_openat(AT_FDCWD, name, O_PATH | O_CLOEXEC, 0) : -1;
	if (exe_fd < 0 ||
	    (named_fd >= 0 && fstat(exe_fd, &exe) == 0 && fstat(named_fd, &named) == 0 &&
	     exe.st_dev == named.st_dev && exe.st_ino == named.st_ino))
		return TAKE_FD(named_fd);
	return TAKE_FD(exe_fd);
}

static int system_spawn(struct system_pid1 *s, struct error *err)
{
	const char *words[SYSTEM_ARGS_MAX];
	struct isolate_plan plan;
	int exit_status, r;

	if (s->exe_fd < 0)
		s->exe_fd = system_open_exe();
	if (s->exe_fd < 0)
		return error_set(err, -errno, "open this program");
	if (s->bare ? setenv(SYSTEM_FAULT_WORD, error_text(&s->fault), 1)
		    : unsetenv(SYSTEM_FAULT_WORD))
		return error_set(err, -errno, "tell the daemon what is wrong");
	system_words(s, words);
	isolate_plan_init(&plan);
	plan.exec_fd = s->exe_fd;
	plan.argv = (char *const *)(uintptr_t)words;
	plan.env = environ;
	plan.keep_credentials = true;
	plan.keep_oom_score = true;
	plan.new_session = true;
	plan.stdio[1] = STDOUT_FILENO;
	plan.stdio[2] = STDERR_FILENO;
	r = isolate_spawn(&plan, &s->daemon, err);
	if (r < 0)
		return r;
	s->running = true;
	return isolate_child_report(&s->daemon, &exit_status, err);
}

static void system_start_daemon(struct system_pid1 *s)
{
	struct error err = ERROR_INIT;

	if (s->running || s->state != SYSTEM_SERVING)
		return;
	s->began = clock_mono();
	if (system_spawn(s, &err) == 0)
		return;
	log_error("the daemon cannot be started; it is tried again", LOG_ERR(&err));
	if (!s->running)
		loop_timer_set(&s->again, SYSTEM_AGAIN_MAX);
}

static void system_on_again(struct loop_timer *t)
{
	system_start_daemon(container_of(t, struct system_pid1, again));
}

/* One that never comes up is given no configuration, and then the one it had again. */
static void system_judge(struct system_pid1 *s, const siginfo_t *si)
{
	bool well = clock_mono() - s->began > SYSTEM_RAN_WELL ||
		    (si->si_code == CLD_EXITED && si->si_status == EXIT_SUCCESS);

	if (well) {
		s->n_failed = 0;
		s->delay = 0;
		return;
	}
	if (++s->n_failed % SYSTEM_TRIES)
		return;
	s->bare = s->broken || !s->bare;
	if (s->bare && !s->broken)
		(void)error_refuse(&s->fault, ERROR_PRECONDITION,
				   "no daemon comes up with the configuration that it was given; "
				   "its log says why");
}

static void system_load(struct system_pid1 *s)
{
	struct error err = ERROR_INIT;
	int r = s->start->load(s->start->userdata, &s->config, &err);

	s->broken = s->bare = r < 0;
	s->n_failed = 0;
	s->fault = err;
	log_configure(s->log_fd, s->config.log_level, s->config.log_form);
	if (r < 0) {
		log_error("the configuration is broken: the daemon serves without it, at its unix "
			  "socket (repair it, and send SIGHUP)",
			  LOG_ERR(&err));
		return;
	}
	if (s->config.hostname[0] &&
	    sethostname(s->config.hostname, strlen(s->config.hostname)) < 0)
		log_warn("the host name stays as it is", LOG_STR("err", strerror(errno)));
}

static void system_begin_net(struct system_pid1 *s)
{
	if (s->bare || s->has_net)
		return;
	s->has_net = true;
	system_net_begin(&s->net, &s->config);
}

static void system_reload(struct system_pid1 *s)
{
	if (s->state != SYSTEM_SERVING)
		return;
	if (!s->bare) {
		if (s->running)
			(void)pidfd_kill(s->daemon.pidfd, SIGHUP);
		return;
	}
	system_load(s);
	if (s->bare)
		return;
	log_info("the configuration can be read again: the daemon gets it");
	system_begin_net(s);
	s->delay = 0;
	/* Workloads go on without it. */
	if (s->running)
		(void)pidfd_kill(s->daemon.pidfd, SIGTERM);
	else
		loop_timer_set(&s->again, SYSTEM_AGAIN_FIRST);
}

/* ---- the end ---- */

struct system_sync {
	sem_t done;
	int fd; /* its file system alone; -1: all */
};

static void *system_sync_thread(void *arg)
{
	struct system_sync *sync_arg = arg;

	if (sync_arg->fd >= 0)
		(void)sysio_syncfs(sync_arg->fd);
	else
		sync();
	(void)sem_post(&sync_arg->done);
	return NULL;
}

/* A disk that does not answer must not keep the machine from its end. All disks are a machine's,
 * while a container has its own directory. */
static void system_sync(const struct system_pid1 *s)
{
	static struct system_sync arg;
	struct timespec until;
	pthread_t thread;
	int r;

	arg.fd = s->machine ? -1
			    : sysio_openat(AT_FDCWD, s->start->root,
					   O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (!s->machine && arg.fd < 0)
		return;
	if (sem_init(&arg.done, 0, 0) < 0 || thread_start(&thread, system_sync_thread, &arg) < 0) {
		(void)system_sync_thread(&arg);
		return;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += SYSTEM_SYNC_SECONDS;
	do
		r = sem_clockwait(&arg.done, CLOCK_MONOTONIC, &until);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		log_error("the disks do not take what is to be written");
}

static void system_over(struct system_pid1 *s)
{
	system_sync(s);
	if (s->machine) {
		system_mounts_end();
		log_info(s->restart ? "the machine starts again" : "the machine is switched off");
		guest_power_end(s->restart);
	}
	log_info("all has ended");
	loop_quit(s->loop, EXIT_SUCCESS);
}

static void system_stop(struct system_pid1 *s)
{
	log_info("the end: workloads are stopped");
	system_net_end(&s->net);
	loop_timer_stop(&s->again);
	loop_timer_set(&s->limit, s->config.stop_within + SYSTEM_DAEMON_ENDS_WITHIN);
	if (s->running)
		(void)pidfd_kill(s->daemon.pidfd, SIGPWR);
	else
		loop_defer_schedule(&s->follow);
}

/* ---- the states ---- */

static void system_enter(struct system_pid1 *s, enum system_state state)
{
	s->state = state;
	loop_timer_stop(&s->limit);
	switch (state) {
	case SYSTEM_NETWORK:
		loop_timer_set(&s->limit, s->config.network_within);
		system_begin_net(s);
		if (s->bare)
			loop_defer_schedule(&s->follow);
		break;
	case SYSTEM_SERVING:
		system_start_daemon(s);
		break;
	case SYSTEM_STOPPING:
		system_stop(s);
		break;
	case SYSTEM_TERMINATING:
		(void)kill(-1, SIGTERM);
		loop_timer_set(&s->limit, SYSTEM_TERM_WITHIN);
		loop_defer_schedule(&s->reap);
		break;
	case SYSTEM_KILLING:
		(void)kill(-1, SIGKILL);
		loop_timer_set(&s->limit, SYSTEM_KILL_WITHIN);
		loop_defer_schedule(&s->reap);
		break;
	case SYSTEM_OVER:
		system_over(s);
		break;
	case SYSTEM_STATE_COUNT:
		break;
	}
}

static void system_event(struct system_pid1 *s, enum system_event event)
{
	enum system_state next = system_edges[s->state][event];

	if (next != s->state) {
		system_enter(s, next);
		return;
	}
	/* A second time: what is asked for is asked for at once. */
	if (s->state == SYSTEM_STOPPING && event == SYSTEM_ASKED && s->running)
		(void)pidfd_kill(s->daemon.pidfd, SIGPWR);
}

static void system_on_daemon_end(struct system_pid1 *s, const siginfo_t *si)
{
	isolate_child_done(&s->daemon);
	s->daemon = (struct isolate_child)ISOLATE_CHILD_INIT;
	s->running = false;
	if (s->state == SYSTEM_SERVING) {
		log_warn("the daemon has ended, and is started again",
			 LOG_STR("how", si->si_code == CLD_EXITED ? "exit" : "signal"),
			 LOG_INT("status", si->si_status));
		system_judge(s, si);
		s->delay = s->delay ? MIN(2 * s->delay, SYSTEM_AGAIN_MAX) : SYSTEM_AGAIN_FIRST;
		loop_timer_set(&s->again, s->delay);
	}
	system_event(s, SYSTEM_GONE);
}

static void system_on_limit(struct loop_timer *t)
{
	struct system_pid1 *s = container_of(t, struct system_pid1, limit);

	if (s->state == SYSTEM_NETWORK)
		log_warn("the network is not complete; the daemon starts all the same");
	else if (s->state == SYSTEM_STOPPING)
		log_warn("the daemon does not end in time");
	system_event(s, SYSTEM_LIMIT);
}

/* A state that nothing holds. */
static void system_on_follow(struct loop_defer *defer)
{
	struct system_pid1 *s = container_of(defer, struct system_pid1, follow);

	if (s->state == SYSTEM_NETWORK)
		system_event(s, SYSTEM_READY);
	else if (!s->running)
		system_event(s, SYSTEM_GONE);
}

static void system_on_net_ready(void *userdata)
{
	system_event(userdata, SYSTEM_READY);
}

/* ---- children and signals ---- */

static void system_on_reap(struct loop_defer *defer)
{
	struct system_pid1 *s = container_of(defer, struct system_pid1, reap);

	for (unsigned n = 0; n < SYSTEM_REAP_MAX; n++) {
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) < 0) {
			if (errno == ECHILD)
				system_event(s, SYSTEM_NO_CHILD);
			return;
		}
		if (si.si_pid == 0)
			return;
		if (s->running && si.si_pid == s->daemon.pid)
			system_on_daemon_end(s, &si);
		else
			(void)system_net_reaped(&s->net, si.si_pid);
	}
	/* One more was born while another was reaped. */
	if (s->state == SYSTEM_KILLING)
		(void)kill(-1, SIGKILL);
	loop_defer_schedule_last(&s->reap);
}

static void system_on_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct system_pid1 *s = container_of(source, struct system_pid1, signals);

	if (sig == SIGCHLD) {
		loop_defer_schedule(&s->reap);
		return;
	}
	if (sig == SIGHUP) {
		system_reload(s);
		return;
	}
	log_info("told to end", LOG_INT("signal", sig), LOG_INT("sender", sender));
	s->restart = sig == SIGINT;
	system_event(s, SYSTEM_ASKED);
}

static void system_on_button(struct loop_fd *source, unsigned events)
{
	if (guest_power_button_read(source->fd) > 0)
		system_event(container_of(source, struct system_pid1, button), SYSTEM_ASKED);
}

static int system_arm(struct system_pid1 *s)
{
	static const int signals[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGPWR, SIGUSR1, SIGUSR2 };
	int button_fd, r;

	r = loop_new(&s->loop);
	if (r == 0)
		r = loop_signal_init(&s->signals, s->loop, signals, ARRAY_SIZE(signals),
				     system_on_signal);
	if (r < 0)
		return r;
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	loop_timer_init(&s->limit, s->loop, system_on_limit);
	loop_timer_init(&s->again, s->loop, system_on_again);
	loop_defer_init(&s->reap, s->loop, system_on_reap);
	loop_defer_init(&s->follow, s->loop, system_on_follow);
	button_fd = s->machine ? guest_power_button_open() : -1;
	if (button_fd >= 0)
		loop_fd_init(&s->button, s->loop, button_fd, LOOP_READ, system_on_button);
	return 0;
}

/* Without these there is nothing to go on with, and the end of pid 1 is a panic: it is tried until
 * it works. */
static void system_arm_surely(struct system_pid1 *s)
{
	const struct timespec pause = { .tv_sec = 1 };
	int r;

	for (;;) {
		r = system_arm(s);
		if (r == 0)
			return;
		log_error("pid 1 cannot begin; it is tried again", LOG_STR("err", strerror(-r)));
		s->loop = loop_free(s->loop);
		(void)nanosleep(&pause, NULL);
	}
}

/* A console that takes nothing (control-S) holds up who writes to it: pid 1 rather loses a line, by
 * a description of its own. */
static int system_open_log(void)
{
	int fd = isatty(STDERR_FILENO)
			 ? sysio_openat(AT_FDCWD, "/proc/self/fd/2",
					O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0)
			 : -1;

	if (fd < 0)
		return STDERR_FILENO;
	(void)fd_set_nonblock(STDERR_FILENO, false);
	log_configure(fd, LOG_INFO, LOG_FORM_TEXT);
	return fd;
}

int system_main(const struct system_start *start)
{
	static struct system_pid1 s;
	int r;

	s = (struct system_pid1){
		.start = start, .exe_fd = -1, .daemon = ISOLATE_CHILD_INIT, .fault = ERROR_INIT
	};
	/* Until there is a /proc by which it can be opened again. */
	if (isatty(STDERR_FILENO))
		(void)fd_set_nonblock(STDERR_FILENO, true);
	system_mounts_make();
	s.log_fd = system_open_log();
	title_set("nacre: init");
	s.machine = system_is_machine();
	/* Control, alternate, delete on the console is a signal like any other. */
	if (s.machine)
		(void)reboot(RB_DISABLE_CAD);
	system_arm_surely(&s);
	system_group_enter();
	system_net_init(&s.net, s.loop, system_on_net_ready, &s);
	system_load(&s);
	system_enter(&s, SYSTEM_NETWORK);
	/* Children that this process had when it was another program. */
	loop_defer_schedule(&s.reap);
	r = loop_run(s.loop);
	loop_signal_done(&s.signals);
	return r;
}
