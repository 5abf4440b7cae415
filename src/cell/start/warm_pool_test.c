/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/warm_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "loop/wait_test.h"
#include "unit.h"

static bool can;
static int place_fd = -1, proc_fd = -1;
static struct loop *loop;
static struct warm_pool warm_pool;

#define NEED_RIGHTS()                                                                              \
	do {                                                                                       \
		if (!can)                                                                          \
			SKIP("needs root");                                                        \
	} while (0)

static void prepares(void)
{
	_cleanup_fd_ int fd = -1;

	can = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	NEED_RIGHTS();
	fd = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);
	CHECK(sysio_fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0);
	place_fd = sysio_fsmount(fd, FSMOUNT_CLOEXEC, 0);
	CHECK(sysio_move_mount(place_fd, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) == 0);
	proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(place_fd >= 0 && proc_fd >= 0);
}

static void begin(int at_fd)
{
	CHECK_INT(loop_new(&loop), 0);
	warm_pool_init(&warm_pool, loop, at_fd, -1);
}

static void end(void)
{
	warm_pool_done(&warm_pool);
	loop_freep(&loop);
}

static void until(enum warm_pool_state state)
{
	LOOP_WAIT(loop, warm_pool.state == state);
}

static void none_unless_wanted(void)
{
	struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;

	NEED_RIGHTS();
	begin(proc_fd);
	CHECK_INT(warm_pool.state, WARM_POOL_NONE);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), -ENOENT);
	loop_turn(loop, false);
	CHECK_INT(warm_pool.state, WARM_POOL_NONE);
	end();
}

static void wanted_made_and_taken(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;

	NEED_RIGHTS();
	begin(proc_fd);
	warm_pool_want(&warm_pool);
	CHECK_INT(warm_pool.state, WARM_POOL_WANTED);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), -ENOENT);
	until(WARM_POOL_READY);
	warm_pool_want(&warm_pool);
	CHECK_INT(warm_pool.state, WARM_POOL_READY);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), 0);
	CHECK(prepared.prepared_ns_fd >= 0 && warm_pool.prepared.prepared_ns_fd < 0);
	CHECK_INT(warm_pool.state, WARM_POOL_NONE);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), -ENOENT);
	end();
	CHECK(fcntl(prepared.prepared_ns_fd, F_GETFD) == FD_CLOEXEC);
}

static void held(void)
{
	struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	int fd;

	NEED_RIGHTS();
	begin(proc_fd);
	warm_pool_want(&warm_pool);
	warm_pool_hold(&warm_pool, true);
	CHECK_INT(warm_pool.state, WARM_POOL_HELD);
	warm_pool_want(&warm_pool);
	CHECK_INT(warm_pool.state, WARM_POOL_HELD);
	warm_pool_hold(&warm_pool, false);
	CHECK_INT(warm_pool.state, WARM_POOL_NONE);
	warm_pool_want(&warm_pool);
	warm_pool_hold(&warm_pool, false);
	until(WARM_POOL_READY);
	warm_pool_hold(&warm_pool, false);
	CHECK_INT(warm_pool.state, WARM_POOL_READY);
	fd = warm_pool.prepared.prepared_ns_fd;
	warm_pool_hold(&warm_pool, true);
	CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), -ENOENT);
	end();
}

static struct loop_timer waiting;
static unsigned n_fired;

static void on_waiting(struct loop_timer *t)
{
	n_fired++;
}

/* One waits for what is being made, and is told when it is there, or that it will not come. */
static void awaited(void)
{
	struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	struct loop_timer other;

	NEED_RIGHTS();
	begin(proc_fd);
	loop_timer_init(&waiting, loop, on_waiting);
	loop_timer_init(&other, loop, on_waiting);
	CHECK(!warm_pool_await(&warm_pool, &waiting));
	warm_pool_want(&warm_pool);
	CHECK(warm_pool_await(&warm_pool, &waiting));
	CHECK(!warm_pool_await(&warm_pool, &other));
	/* The thread says so, and not the time that has passed. */
	loop_timer_stop(&waiting);
	LOOP_WAIT(loop, n_fired == 1);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), 0);
	isolate_prepared_done(&prepared);

	warm_pool_want(&warm_pool);
	CHECK(warm_pool_await(&warm_pool, &waiting));
	warm_pool_leave(&warm_pool, &other);
	CHECK(!warm_pool_await(&warm_pool, &other));
	warm_pool_leave(&warm_pool, &waiting);
	CHECK(warm_pool_await(&warm_pool, &other));
	/* It is the warm pool that sets them, and not their patience that ends. */
	loop_timer_stop(&waiting);
	loop_timer_stop(&other);
	warm_pool_hold(&warm_pool, true);
	CHECK(!warm_pool.pool && warm_pool.prepared.prepared_ns_fd < 0 &&
	      warm_pool.made.prepared_ns_fd < 0);
	LOOP_WAIT(loop, n_fired == 2);
	loop_timer_done(&waiting);
	loop_timer_done(&other);
	end();
}

