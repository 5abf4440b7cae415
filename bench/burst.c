/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts a program again and again and measures it, for bench/oci.py:
 *
 *   burst [--hide DIR] PROGRAM [ARGUMENT...]
 *
 * For each line "N" on standard input, N of them at once; when the last has ended, "MICROSECONDS
 * KILOBYTES FAILED" goes to standard output: the time from the first start on, the most memory that
 * one of them (or a process that it waited for) had, and how many ended with another status than 0.
 * "%" as a word of the arguments is a number that is new for each. --hide unmounts DIR first, in a
 * mount namespace of its own.
 *
 * It is small: what a process had before its exec counts as its memory.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURST_MAX 1000

struct burst_result {
	double us;
	long kilobytes;
	unsigned failed;
};

static _Noreturn void burst_die(const char *what)
{
	(void)fprintf(stderr, "burst: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static double burst_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void burst_hide(const char *dir)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    umount2(dir, MNT_DETACH) < 0)
		burst_die(dir);
}

static pid_t burst_start(char **argv, char **number, const posix_spawn_file_actions_t *actions)
{
	static unsigned counter;
	char text[32];
	pid_t pid;
	int r;

	(void)snprintf(text, sizeof(text), "burst-%d-%u", getpid(), counter++);
	if (number)
		*number = text;
	r = posix_spawnp(&pid, argv[0], actions, NULL, argv, environ);
	return r == 0 ? pid : -1;
}

static struct burst_result burst_run(char **argv, char **number, unsigned n,
				     const posix_spawn_file_actions_t *actions)
{
	struct burst_result result = { .us = burst_now() };
	unsigned running = 0;
	struct rusage usage;
	int status;

	for (unsigned i = 0; i < n; i++) {
		if (burst_start(argv, number, actions) < 0)
			result.failed++;
		else
			running++;
	}
	for (; running > 0; running--) {
		if (wait4(-1, &status, 0, &usage) < 0)
			burst_die("wait");
		result.failed += status != 0;
		if (usage.ru_maxrss > result.kilobytes)
			result.kilobytes = usage.ru_maxrss;
	}
	result.us = burst_now() - result.us;
	return result;
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	struct burst_result result;
	char **number = NULL;
	char line[32];
	unsigned long n;

	if (argc > 2 && strcmp(argv[1], "--hide") == 0) {
		burst_hide(argv[2]);
		argv += 2;
		argc -= 2;
	}
	if (argc < 2)
		return 2;
	argv++;
	for (char **word = argv; *word; word++)
		if (strcmp(*word, "%") == 0)
			number = word;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	while (fgets(line, sizeof(line), stdin)) {
		n = strtoul(line, NULL, 10);
		if (n == 0 || n > BURST_MAX)
			return 2;
		result = burst_run(argv, number, (unsigned)n, &actions);
		printf("%.1f %ld %u\n", result.us, result.kilobytes, result.failed);
		(void)fflush(stdout);
	}
	return EXIT_SUCCESS;
}
