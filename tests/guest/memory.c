/* SPDX-License-Identifier: Apache-2.0 */

/* What isolate/cgroup/limits.h promises of memory and swap, measured. */

#include <poll.h>

#include "groups.h"

static void out_of_memory(void)
{
	struct isolate_limits l = { .memory_max = LIMIT(16 * MIB),
				    .memory_swap_max = LIMIT(0),
				    .memory_oom_group = LIMIT(1) };
	int fd = limited("oom", &l);
	struct cgroup_watch w = CGROUP_WATCH_INIT;
	struct pollfd p = { .events = POLLIN };
	uint64_t kills = 7;
	pid_t other;

	CHECK_INT(run(fd, touch_4), 0);
	CHECK_INT(cgroup_watch_open(&w, fd, "memory.events", NULL), 0);
	CHECK_INT(cgroup_watch_read(&w, "oom_kill", &kills), 0);
	CHECK_INT(kills, 0);
	other = start(fd, wait_for_end);
	CHECK_INT(run(fd, touch_48), 128 + SIGKILL);
	/* The whole group goes. */
	CHECK_INT(ended(other), 128 + SIGKILL);
	p.fd = w.poll_fd;
	while (kills == 0) {
		CHECK(poll(&p, 1, WAIT_MS) == 1);
		CHECK_INT(cgroup_watch_read(&w, "oom_kill", &kills), 0);
	}
	cgroup_watch_close(&w);
	CHECK(used(fd).oom_kills >= 1);
	CHECK(used(fd).memory_max_hits >= 1);
	CHECK_INT(used(fd).memory_limit, 16 * MIB);
	remove_group(fd, "oom");
}

/* Who counts on the number has it by the time that he learns of the end. */
static void told_before_the_end(void)
{
	struct isolate_limits l = { .memory_max = LIMIT(8 * MIB),
				    .memory_swap_max = LIMIT(0),
				    .memory_oom_group = LIMIT(1) };

	for (int i = 0; i < 10; i++) {
		int fd = limited("told", &l);

		CHECK_INT(run(fd, touch_48), 128 + SIGKILL);
		CHECK(event(fd, "memory.events", "oom_kill") >= 1);
		remove_group(fd, "told");
	}
}

static void swap(void)
{
	struct isolate_limits l = { .memory_max = LIMIT(16 * MIB),
				    .memory_swap_max = LIMIT(LIMIT_MAX) };
	int fd = limited("swap", &l);

	CHECK_INT(run(fd, touch_48), 0);
	CHECK(event(fd, "memory.events", "max") > 0);
	CHECK_INT(event(fd, "memory.events", "oom_kill"), 0);
	l.memory_swap_max = LIMIT(8 * MIB);
	CHECK_INT(limits_apply(fd, &l, NULL), 0);
	CHECK(used(fd).has_swap);
	CHECK_INT(used(fd).swap_limit, 8 * MIB);
	CHECK_INT(run(fd, touch_48), 128 + SIGKILL);
	CHECK(event(fd, "memory.swap.events", "fail") > 0);
	remove_group(fd, "swap");
}

static int touch_and_stay(void)
{
	(void)touch(24, 1);
	return wait_for_end();
}

static void swapped_memory_is_counted(void)
{
	struct isolate_limits l = { .memory_max = LIMIT(8 * MIB) };
	int fd = limited("swapped", &l);

	(void)start(fd, touch_and_stay);
	while (used(fd).swap_current < 12 * MIB)
		breathe();
	CHECK(used(fd).memory_current <= 8 * MIB);
	CHECK(used(fd).memory_anon > 0);
	remove_group(fd, "swapped");
}

static void memory_high(void)
{
	struct isolate_limits l = { .memory_high = LIMIT(16 * MIB) };
	int fd = limited("high", &l);

	CHECK_INT(run(fd, touch_48), 0);
	CHECK(event(fd, "memory.events", "high") > 0);
	CHECK_INT(event(fd, "memory.events", "oom_kill"), 0);
	remove_group(fd, "high");
}

static void lowered_below_use(void)
{
	struct isolate_limits l = { .memory_max = LIMIT(64 * MIB) };
	int fd = limited("lower", &l);
	struct error err = ERROR_INIT;

	(void)start(fd, touch_and_stay);
	while (used(fd).memory_current < 24 * MIB)
		breathe();
	l = (struct isolate_limits){ .memory_max = LIMIT(4 * MIB), .memory_check = true };
	CHECK(limits_apply(fd, &l, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(str_has_prefix(err.text, "memory.max: the group uses "));
	CHECK(holds(fd, "memory.max", "67108864\n"));
	/* Without the question it goes to swap. */
	l.memory_check = false;
	CHECK_INT(limits_apply(fd, &l, NULL), 0);
	CHECK_INT(cgroup_populated(fd), 1);
	CHECK(used(fd).memory_current <= 4 * MIB);
	remove_group(fd, "lower");
}

static int touch_for_ever(void)
{
	return touch(32, 1000000);
}

static void pressure_of_memory(void)
{
	struct isolate_limits memory = { .memory_high = LIMIT(8 * MIB) };
	int fd = limited("thrash", &memory);

	(void)start(fd, touch_for_ever);
	while (details(fd)->memory.there && (details(fd)->memory.some.total_us < 10000 ||
					     details(fd)->memory.full.total_us == 0))
		breathe();
	CHECK(details(fd)->memory.there);
	remove_group(fd, "thrash");
}

UNIT_MAIN({ "moves aside", moves_aside },
	  { "memory.max: out of memory is told, and the whole group ends", out_of_memory },
	  { "out of memory is counted before the end is seen", told_before_the_end },
	  { "memory.swap.max", swap }, { "swapped memory is counted", swapped_memory_is_counted },
	  { "memory.high", memory_high }, { "memory.max lowered below use", lowered_below_use },
	  { "pressure of memory", pressure_of_memory }, { "leaves", leaves })
