/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/layer/keeper.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "unit.h"

/* Starts whose descriptors come later: with a user that is known the process is cloned at once. */

#define IMAGE "sha256:1"

static struct bed bed;
static struct bed *const b = &bed;
static char *greets[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" },
			  (char[]){ "pwd; id -u; hostname; read x; echo $x; exit 3" }, NULL };

static int start_late(const char *cell)
{
	struct error err = ERROR_INIT;
	int n = bed_start(b,
			  &(struct bed_start){ .cell = cell,
					       .name = "main",
					       .image = IMAGE,
					       .user = "app",
					       .argv = greets,
					       .stdin_open = true,
					       .late = true },
			  &err);

	CHECK_STR(err.text, "");
	return n < 0 ? 0 : n;
}

/* Also makes the keeper know the user. */
static void run_one(void)
{
	struct bed_start s = { .cell = "first", .image = IMAGE, .user = "app" };

	CHECK_INT(bed_wait(b, bed_start(b, &s, NULL))->exit_code, 0);
}

/* The processes of the group of a container "main". */
static size_t procs(const char *cell)
{
	char group[BED_GROUP_SIZE];

	bed_group(b, cell, "main", group);
	return bed_procs(b, group);
}

static void supply(int n)
{
	struct container_fds fds = b->late;

	b->late = (struct container_fds)CONTAINER_FDS_NONE;
	keeper_supply(b->keeper, bed_id(n), &fds);
}

static void drop(void)
{
	container_fds_close(&b->late);
}

static void remove_cell(const char *cell)
{
	char group[64];

	(void)str_printf(group, sizeof(group), "cell.%s", cell);
	keeper_remove_cell(b->keeper, cell, NULL, NULL);
	BED_UNTIL(b, !bed_has_cgroup(b, group));
}

static void turn_some(void)
{
	for (int i = 0; i < 40; i++)
		bed_turn(b);
}

static void on_written(void *userdata, const struct error *err)
{
	CHECK(!err);
}

static void check_runs(int n, const char *cell)
{
	char want[64];

	bed_wait_running(b, n);
	CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
	CHECK_INT(keeper_write_stdin(b->keeper, bed_id(n), "hello\n", 6, true, on_written, NULL,
				     NULL),
		  0);
	CHECK_INT(bed_wait(b, n)->exit_code, 3);
	CHECK_STR(b->last[n].reason, "");
	(void)str_printf(want, sizeof(want), "/\n1000\n%s\nhello\n", cell);
	CHECK_STR(bed_log_text(b, n, 1), want);
	CHECK_STR(bed_log_text(b, n, 2), "");
}

static void is_cloned_before_its_root_is_there(void)
{
	int n, other;

	bed_open(b);
	/* Nobody knows the user yet. */
	n = start_late("a");
	turn_some();
	CHECK_INT(procs("a"), 0);
	supply(n);
	check_runs(n, "a");

	/* Without a prepared set, and then with one. */
	for (int i = 0; i < 2; i++) {
		const char *cell = i ? "c" : "b";

		n = start_late(cell);
		BED_UNTIL(b, procs(cell) == 1);
		turn_some();
		CHECK_INT(procs(cell), 1);
		CHECK_INT(b->last[n].state, CONTAINER_STARTING);
		supply(n);
		check_runs(n, cell);
	}

	/* In a cell whose namespaces are another's. */
	other = bed_start(b, &(struct bed_start){ .cell = "d", .script = "sleep 1000" }, NULL);
	n = start_late("d");
	BED_UNTIL(b, procs("d") == 1);
	supply(n);
	check_runs(n, "d");
	bed_wait_running(b, other);
	CHECK_INT(b->last[other].state, CONTAINER_RUNNING);
	bed_close(b);
}

static void is_not_cloned_before_its_disk_is_there(void)
{
	struct container_disk disk = { .serial = "x", .fs = CONTAINER_DISK_FS };
	char *argv[] = { (char[]){ "/bin/true" }, NULL };
	struct container_spec spec = { .name = "main",
				       .image = IMAGE,
				       .user = "app",
				       .cwd = "",
				       .argv = argv,
				       .log = { .block_for = NSEC_PER_SEC },
				       .root_disk = &disk,
				       .late = true };
	struct container_fds none = CONTAINER_FDS_NONE;
	struct error err = ERROR_INIT;

	bed_open(b);
	run_one();
	(void)str_copy(spec.id, sizeof(spec.id), bed_id(b->n_ids++));
	CHECK_INT(keeper_start(b->keeper, &(struct cell_spec){ .name = "v" }, &spec, &none, NULL,
			       NULL, &err),
		  0);
	turn_some();
	CHECK_INT(procs("v"), 0);
	bed_close(b);
}