/* Whoever is in the loop meanwhile goes on. */
static void made_aside(void)
{
	char own[64] = "", after[64] = "";

	NEED_RIGHTS();
	begin(proc_fd);
	CHECK(readlink("/proc/thread-self/ns/mnt", own, sizeof(own) - 1) > 0);
	warm_pool_want(&warm_pool);
	while (!warm_pool.work.busy && warm_pool.state == WARM_POOL_WANTED)
		loop_turn(loop, true);
	warm_pool_want(&warm_pool);
	CHECK_INT(warm_pool.state, WARM_POOL_WANTED);
	until(WARM_POOL_READY);
	CHECK(readlink("/proc/thread-self/ns/mnt", after, sizeof(after) - 1) > 0);
	CHECK_STR(after, own);
	/* Another thread makes the next one. */
	warm_pool_hold(&warm_pool, true);
	warm_pool_hold(&warm_pool, false);
	warm_pool_want(&warm_pool);
	until(WARM_POOL_READY);
	end();
}

static unsigned n_offered;
static bool takes;

static void on_ready(void *userdata)
{
	struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;

	n_offered++;
	if (!takes)
		return;
	takes = false;
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), 0);
	isolate_prepared_done(&prepared);
	warm_pool_want_now(&warm_pool);
	CHECK(warm_pool.state == WARM_POOL_WANTED && warm_pool.work.busy);
}

/* When it is made, and again behind each want; one that is taken then is made again at once. */
static void offered(void)
{
	NEED_RIGHTS();
	begin(proc_fd);
	warm_pool.on_ready = on_ready;
	warm_pool_want(&warm_pool);
	LOOP_WAIT(loop, n_offered == 1);
	CHECK_INT(warm_pool.state, WARM_POOL_READY);
	warm_pool_want(&warm_pool);
	CHECK_INT(n_offered, 1);
	LOOP_WAIT(loop, n_offered == 2);
	CHECK_INT(warm_pool.state, WARM_POOL_READY);
	takes = true;
	warm_pool_want(&warm_pool);
	LOOP_WAIT(loop, n_offered == 4);
	CHECK_INT(warm_pool.state, WARM_POOL_READY);
	end();
}

static void turns_for(nsec_t time)
{
	nsec_t end = clock_mono() + time;

	while (clock_mono() < end)
		loop_turn(loop, false);
}

/* While a start is under way nobody gets one who would make more of it, and whoever makes one waits
 * between its steps; both go on behind the start. */
static void lets_starts_go_first(void)
{
	struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;
	nsec_t since;

	NEED_RIGHTS();
	begin(proc_fd);
	warm_pool.on_ready = on_ready;
	n_offered = 0;
	warm_pool_start_begins(&warm_pool);
	warm_pool_start_begins(&warm_pool);
	warm_pool_want(&warm_pool);
	until(WARM_POOL_READY);
	turns_for(WARM_POOL_PAUSE * 3);
	CHECK_INT(n_offered, 0);
	warm_pool_start_ends(&warm_pool);
	turns_for(WARM_POOL_PAUSE * 3);
	CHECK_INT(n_offered, 0);
	warm_pool_start_ends(&warm_pool);
	LOOP_WAIT(loop, n_offered == 1);

	warm_pool_start_begins(&warm_pool);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), 0);
	isolate_prepared_done(&prepared);
	since = clock_mono();
	warm_pool_want_now(&warm_pool);
	until(WARM_POOL_READY);
	CHECK(clock_mono() - since >= HURRY_MAX);
	warm_pool_start_ends(&warm_pool);
	LOOP_WAIT(loop, n_offered == 2);
	end();
}

/* For a pod: at once, with the /dev/shm that is there, and for as long as nobody comes. */
static void of_a_pod(void)
{
	_cleanup_(isolate_prepared_done) struct isolate_prepared prepared = ISOLATE_PREPARED_NONE;

	NEED_RIGHTS();
	CHECK_INT(loop_new(&loop), 0);
	warm_pool_init(&warm_pool, loop, proc_fd, place_fd);
	warm_pool_want(&warm_pool);
	until(WARM_POOL_READY);
	CHECK_INT(warm_pool_take(&warm_pool, &prepared), 0);
	CHECK(prepared.prepared_ns_fd >= 0);
	CHECK(prepared.shm_fd < 0 && prepared.ns_fd[ISOLATE_NS_NET] < 0);
	CHECK_INT(warm_pool.state, WARM_POOL_NONE);
	end();
}

/* What cannot be made is not tried again before it is wanted again. */
static void cannot_be_made(void)
{
	NEED_RIGHTS();
	begin(place_fd);
	warm_pool_want(&warm_pool);
	until(WARM_POOL_NONE);
	CHECK(warm_pool.prepared.prepared_ns_fd < 0);
	warm_pool_want(&warm_pool);
	CHECK_INT(warm_pool.state, WARM_POOL_WANTED);
	end();
}

UNIT_MAIN({ "prepares", prepares, true }, { "none unless it is wanted", none_unless_wanted },
	  { "wanted, made and taken", wanted_made_and_taken }, { "held", held },
	  { "awaited", awaited }, { "made aside", made_aside }, { "offered", offered },
	  { "lets starts go first", lets_starts_go_first }, { "of a pod", of_a_pod },
	  { "cannot be made", cannot_be_made })
