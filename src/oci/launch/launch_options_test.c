/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/launch_options.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/plan/plan.h"
#include "oci/config/given.h"
#include "unit.h"

/* Descriptors 3 to 5 are open as a caller leaves them, and 6 is closed. */
static void give_three(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (int i = 3; i <= 5; i++)
		if (fd == i)
			(void)fcntl(fd, F_SETFD, 0);
		else
			(void)dup3(fd, i, 0);
	if (fd > 5)
		(void)close(fd);
	(void)close(6);
}

static void counts_what_is_passed(void)
{
	struct launch_options o = { .wait = false };
	struct error err = ERROR_INIT;

	give_three();
	CHECK(unsetenv("LISTEN_FDS") == 0);
	CHECK_INT(launch_count_fds(&o, NULL, &err), 0);
	CHECK(o.n_listen_fds == 0 && o.n_preserve_fds == 0);
	CHECK(setenv("LISTEN_FDS", "1", 1) == 0);
	CHECK_INT(launch_count_fds(&o, "2", &err), 0);
	CHECK(o.n_listen_fds == 1 && o.n_preserve_fds == 2);
	CHECK(launch_count_fds(&o, "3", &err) < 0);
	CHECK(strstr(err.text, "descriptor 6 is not open") != NULL);
	/* One of this program's own is none of the caller's. */
	CHECK(fcntl(5, F_SETFD, FD_CLOEXEC) == 0);
	err = (struct error)ERROR_INIT;
	CHECK(launch_count_fds(&o, "2", &err) < 0);
	CHECK(strstr(err.text, "descriptor 5 is not open") != NULL);
	CHECK(setenv("LISTEN_FDS", "many", 1) == 0);
	err = (struct error)ERROR_INIT;
	CHECK(launch_count_fds(&o, NULL, &err) < 0);
	CHECK(strstr(err.text, "LISTEN_FDS: \"many\" is no number") != NULL);
	CHECK(unsetenv("LISTEN_FDS") == 0);
	err = (struct error)ERROR_INIT;
	CHECK(launch_count_fds(&o, "-1", &err) < 0);
	CHECK(strstr(err.text, "--preserve-fds: \"-1\" is no number") != NULL);
	for (int i = 3; i <= 5; i++)
		(void)close(i);
}

static void plans_them(void)
{
	char path[] = "PATH=/bin";
	char *const env[] = { path, NULL };
	const struct launch_options o = { .n_listen_fds = 1, .n_preserve_fds = 2 };
	const struct launch_options none = { .n_preserve_fds = 1 };
	struct isolate_plan plan = { .env = env };
	struct arena a = ARENA_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(launch_plan_fds(&plan, &none, &a, &err), 0);
	CHECK(plan.env == env && plan.n_keep_fds == 1);
	CHECK_INT(launch_plan_fds(&plan, &o, &a, &err), 0);
	CHECK_INT(plan.n_keep_fds, 3);
	CHECK(plan.keep_fds[0] == 3 && plan.keep_fds[2] == 5);
	CHECK(plan.stdio[0] == 0 && plan.stdio[2] == 2);
	CHECK_STR(plan.env[0], "PATH=/bin");
	CHECK_STR(plan.env[1], "LISTEN_FDS=1");
	CHECK_STR(plan.env[2], "LISTEN_PID=1");
	CHECK(plan.env[3] == NULL);
	arena_done(&a);
}

static void writes_the_pid(void)
{
	char path[] = "/tmp/nacre-launch-XXXXXX";
	struct error err = ERROR_INIT;
	struct buf b = BUF_INIT;
	int fd = mkstemp(path);
	char *text;

	CHECK(fd >= 0);
	(void)close(fd);
	CHECK_INT(launch_write_pid_file(path, 4711, &err), 0);
	CHECK_INT(given_read(path, 64, &b), 0);
	text = buf_take_str(&b);
	CHECK_STR(text, "4711");
	free(text);
	CHECK(launch_write_pid_file("/nowhere/pid", 1, &err) < 0);
	(void)unlink(path);
}

UNIT_MAIN({ "counts_what_is_passed", counts_what_is_passed }, { "plans_them", plans_them },
	  { "writes_the_pid", writes_the_pid })
