/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault/failpoint.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "base/time/clock.h"
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
	CHECK_INT(hit("*=error:5", "store.write"), -EIO);
	CHECK_INT(hit("store.write+=error:5", "store.write"), 0);
	CHECK_INT(hit("store.write=sleep:20", "store.write"), 0);
	CHECK(clock_mono() - begin >= 20 * NSEC_PER_MSEC);
}

/* Each time that this process comes to a place counts, whatever the plan is. */
static void times(void)
{
	CHECK_INT(hit("cell.make@2=error:5", "cell.make"), 0);
	CHECK_INT(hit("cell.make@2=error:5", "cell.make"), -EIO);
	CHECK_INT(hit("cell.make@2=error:5", "cell.make"), 0);
	CHECK_INT(hit("cell.make@5=error:5,cell.make@4=error:1", "cell.make"), -EPERM);
	CHECK_INT(hit("*@5=error:5", "cell.make"), -EIO);
	/* The other side has a count of its own. */
	CHECK(setenv("NACRE_FAILPOINT", "cell.make+@1=crash", 1) == 0);
	CHECK_INT(failpoint_hit("cell.make"), 0);
}

/* What a process says on its standard error before it dies behind a step. */
static void tells(void)
{
	char line[80] = "", want[80];
	int ends[2], status;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	if (pid == 0) {
		(void)dup3(ends[1], STDERR_FILENO, 0);
		(void)setenv("NACRE_FAILPOINT", "cell.make+=crash", 1);
		if (failpoint_hit("cell.make") == 0)
			failpoint_hit_after("cell.make");
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(read(ends[0], line, sizeof(line) - 1) > 0);
	(void)str_printf(want, sizeof(want), "failpoint cell.make+ of %d\n", (int)pid);
	CHECK_STR(line, want);
	(void)close(ends[0]);
	(void)close(ends[1]);
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

	CHECK(to != NULL);
	failpoint_list(to);
	(void)fclose(to);
	CHECK(text && n > 0);
	CHECK(strncmp(text, "store.write ", 12) == 0);
	CHECK(text[n - 1] == '\n');
	free(text);
}

UNIT_MAIN({ "errors", errors }, { "times", times }, { "tells", tells }, { "deaths", deaths },
	  { "the death of pid 1", deaths_of_pid_1 }, { "lists", lists })
