/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/end.h"
#include "instance/model.h"

/*
 * Theory of operation. A third of the patience after it was last heard, the guest is asked for a
 * sign of life: a call to its keeper, so that its kernel, its pid 1's children and both gates have
 * to work. One question at a time. Whoever has not answered when the patience is over is stuck, and
 * is ended with that as the cause.
 *
 * It is no fault of the guest's if nobody could run. Not counted is the time in which this timer
 * itself came late (the host slept, or the daemon was held up), in which its processors stood still
 * because somebody has paused them, or waited for those of the host (the kernel counts that for
 * each thread of the monitor). The files of its disks are looked at by the way. A connection that
 * is made again has a limit of its own.
 */

#define BEATS_PER_PATIENCE 3
/* Later than this is late. */
#define BEAT_LATE (1 * NSEC_PER_SEC)
#define BEAT_THREADS_MAX 256
#define BEAT_SCHEDSTAT_MAX 256

/* How long the threads of the monitor were ready to run and did not, all in all: the greatest part
 * of it that a single processor of the guest can have waited. */
static nsec_t beat_starved(const struct machine *m)
{
	_cleanup_strv_ char **threads = NULL;
	_cleanup_fd_ int dir_fd = -1;
	nsec_t all = 0;
	char name[64];

	if (str_printf(name, sizeof(name), "/proc/%d/task", (int)m->instance->pid) < 0)
		return 0;
	dir_fd = sysio_openat(AT_FDCWD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd < 0 || fd_list_dir(dir_fd, &threads) < 0)
		return 0;
	for (size_t i = 0; threads && threads[i] && i < BEAT_THREADS_MAX; i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT;
		_cleanup_str_ char *text = NULL;
		const char *waited;

		/* "RAN WAITED TIMES", the first two in nanoseconds. */
		if (str_printf(name, sizeof(name), "%s/schedstat", threads[i]) < 0 ||
		    fd_read_file(dir_fd, name, BEAT_SCHEDSTAT_MAX, &b) < 0)
			continue;
		text = buf_take_str(&b);
		waited = text ? strchr(text, ' ') : NULL;
		if (waited)
			all += strtoull(waited, NULL, 10);
	}
	return all;
}

static void beat_heard(struct machine *m, nsec_t now)
{
	m->beat.alive_at = now;
	m->beat.starved = beat_starved(m);
}

static void beat_arm(struct machine *m, nsec_t now)
{
	nsec_t period = m->vms->config.heartbeat / BEATS_PER_PATIENCE;

	m->beat.due = now + period;
	loop_timer_set(&m->beat.timer, period);
}

static void beat_on_answer(void *userdata, const struct error *err)
{
	struct machine *m = userdata;

	m->beat.asked = false;
	/* A refusal is a sign of life as well; what was lost on the way is not. */
	if (m->instance &&
	    (!err || (err->kind != ERROR_DEADLINE && err->kind != ERROR_UNAVAILABLE)))
		beat_heard(m, clock_mono());
}

/* Whether it is the guest's turn at all. */
static bool beat_applies(const struct machine *m)
{
	const struct instance *i = m->instance;

	return i->state == INSTANCE_READY && i->peer && m->vm && !i->broken && !i->mute &&
	       !i->told_end && !i->lost && m->vm->driver->state(m->vm) != VM_PAUSED;
}

static bool beat_is_stuck(struct machine *m, nsec_t now)
{
	nsec_t patience = m->vms->config.heartbeat, starved;

	if (now - m->beat.alive_at < patience)
		return false;
	starved = beat_starved(m);
	starved -= starved > m->beat.starved ? m->beat.starved : starved;
	return now - m->beat.alive_at >= patience + starved;
}

static void beat_on_timer(struct loop_timer *t)
{
	struct machine *m = container_of(t, struct machine, beat.timer);
	nsec_t now = clock_mono(), late = now > m->beat.due ? now - m->beat.due : 0;
	char reason[MACHINE_TEXT_MAX];

	if (!m->instance || m->instance->ended)
		return;
	if (!beat_applies(m))
		beat_heard(m, now);
	else if (late > BEAT_LATE)
		m->beat.alive_at += late;
	else if (beat_is_stuck(m, now)) {
		(void)str_printf(reason, sizeof(reason),
				 "its guest is stuck: it has not answered for %u s (heartbeat)",
				 (unsigned)(m->vms->config.heartbeat / NSEC_PER_SEC));
		instance_break(m->instance, reason);
		return;
	}
	machine_check_disks(m);
	if (beat_applies(m) && !m->beat.asked) {
		m->beat.asked = true;
		m->instance->peer->ops->ping(m->instance->peer, m->vms->config.heartbeat,
					     beat_on_answer, m);
	}
	beat_arm(m, now);
}

void machine_beat_init(struct machine *m)
{
	loop_timer_init(&m->beat.timer, m->vms->config.loop, beat_on_timer);
}

void machine_beat_start(struct machine *m)
{
	nsec_t now = clock_mono();

	m->beat.alive_at = now;
	if (m->vms->config.heartbeat != NSEC_NEVER)
		beat_arm(m, now);
}

void machine_beat_stop(struct machine *m)
{
	loop_timer_stop(&m->beat.timer);
}

void machine_beat_done(struct machine *m)
{
	loop_timer_done(&m->beat.timer);
}
