/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/stock.h"

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
static struct stock stock;

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
	stock_init(&stock, loop, at_fd, -1);
}

static void end(void)
{
	stock_done(&stock);
	loop_freep(&loop);
}

static void until(enum stock_state state)
{
	LOOP_WAIT(loop, stock.state == state);
}

static void none_unless_wanted(void)
{
	struct isolate_kit kit = ISOLATE_KIT_NONE;

	NEED_RIGHTS();
	begin(proc_fd);
	CHECK_INT(stock.state, STOCK_NONE);
	CHECK_INT(stock_take(&stock, &kit), -ENOENT);
	loop_turn(loop, false);
	CHECK_INT(stock.state, STOCK_NONE);
	end();
}

static void wanted_made_and_taken(void)
{
	_cleanup_(isolate_kit_done) struct isolate_kit kit = ISOLATE_KIT_NONE;

	NEED_RIGHTS();
	begin(proc_fd);
	stock_want(&stock);
	CHECK_INT(stock.state, STOCK_WANTED);
	CHECK_INT(stock_take(&stock, &kit), -ENOENT);
	until(STOCK_READY);
	stock_want(&stock);
	CHECK_INT(stock.state, STOCK_READY);
	CHECK_INT(stock_take(&stock, &kit), 0);
	CHECK(kit.kit_ns_fd >= 0 && stock.kit.kit_ns_fd < 0);
	CHECK_INT(stock.state, STOCK_NONE);
	CHECK_INT(stock_take(&stock, &kit), -ENOENT);
	end();
	CHECK(fcntl(kit.kit_ns_fd, F_GETFD) == FD_CLOEXEC);
}