static void can_be_taken_back(void)
{
	struct error why = ERROR_INIT;
	int n;

	bed_open(b);
	run_one();
	(void)error_refuse(&why, ERROR_CANCELLED, "it was taken back");
	n = start_late("a");
	BED_UNTIL(b, procs("a") == 1);
	keeper_withdraw(b->keeper, bed_id(n), &why);
	keeper_withdraw(b->keeper, bed_id(n), &why);
	supply(n);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK_STR(b->last[n].reason, "it was taken back");
	CHECK_INT(b->last[n].exit_code, 125);
	CHECK(!bed_has_cgroup(b, "cell.a/main"));
	CHECK_INT(b->n_started, 2);

	/* It comes without a root. */
	n = start_late("b");
	BED_UNTIL(b, procs("b") == 1);
	b->late.rootfs = fd_close(b->late.rootfs);
	supply(n);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK(strstr(b->last[n].reason, "rootfs") != NULL);
	CHECK(!bed_has_cgroup(b, "cell.b/main"));
	bed_close(b);
}

static void can_be_killed_while_it_waits(void)
{
	char group[BED_GROUP_SIZE], file[BED_GROUP_SIZE + 16];
	int n;

	bed_open(b);
	run_one();
	n = start_late("a");
	BED_UNTIL(b, procs("a") == 1);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, false, NULL), 0);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK_INT(b->last[n].exit_code, 137);
	CHECK_STR(b->last[n].reason, "killed before its program ran");
	supply(n);
	drop();

	/* By somebody else. */
	n = start_late("b");
	BED_UNTIL(b, procs("b") == 1);
	bed_group(b, "b", "main", group);
	(void)str_printf(file, sizeof(file), "%s/cgroup.kill", group);
	CHECK_INT(fd_write_file(b->cgroup_fd, file, "1"), 0);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK(strstr(b->last[n].reason, "waited for its root") != NULL);
	CHECK_INT(b->n_started, 3);
	drop();

	/* With its cell; and what is sent to it before it runs is kept for it. */
	n = start_late("c");
	BED_UNTIL(b, procs("c") == 1);
	keeper_remove_cell(b->keeper, "c", NULL, NULL);
	BED_UNTIL(b, b->removed[n]);
	BED_UNTIL(b, !bed_has_cgroup(b, "cell.c"));
	drop();
	n = start_late("e");
	BED_UNTIL(b, procs("e") == 1);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGTERM, false, NULL), 0);
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGHUP, false, NULL), 0);
	supply(n);
	bed_wait_running(b, n);
	CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
	bed_close(b);
}

static void its_root_cannot_be_one(void)
{
	int n;

	bed_open(b);
	run_one();
	n = start_late("a");
	BED_UNTIL(b, procs("a") == 1);
	(void)fd_close(b->late.rootfs);
	b->late.rootfs = fd_copy(b->proc_fd);
	supply(n);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK(strstr(b->last[n].reason, "root file system") != NULL);
	CHECK(!bed_has_cgroup(b, "cell.a/main"));
	bed_close(b);
}

/* What is made ahead of need goes. */
static void let_go(void)
{
	keeper_hold(b->keeper, true);
	BED_UNTIL(b, !keeper_busy(b->keeper));
	keeper_hold(b->keeper, false);
}

static void nothing_is_left(void)
{
	struct error why = ERROR_INIT;
	int fds, n;

	bed_open(b);
	run_one();
	/* With a thread for logs. */
	(void)bed_wait(
		b, bed_start(b, &(struct bed_start){ .cell = "first", .script = "echo x" }, NULL));
	remove_cell("first");
	let_go();
	fds = bed_count_fds();
	(void)error_refuse(&why, ERROR_CANCELLED, "enough");
	n = start_late("a");
	BED_UNTIL(b, procs("a") == 1);
	keeper_withdraw(b->keeper, bed_id(n), &why);
	drop();
	(void)bed_wait(b, n);
	remove_cell("a");
	n = start_late("a");
	BED_UNTIL(b, procs("a") == 1);
	supply(n);
	check_runs(n, "a");
	remove_cell("a");
	let_go();
	BED_UNTIL(b, bed_count_fds() <= fds);
	CHECK(bed_count_fds() <= fds);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	bed_close(b);
}

BED_MAIN({ "is cloned before its root is there", is_cloned_before_its_root_is_there },
	 { "is not cloned before its disk is there", is_not_cloned_before_its_disk_is_there },
	 { "can be taken back", can_be_taken_back },
	 { "can be killed while it waits", can_be_killed_while_it_waits },
	 { "its root cannot be one", its_root_cannot_be_one },
	 { "nothing is left", nothing_is_left })
