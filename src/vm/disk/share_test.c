/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/share.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/mount/bind.h"
#include "unit.h"

/* A real virtiofsd in its jail, without a VM. What a guest sees of it: tests/vm/test_share.py. */

static struct loop *test_loop;
static struct pool *test_pool;
static int test_ups, test_ends, test_changes, test_r;
static struct error test_end_err, test_change_err;

static void on_up(struct share *s)
{
	test_ups++;
}

static void on_end(struct share *s, const struct error *err)
{
	test_ends++;
	test_end_err = err ? *err : (struct error)ERROR_INIT;
}

static const struct share_ops test_ops = { on_up, on_end };

static void on_change(struct share_change *c, int r, const struct error *err)
{
	test_changes++;
	test_r = r;
	test_change_err = err ? *err : (struct error)ERROR_INIT;
}

static void on_tick(struct loop_timer *t)
{
	loop_timer_set(t, 10 * NSEC_PER_MSEC);
}

static void test_wait(const int *what)
{
	time_t began = unit_now();
	struct loop_timer tick;

	loop_timer_init(&tick, test_loop, on_tick);
	loop_timer_set(&tick, 10 * NSEC_PER_MSEC);
	while (*what == 0 && unit_waits(began))
		loop_turn(test_loop, true);
	loop_timer_done(&tick);
	CHECK(*what > 0);
}

static void names(void)
{
	char longest[SHARE_NAME_MAX + 2] = "";

	memset(longest, 'x', SHARE_NAME_MAX);
	CHECK(share_name_is_valid("a") && share_name_is_valid("0a.b_c-d") &&
	      share_name_is_valid(longest));
	longest[SHARE_NAME_MAX] = 'x';
	CHECK(!share_name_is_valid(longest));
	CHECK(!share_name_is_valid(NULL) && !share_name_is_valid("") && !share_name_is_valid(".") &&
	      !share_name_is_valid("..") && !share_name_is_valid("-a") &&
	      !share_name_is_valid("a/b") && !share_name_is_valid("a b") &&
	      !share_name_is_valid("a\n") && !share_name_is_valid("\xc3\xa4"));
}

