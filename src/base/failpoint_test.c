/* SPDX-License-Identifier: Apache-2.0 */
#include "base/failpoint.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "unit.h"

#define EXIT_SKIPPED 77

static int hit(const char *plan, const char *name)
{
	CHECK(setenv("NACRE_FAILPOINT", plan, 1) == 0);
	return failpoint_hit(name);
}

static void errors(void)
{
	nsec_t begin = clock_mono();

	CHECK(unsetenv("NACRE_FAILPOINT") == 0);
	CHECK_INT(failpoint_hit("store.write"), 0);
	CHECK_INT(hit("", "store.write"), 0);
	CHECK_INT(hit("store.write=error:28", "store.write"), -ENOSPC);
	CHECK_INT(hit("store.write=error:28", "spawn.clone"), 0);
	CHECK_INT(hit("spawn.clone=error:1,store.write=error:5", "store.write"), -EIO);
	/* A name that begins like another one. */
	CHECK_INT(hit("container.start=error:1", "container.started"), 0);
	CHECK_INT(hit("container.started=error:1,container.start=error:2", "container.start"),
		  -ENOENT);
	CHECK_INT(hit("store.write=sleep:20", "store.write"), 0);
	CHECK(clock_mono() - begin >= 20 * NSEC_PER_MSEC);
}

static void deaths(void)
{
	static const struct {
		const char *plan;
		int sig;
	} cases[] = { { "store.write=crash", SIGKILL }, { "store.write=abort", SIGABRT } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(hit(cases[i].plan, "store.write"));
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == cases[i].sig);
	}
}

/* In a process of its own, since the children of who has made a pid namespace are born in it. */
static int crash_of_pid_1(void)
{
	int status;
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0)
		return EXIT_SKIPPED;
	pid = fork();
	if (pid == 0)
		_exit(hit("store.write=crash", "store.write"));
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGILL
		       ? EXIT_SUCCESS
		       : EXIT_FAILURE;
}

static void deaths_of_pid_1(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(crash_of_pid_1());
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == EXIT_SKIPPED)
		SKIP("may not make a pid namespace");
	CHECK_INT(WEXITSTATUS(status), EXIT_SUCCESS);
}

static void lists(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	failpoint_list(to);
	(void)fclose(to);
	CHECK(strncmp(text, "store.write ", 12) == 0);
	CHECK(text[n - 1] == '\n');
	free(text);
}

UNIT_MAIN({ "errors", errors }, { "deaths", deaths }, { "the death of pid 1", deaths_of_pid_1 },
	  { "lists", lists })
