/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * nacre-init: the first process of a container that asks for one (Container.init). A program of its
 * own, since it is executed in the container, as the container's user and behind all of its walls:
 * static, so that an image needs nothing for it, and without anything of the daemon.
 *
 *     /dev/init -- PROGRAM [ARGUMENT...]
 *
 * It starts the program as the leader of a process group, to which a terminal on stdin then
 * belongs; hands on every signal that it gets; reaps whatever is left behind; and ends as the
 * program does: its exit code, or 128 + n where signal n ended it. All signals are blocked and
 * taken one by one, so that none is lost, and none that comes from inside is dropped by the kernel
 * for want of a handler.
 */

enum { INIT_CANNOT_EXECUTE = 126, INIT_NOT_FOUND = 127, INIT_FAILED = 125 };

static void init_say(const char *what, const char *name, int error)
{
	(void)fprintf(stderr, "init: %s %s: %s\n", what, name, strerror(error));
}

/* 0 or an error number. */
static int init_spawn(char **argv, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int r = posix_spawnattr_init(&attr);

	if (r)
		return r;
	r = posix_spawn_file_actions_init(&actions);
	if (r) {
		(void)posix_spawnattr_destroy(&attr);
		return r;
	}
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &all);
	(void)posix_spawnattr_setpgroup(&attr, 0);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	/* Its signals are blocked still, so SIGTTOU does not stop it. */
	if (isatty(STDIN_FILENO))
		r = posix_spawn_file_actions_addtcsetpgrp_np(&actions, STDIN_FILENO);
	if (!r)
		r = posix_spawnp(ret, argv[0], &actions, &attr, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attr);
	return r;
}

/* Whether the program has ended, and how. */
static bool init_reap(pid_t program, int *ret)
{
	bool over = false;
	int status;
	pid_t pid;

	for (;;) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid <= 0)
			return over;
		if (pid != program)
			continue;
		over = true;
		*ret = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

static int init_run(pid_t program, const sigset_t *signals)
{
	int status = INIT_FAILED;
	siginfo_t info;

	for (;;) {
		int sig = sigwaitinfo(signals, &info);

		if (sig < 0)
			continue;
		if (sig == SIGCHLD) {
			if (init_reap(program, &status))
				return status;
			continue;
		}
		/* Of a terminal that we try to use in the background: ours alone. */
		if (sig != SIGTTIN && sig != SIGTTOU)
			(void)kill(program, sig);
	}
}

int main(int argc, char **argv)
{
	sigset_t signals;
	pid_t program;
	int r;

	if (argc < 3 || strcmp(argv[1], "--") != 0) {
		(void)fputs("init: /dev/init -- PROGRAM [ARGUMENT...]\n", stderr);
		return INIT_FAILED;
	}
	(void)sigfillset(&signals);
	if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0)
		return INIT_FAILED;
	/* Where it is not the first one of a pid namespace. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1UL);
	r = init_spawn(argv + 2, &program);
	if (r) {
		init_say("execute", argv[2], r);
		return r == ENOENT || r == ENOTDIR ? INIT_NOT_FOUND : INIT_CANNOT_EXECUTE;
	}
	return init_run(program, &signals);
}