static bool test_begin(struct share_config *config, const char *program)
{
	test_ups = test_ends = test_changes = 0;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/mnt", "tmpfs", 0, "mode=700") < 0)
		return false;
	CHECK(loop_new(&test_loop) == 0);
	CHECK(test_loop && pool_new(&test_pool, test_loop, 1) == 0);
	*config =
		(struct share_config){ .loop = test_loop,
				       .pool = test_pool,
				       .program = program,
				       .proc_fd = open("/proc", O_PATH | O_CLOEXEC),
				       .cgroup_fd = -1,
				       .dir_fd = open("/mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	return test_loop && test_pool;
}

static void test_finish(struct share_config *config)
{
	test_pool = pool_free(test_pool);
	test_loop = loop_free(test_loop);
	(void)close(config->proc_fd);
	(void)close(config->dir_fd);
	(void)umount2("/mnt", MNT_DETACH);
}

/* A volume of a directory. */
static int test_volume(void)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = -1;

	(void)mkdir("/mnt/volume", 0755);
	fd = open("/mnt/volume", O_PATH | O_CLOEXEC);
	return isolate_bind(fd, 0, &err);
}

static void test_add_and_remove(struct share *s)
{
	struct share_change c;
	struct error err = ERROR_INIT;

	if (share_add(s, &c, "data", test_volume(), true, on_change, &err) < 0) {
		unit_failed();
		return;
	}
	test_wait(&test_changes);
	CHECK(test_r == 0);
	test_changes = 0;
	CHECK(share_remove(s, &c, "data", on_change, &err) == 0);
	test_wait(&test_changes);
	CHECK(test_r == 0);
	test_changes = 0;
	CHECK(share_remove(s, &c, "data", on_change, &err) == 0);
	test_wait(&test_changes);
	CHECK(test_r < 0 && test_change_err.kind == ERROR_NOT_FOUND);
}

/* As many as there may be, and one more. */
static void test_fill(struct share *s)
{
	struct error err = ERROR_INIT;
	struct share_change c;
	char name[16];

	for (int i = 0; i <= SHARE_VOLUMES_MAX && !unit_failures; i++) {
		(void)str_printf(name, sizeof(name), "v%d", i);
		test_changes = 0;
		if (share_add(s, &c, name, test_volume(), false, on_change, &err) < 0) {
			unit_failed();
			return;
		}
		test_wait(&test_changes);
		CHECK_INT(test_r, i < SHARE_VOLUMES_MAX ? 0 : -ENOSPC);
	}
	CHECK(test_change_err.kind == ERROR_EXHAUSTED);
}

static void lives(void)
{
	struct share_config config = { .proc_fd = -1 };
	struct error err = ERROR_INIT;
	struct share_change c;
	struct share s;
	int fd = -1, volume;

	if (access(SHARE_PROGRAM, X_OK) < 0)
		SKIP("there is no virtiofsd");
	if (!test_begin(&config, SHARE_PROGRAM))
		SKIP("needs root");
	if (share_start(&s, &config, &test_ops, &fd, &err) < 0) {
		printf("# %s\n", error_text(&err));
		unit_failed();
		test_finish(&config);
		return;
	}
	volume = test_volume();
	CHECK(share_add(&s, &c, "early", volume, true, on_change, &err) < 0 &&
	      err.kind == ERROR_PRECONDITION);
	CHECK(volume < 0 || fcntl(volume, F_GETFD) < 0);
	test_wait(&test_ups);
	if (s.up) {
		test_add_and_remove(&s);
		test_fill(&s);
	}
	/* QEMU is gone. */
	(void)close(fd);
	test_wait(&test_ends);
	CHECK_INT(test_end_err.code, 0);
	CHECK(!s.running);
	share_stop(&s);
	share_done(&s);
	test_finish(&config);
}

static void fails(void)
{
	struct share_config config = { .proc_fd = -1 };
	struct error err = ERROR_INIT;
	struct share s;
	int fd = -1;

	if (!test_begin(&config, "/usr/lib/qemu/no-such-program"))
		SKIP("needs root");
	if (share_start(&s, &config, &test_ops, &fd, &err) == 0) {
		test_wait(&test_ends);
		CHECK(test_ups == 0 && test_end_err.code < 0);
		(void)close(fd);
	}
	share_done(&s);
	test_finish(&config);
}

/* Not a file server at all: it ends with a word of its own. */
static void ends_badly(void)
{
	struct share_config config = { .proc_fd = -1 };
	struct error err = ERROR_INIT;
	struct share s;
	int fd = -1;

	if (!test_begin(&config, "/usr/bin/false"))
		SKIP("needs root");
	if (share_start(&s, &config, &test_ops, &fd, &err) == 0) {
		test_wait(&test_ends);
		CHECK(strstr(test_end_err.text, "ended with status 1") != NULL);
		(void)close(fd);
	}
	share_done(&s);
	test_finish(&config);
}

static void nobody_to_adopt(void)
{
	struct share_config config = { .proc_fd = -1 };
	struct error err = ERROR_INIT;
	struct share s;

	if (!test_begin(&config, SHARE_PROGRAM))
		SKIP("needs root");
	/* This very process, of another time. */
	CHECK(share_adopt(&s, &config, &test_ops, getpid(), 1, &err) < 0);
	CHECK(err.kind == ERROR_NOT_FOUND || err.code == -ENOMEM);
	share_done(&s);
	test_finish(&config);
}

UNIT_MAIN({ "names of volumes", names }, { "starts, adds, removes, ends", lives },
	  { "a program that is not there", fails }, { "a program that ends", ends_badly },
	  { "nobody to take up", nobody_to_adopt })
