/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/spare_container.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "isolate/cgroup/cgroup.h"
#include "unit.h"

/* The process that waits ahead, as a keeper has it: with the kernel's word on groups and pids. */

#define IMAGE "sha256:1"

static struct bed bed;
static struct bed *const b = &bed;
static char *greets[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" },
			  (char[]){ "pwd; id -u; hostname; read x; echo $x; exit 3" }, NULL };

struct waiting {
	char group[64]; /* of the process that waits */
	int n;
};

static void note_waiting(void *userdata, const char *dir)
{
	struct waiting *w = userdata;

	(void)str_printf(w->group, sizeof(w->group), "%.32s/" SPARE_CONTAINER_LEAF, dir);
	w->n++;
}

/* How many groups there are without a name. */
static int waiting_groups(struct waiting *ret)
{
	*ret = (struct waiting){ .n = 0 };
	CHECK_INT(cgroup_each_nameless(b->cgroup_fd, note_waiting, ret), 0);
	return ret->n;
}

/* The process that waits, as this one numbers it; 0 where there is none. */
static int waiting_pid(void)
{
	_cleanup_fd_ int fd = -1;
	struct waiting w;
	pid_t pid = 0;

	if (waiting_groups(&w) == 0)
		return 0;
	fd = openat(b->cgroup_fd, w.group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		CHECK_INT(cgroup_find_one(fd, "", &pid, NULL), 0);
	return (int)pid;
}

static int start(const struct bed_start *s)
{
	struct error err = ERROR_INIT;
	int n = bed_start(b, s, &err);

	CHECK_STR(err.text, "");
	return n < 0 ? 0 : n;
}

static int start_late(const char *cell)
{
	return start(&(struct bed_start){ .cell = cell,
					  .name = "main",
					  .image = IMAGE,
					  .user = "app",
					  .argv = greets,
					  .stdin_open = true,
					  .late = true });
}

static void supply(int n)
{
	struct container_fds fds = b->late;

	b->late = (struct container_fds)CONTAINER_FDS_NONE;
	keeper_supply(b->keeper, bed_id(n), &fds);
}

static void on_written(void *userdata, const struct error *err)
{
	CHECK(!err);
}

static void check_ends(int n, const char *cell)
{
	char want[64];

	CHECK_INT(keeper_write_stdin(b->keeper, bed_id(n), "hello\n", 6, true, on_written, NULL,
				     NULL),
		  0);
	CHECK_INT(bed_wait(b, n)->exit_code, 3);
	CHECK_STR(b->last[n].reason, "");
	(void)str_printf(want, sizeof(want), "/\n1000\n%s\nhello\n", cell);
	CHECK_STR(bed_log_text(b, n, 1), want);
	CHECK_STR(bed_log_text(b, n, 2), "");
}

/* Runs one that fits, to its end; and what it makes the keeper do ahead is done. */
static void run_first(const char *cell)
{
	int n = start_late(cell);

	supply(n);
	bed_wait_running(b, n);
	CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
	check_ends(n, cell);
	BED_UNTIL(b, waiting_pid() > 0);
	CHECK(waiting_pid() > 0);
}

static void remove_cell(const char *cell)
{
	char group[80];

	(void)str_printf(group, sizeof(group), "cell.%s", cell);
	keeper_remove_cell(b->keeper, cell, NULL, NULL);
	BED_UNTIL(b, !bed_has_cgroup(b, group));
	CHECK(!bed_has_cgroup(b, group));
}

static void is_the_next_container(void)
{
	char group[BED_GROUP_SIZE];
	struct waiting w;
	int n, pid;

	bed_open(b);
	run_first("first");
	for (int i = 0; i < 3; i++) {
		const char *cell = (const char *[]){ "one", "two", "three" }[i];

		pid = waiting_pid();
		n = start_late(cell);
		CHECK_INT(waiting_groups(&w), 0);
		CHECK_INT(b->last[n].state, CONTAINER_STARTING);
		bed_group(b, cell, "main", group);
		CHECK(strstr(group, CGROUP_NUMBERED) != NULL);
		CHECK_INT(bed_procs(b, group), 1);
		supply(n);
		bed_wait_running(b, n);
		CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
		CHECK_INT((int)b->last[n].pid, pid);
		/* The next one comes while it runs. */
		BED_UNTIL(b, waiting_pid() > 0);
		CHECK(waiting_pid() != pid);
		check_ends(n, cell);
		remove_cell(cell);
	}
	bed_close(b);
}

/* Its environment is the container's, though that was not known before its root was there. */
static void its_user_may_come_with_its_root(void)
{
	char *env[] = { (char[]){ "A=b" }, NULL };
	struct bed_start s = { .cell = "c",
			       .name = "main",
			       .image = "sha256:2",
			       .user = "app",
			       .env = env,
			       .script = "id -u; echo $A $HOME $HOSTNAME; pwd",
			       .cwd = "/tmp",
			       .late = true };
	int n, pid;

	bed_open(b);
	run_first("first");
	pid = waiting_pid();
	n = start(&s);
	CHECK_INT(waiting_pid(), 0);
	supply(n);
	CHECK_INT(bed_wait(b, n)->exit_code, 0);
	CHECK(pid > 0);
	CHECK_STR(bed_log_text(b, n, 1), "1000\nb /home/app c\n/tmp\n");
	bed_close(b);
}

/* A second container of its cell joins it. */
static void its_cell_is_a_cell(void)
{
	struct bed_start s = { .cell = "c",
			       .name = "second",
			       .script = "hostname; cat /dev/shm/x" };
	struct bed_start first = { .cell = "c",
				   .name = "main",
				   .image = IMAGE,
				   .user = "app",
				   .script = "echo shared >/dev/shm/x; sleep 1000",
				   .late = true };
	int n, other;

	bed_open(b);
	run_first("first");
	n = start(&first);
	CHECK_INT(waiting_pid(), 0);
	supply(n);
	bed_wait_running(b, n);
	do {
		other = start(&s);
		(void)bed_wait(b, other);
		CHECK_INT(keeper_remove(b->keeper, bed_id(other), NULL), 0);
	} while (b->last[other].exit_code != 0 && b->n_ids < 1000);
	CHECK_STR(bed_log_text(b, other, 1), "c\nshared\n");
	CHECK(bed_has_cgroup(b, "cell.c/main"));
	remove_cell("c");
	CHECK(b->removed[n]);
	bed_close(b);
}

/* What is unusual is made when it is asked for, and what waits goes on waiting. */
static void only_a_plain_one_fits(void)
{
	static const struct bed_start unusual[] = {
		{ .cell = "a", .tty = true, .late = true },
		{ .cell = "b", .host_network = true, .late = true },
		{ .cell = "d", .shares = true, .late = true },
		{ .cell = "e" },
	};
	int pid;

	bed_open(b);
	run_first("first");
	pid = waiting_pid();
	for (size_t i = 0; i < ARRAY_SIZE(unusual); i++) {
		struct bed_start s = unusual[i];
		int n;

		s.image = IMAGE;
		s.user = "app";
		n = start(&s);
		CHECK_INT(waiting_pid(), pid);
		if (s.late)
			supply(n);
		CHECK_INT(bed_wait(b, n)->exit_code, 0);
		CHECK_INT(waiting_pid(), pid);
	}
	bed_close(b);
}

static void specs_that_fit(void)
{
	static char big[ISOLATE_REST_BYTES_MAX];
	char *limits[] = { (char[]){ "pids.max=3" }, NULL }, *argv[] = { (char[]){ "x" }, NULL };
	char *long_argv[] = { big, NULL };
	struct container_mount mount = { .target = "/x" };
	struct container_disk disk = { .serial = "x", .fs = CONTAINER_DISK_FS };
	struct cell_spec cell = { .name = "c" }, other;
	struct container_spec spec = {
		.argv = argv,
		.cwd = "/",
		.late = true,
		.security = { .has_caps = true, .caps = cap_baseline, .may_gain = true }
	};
	struct container_spec s;

	memset(big, 'x', sizeof(big) - 1);
	CHECK(spare_container_fits(&cell, &spec));
#define NOT_WITH(member, value) (s = spec, s.member = value, spare_container_fits(&cell, &s))
#define NOT_IN(member, value)                                                                      \
	(other = cell, other.member = value, spare_container_fits(&other, &spec))
	CHECK(!NOT_WITH(late, false));
	CHECK(!NOT_WITH(kind, CONTAINER_PROCESS));
	CHECK(!NOT_WITH(tty, true));
	CHECK(!NOT_WITH(security.has_caps, false));
	CHECK(!NOT_WITH(security.caps, 0));
	CHECK(!NOT_WITH(security.unfiltered, true));
	CHECK(!NOT_WITH(root_disk, &disk));
	CHECK(!NOT_WITH(limits, limits));
	CHECK(!NOT_WITH(argv, long_argv));
	s = spec;
	s.mounts = &mount;
	s.n_mounts = 1;
	CHECK(!spare_container_fits(&cell, &s));
	CHECK(!NOT_IN(limits, limits));
	CHECK(!NOT_IN(host_network, true));
	CHECK(!NOT_IN(shares_instance, true));
}

static void ends_when_it_is_killed(void)
{
	struct waiting w;
	int n;

	bed_open(b);
	run_first("first");
	/* The keeper hears of it: and takes its group away. */
	CHECK_INT(kill(waiting_pid(), SIGKILL), 0);
	BED_UNTIL(b, waiting_groups(&w) == 0);
	CHECK_INT(waiting_groups(&w), 0);
	run_first("second");
	/* It has not heard of it yet. */
	CHECK_INT(kill(waiting_pid(), SIGKILL), 0);
	(void)waiting_groups(&w);
	for (time_t since = unit_now(); bed_procs(b, w.group) > 0 && unit_waits(since);)
		(void)usleep(500);
	n = start_late("third");
	supply(n);
	bed_wait_running(b, n);
	CHECK_INT(b->last[n].state, CONTAINER_RUNNING);
	check_ends(n, "third");
	bed_close(b);
}

static void is_not_handed_over(void)
{
	struct waiting w;
	int fds;

	bed_open(b);
	run_first("first");
	remove_cell("first");
	keeper_hold(b->keeper, true);
	CHECK(keeper_busy(b->keeper) != NULL);
	BED_UNTIL(b, !keeper_busy(b->keeper));
	CHECK_STR(keeper_busy(b->keeper) ?: "", "");
	CHECK_INT(waiting_groups(&w), 0);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	fds = bed_count_fds();
	/* None is made meanwhile. */
	(void)bed_wait(b, start(&(struct bed_start){ .cell = "x" }));
	remove_cell("x");
	CHECK_INT(waiting_groups(&w), 0);
	CHECK_INT(bed_count_fds(), fds);
	keeper_hold(b->keeper, false);
	run_first("second");
	bed_close(b);
}

static void on_shut_down(void *userdata)
{
	*(bool *)userdata = true;
}

static void ends_with_its_keeper(void)
{
	bool done = false;
	struct waiting w;

	bed_open(b);
	run_first("first");
	keeper_shutdown(b->keeper, on_shut_down, &done);
	BED_UNTIL(b, done);
	CHECK(done);
	CHECK_INT(waiting_groups(&w), 0);
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	bed_close(b);
	/* And without any order: bed_close() waits for all children. */
	bed_open(b);
	run_first("first");
	bed_close(b);
}

/* How many descriptors a process has that its spawner's loop, groups and files are. */
static int foreign_fds(int pid)
{
	static const char *const kinds[] = { "eventpoll", "eventfd", "timerfd",  "bpf",
					     "cgroup",    "/mnt",    "oom_score" };
	char path[64], link[256];
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t len;

		(void)str_printf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		len = readlink(path, link, sizeof(link) - 1);
		link[len < 0 ? 0 : len] = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			n += strstr(link, kinds[i]) != NULL;
	}
	return n;
}