static void held(void)
{
	struct isolate_kit kit = ISOLATE_KIT_NONE;
	int fd;

	NEED_RIGHTS();
	begin(proc_fd);
	stock_want(&stock);
	stock_hold(&stock, true);
	CHECK_INT(stock.state, STOCK_HELD);
	stock_want(&stock);
	CHECK_INT(stock.state, STOCK_HELD);
	stock_hold(&stock, false);
	CHECK_INT(stock.state, STOCK_NONE);
	stock_want(&stock);
	stock_hold(&stock, false);
	until(STOCK_READY);
	stock_hold(&stock, false);
	CHECK_INT(stock.state, STOCK_READY);
	fd = stock.kit.kit_ns_fd;
	stock_hold(&stock, true);
	CHECK(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
	CHECK_INT(stock_take(&stock, &kit), -ENOENT);
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
	struct isolate_kit kit = ISOLATE_KIT_NONE;
	struct loop_timer other;

	NEED_RIGHTS();
	begin(proc_fd);
	loop_timer_init(&waiting, loop, on_waiting);
	loop_timer_init(&other, loop, on_waiting);
	CHECK(!stock_await(&stock, &waiting));
	stock_want(&stock);
	CHECK(stock_await(&stock, &waiting));
	CHECK(!stock_await(&stock, &other));
	/* The thread says so, and not the time that has passed. */
	loop_timer_stop(&waiting);
	LOOP_WAIT(loop, n_fired == 1);
	CHECK_INT(stock_take(&stock, &kit), 0);
	isolate_kit_done(&kit);

	stock_want(&stock);
	CHECK(stock_await(&stock, &waiting));
	stock_leave(&stock, &other);
	CHECK(!stock_await(&stock, &other));
	stock_leave(&stock, &waiting);
	CHECK(stock_await(&stock, &other));
	/* It is the stock that sets them, and not their patience that ends. */
	loop_timer_stop(&waiting);
	loop_timer_stop(&other);
	stock_hold(&stock, true);
	CHECK(!stock.pool && stock.kit.kit_ns_fd < 0 && stock.made.kit_ns_fd < 0);
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
	stock_want(&stock);
	while (!stock.work.busy && stock.state == STOCK_WANTED)
		loop_turn(loop, true);
	stock_want(&stock);
	CHECK_INT(stock.state, STOCK_WANTED);
	until(STOCK_READY);
	CHECK(readlink("/proc/thread-self/ns/mnt", after, sizeof(after) - 1) > 0);
	CHECK_STR(after, own);
	/* Another thread makes the next one. */
	stock_hold(&stock, true);
	stock_hold(&stock, false);
	stock_want(&stock);
	until(STOCK_READY);
	end();
}

static unsigned n_offered;
static bool takes;

static void on_ready(void *userdata)
{
	struct isolate_kit kit = ISOLATE_KIT_NONE;

	n_offered++;
	if (!takes)
		return;
	takes = false;
	CHECK_INT(stock_take(&stock, &kit), 0);
	isolate_kit_done(&kit);
	stock_want_now(&stock);
	CHECK(stock.state == STOCK_WANTED && stock.work.busy);
}

/* When it is made, and again behind each want; one that is taken then is made again at once. */
static void offered(void)
{
	NEED_RIGHTS();
	begin(proc_fd);
	stock.on_ready = on_ready;
	stock_want(&stock);
	LOOP_WAIT(loop, n_offered == 1);
	CHECK_INT(stock.state, STOCK_READY);
	stock_want(&stock);
	CHECK_INT(n_offered, 1);
	LOOP_WAIT(loop, n_offered == 2);
	CHECK_INT(stock.state, STOCK_READY);
	takes = true;
	stock_want(&stock);
	LOOP_WAIT(loop, n_offered == 4);
	CHECK_INT(stock.state, STOCK_READY);
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
	struct isolate_kit kit = ISOLATE_KIT_NONE;
	nsec_t since;

	NEED_RIGHTS();
	begin(proc_fd);
	stock.on_ready = on_ready;
	n_offered = 0;
	stock_start_begins(&stock);
	stock_start_begins(&stock);
	stock_want(&stock);
	until(STOCK_READY);
	turns_for(STOCK_PAUSE * 3);
	CHECK_INT(n_offered, 0);
	stock_start_ends(&stock);
	turns_for(STOCK_PAUSE * 3);
	CHECK_INT(n_offered, 0);
	stock_start_ends(&stock);
	LOOP_WAIT(loop, n_offered == 1);

	stock_start_begins(&stock);
	CHECK_INT(stock_take(&stock, &kit), 0);
	isolate_kit_done(&kit);
	since = clock_mono();
	stock_want_now(&stock);
	until(STOCK_READY);
	CHECK(clock_mono() - since >= HURRY_MAX);
	stock_start_ends(&stock);
	LOOP_WAIT(loop, n_offered == 2);
	end();
}

/* For a pod: at once, with the /dev/shm that is there, and for as long as nobody comes. */
static void of_a_pod(void)
{
	_cleanup_(isolate_kit_done) struct isolate_kit kit = ISOLATE_KIT_NONE;

	NEED_RIGHTS();
	CHECK_INT(loop_new(&loop), 0);
	stock_init(&stock, loop, proc_fd, place_fd);
	stock_want(&stock);
	until(STOCK_READY);
	CHECK_INT(stock_take(&stock, &kit), 0);
	CHECK(kit.kit_ns_fd >= 0);
	CHECK(kit.shm_fd < 0 && kit.ns_fd[ISOLATE_NS_NET] < 0);
	CHECK_INT(stock.state, STOCK_NONE);
	end();
}

/* What cannot be made is not tried again before it is wanted again. */
static void cannot_be_made(void)
{
	NEED_RIGHTS();
	begin(place_fd);
	stock_want(&stock);
	until(STOCK_NONE);
	CHECK(stock.kit.kit_ns_fd < 0);
	stock_want(&stock);
	CHECK_INT(stock.state, STOCK_WANTED);
	end();
}

UNIT_MAIN({ "prepares", prepares, true }, { "none unless it is wanted", none_unless_wanted },
	  { "wanted, made and taken", wanted_made_and_taken }, { "held", held },
	  { "awaited", awaited }, { "made aside", made_aside }, { "offered", offered },
	  { "lets starts go first", lets_starts_go_first }, { "of a pod", of_a_pod },
	  { "cannot be made", cannot_be_made })
