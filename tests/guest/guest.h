/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_TESTS_GUEST_H
#define NACRE_TESTS_GUEST_H

/* What test programs of the guest need to use other programs there, beside unit.h. */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of one program; what is longer is cut. */
#define GUEST_OUTPUT_MAX 65536
/* Emulated, and on a busy host at that. */
#define GUEST_PATIENCE_S 300

static char guest_output[GUEST_OUTPUT_MAX];

static inline void guest_pause(void)
{
	struct timespec ts = { .tv_nsec = 20 * 1000000 };

	(void)nanosleep(&ts, NULL);
}

static inline time_t guest_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* The text of a file in guest_output, "" if it cannot be read. */
static inline const char *guest_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, guest_output, sizeof(guest_output) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	guest_output[n > 0 ? n : 0] = '\0';
	return guest_output;
}

static inline bool guest_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? write(fd, text, strlen(text)) : -1;

	if (fd >= 0)
		(void)close(fd);
	return n == (ssize_t)strlen(text);
}

/* Starts a program with its output going to out_fd; its pid, or -1. */
static inline pid_t guest_start(int out_fd, const char *const *argv)
{
	posix_spawn_file_actions_t actions;
	char **copy = (char **)(uintptr_t)argv;
	pid_t pid;
	int r;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out_fd, STDERR_FILENO);
	r = posix_spawnp(&pid, argv[0], &actions, NULL, copy, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r == 0 ? pid : -1;
}

static inline int guest_wait(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Runs a program to its end: its exit status, and all that it said in guest_output. */
static inline int guest_run(const char *const *argv)
{
	size_t len = 0;
	ssize_t n = 1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	pid = guest_start(fds[1], argv);
	(void)close(fds[1]);
	while (n > 0 && len < sizeof(guest_output) - 1) {
		n = read(fds[0], guest_output + len, sizeof(guest_output) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	guest_output[len] = '\0';
	(void)close(fds[0]);
	return guest_wait(pid);
}

#define GUEST_RUN(...) guest_run((const char *const[]){ __VA_ARGS__, NULL })

/* Shows what a program said, where a check of it has failed. */
static inline void guest_show(void)
{
	char *rest = guest_output, *line;

	for (line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		if (*line)
			printf("# | %s\n", line);
}

/* The number behind `"key":` that comes behind each word of `path` in turn; -1 where it is missing.
 * path: "memory/current". */
static inline long long guest_number(const char *text, const char *path)
{
	char word[64];
	const char *next;

	for (; *path; path = *next ? next + 1 : next) {
		next = path + strcspn(path, "/");
		(void)snprintf(word, sizeof(word), "\"%.*s\":", (int)(next - path), path);
		text = strstr(text, word);
		if (!text)
			return -1;
		text += strlen(word);
	}
	return strtoll(text, NULL, 10);
}

#endif