/* It closes what it was born with before it is in the sight of anybody. */
static void has_nothing_of_its_keeper(void)
{
	int pid;

	bed_open(b);
	run_first("first");
	pid = waiting_pid();
	CHECK(foreign_fds(getpid()) > 0);
	BED_UNTIL(b, foreign_fds(pid) == 0);
	CHECK_INT(foreign_fds(pid), 0);
	CHECK_INT(waiting_pid(), pid);
	bed_close(b);
}

static void can_be_taken_back(void)
{
	struct error why = ERROR_INIT;
	int n;

	bed_open(b);
	run_first("first");
	(void)error_refuse(&why, ERROR_CANCELLED, "it was taken back");
	n = start_late("a");
	CHECK_INT(waiting_pid(), 0);
	keeper_withdraw(b->keeper, bed_id(n), &why);
	supply(n);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK_STR(b->last[n].reason, "it was taken back");
	CHECK(!bed_has_cgroup(b, "cell.a/main"));
	remove_cell("a");

	run_first("b");
	n = start_late("c");
	CHECK_INT(keeper_signal(b->keeper, bed_id(n), SIGKILL, false, NULL), 0);
	CHECK_INT(bed_wait(b, n)->exit_code, 137);
	CHECK_STR(b->last[n].reason, "killed before its program ran");
	container_fds_close(&b->late);
	remove_cell("c");

	/* Its root cannot be one, and its program is not there. */
	run_first("d");
	n = start_late("e");
	(void)fd_close(b->late.rootfs);
	b->late.rootfs = fd_copy(b->proc_fd);
	supply(n);
	CHECK_INT(bed_wait(b, n)->state, CONTAINER_FAILED);
	CHECK(strstr(b->last[n].reason, "root file system") != NULL);
	run_first("f");
	n = start(&(struct bed_start){ .cell = "g",
				       .image = IMAGE,
				       .user = "app",
				       .argv = (char *[]){ (char[]){ "/bin/none" }, NULL },
				       .late = true });
	CHECK_INT(waiting_pid(), 0);
	supply(n);
	CHECK_INT(bed_wait(b, n)->exit_code, 127);
	CHECK_STR(b->last[n].reason, "execute the program: /bin/none: No such file or directory");
	bed_close(b);
}

BED_MAIN({ "is the next container", is_the_next_container },
	 { "its user may come with its root", its_user_may_come_with_its_root },
	 { "its cell is a cell", its_cell_is_a_cell },
	 { "only a plain one fits", only_a_plain_one_fits }, { "specs that fit", specs_that_fit },
	 { "ends when it is killed", ends_when_it_is_killed },
	 { "is not handed over", is_not_handed_over },
	 { "ends with its keeper", ends_with_its_keeper },
	 { "has nothing of its keeper", has_nothing_of_its_keeper },
	 { "can be taken back", can_be_taken_back })
