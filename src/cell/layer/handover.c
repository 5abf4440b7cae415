/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/layer/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"

/* Records within records. */
enum {
	CELL_TAG_CONTAINER = HANDOVER_NESTED,
	CONTAINER_TAG_USER = HANDOVER_NESTED,
	CONTAINER_TAG_RING,
};

/* Past this the last output of containers stays behind: a replay then tells how much is gone. */
#define HANDOVER_RINGS_MAX (HANDOVER_MAX / 2)

struct kept_output {
	struct buf pieces;
};

/* ---- what is handed over, and what is not ---- */

static const struct handover_field user_fields[] = {
	HANDOVER(1, HANDOVER_UINT, struct isolate_user, uid),
	HANDOVER(2, HANDOVER_UINT, struct isolate_user, gid),
	HANDOVER(3, HANDOVER_BYTES, struct isolate_user, groups),
	HANDOVER(4, HANDOVER_UINT, struct isolate_user, n_groups, .max = ISOLATE_GROUPS_MAX),
	HANDOVER(5, HANDOVER_TEXT, struct isolate_user, home),
};

static const struct handover_field output_fields[] = {
	HANDOVER(1, HANDOVER_BUF, struct kept_output, pieces),
};

static const struct handover_field container_fields[] = {
	HANDOVER(1, HANDOVER_TEXT, struct container, id),
	HANDOVER(2, HANDOVER_TEXT, struct container, name),
	HANDOVER(3, HANDOVER_UINT, struct container, kind, .max = CONTAINER_KIND_MAX),
	HANDOVER(4, HANDOVER_UINT, struct container, status.state,
		 .max = CONTAINER_STATE_COUNT - 1),
	HANDOVER(5, HANDOVER_INT, struct container, status.pid),
	HANDOVER(6, HANDOVER_INT, struct container, status.exit_code),
	HANDOVER(7, HANDOVER_INT, struct container, status.signal),
	HANDOVER(8, HANDOVER_UINT, struct container, status.started_at),
	HANDOVER(9, HANDOVER_UINT, struct container, status.finished_at),
	HANDOVER(10, HANDOVER_TEXT, struct container, status.reason),
	HANDOVER_BOOL(11, struct container, killed),
	HANDOVER_BOOL(12, struct container, failed),
	HANDOVER_BOOL(13, struct container, ended),
	HANDOVER_BOOL(14, struct container, noted),
	HANDOVER(15, HANDOVER_STRV, struct container, env),
	HANDOVER(16, HANDOVER_STR, struct container, cwd),
	HANDOVER_BOOL(17, struct container, home_added),
	HANDOVER(18, HANDOVER_FD, struct container, cgroup_fd),
	HANDOVER(19, HANDOVER_INT, struct container, child.pid),
	HANDOVER(20, HANDOVER_FD, struct container, child.pidfd),
	HANDOVER(21, HANDOVER_INT, struct container, n_retries),
	HANDOVER(30, HANDOVER_FD, struct container, pump.streams[0].fd),
	HANDOVER(31, HANDOVER_UINT, struct container, pump.streams[0].left),
	HANDOVER(32, HANDOVER_FD, struct container, pump.streams[1].fd),
	HANDOVER(33, HANDOVER_UINT, struct container, pump.streams[1].left),
	HANDOVER(34, HANDOVER_FD, struct container, pump.log.fd),
	HANDOVER(35, HANDOVER_BUF, struct container, pump.waiting),
	HANDOVER(36, HANDOVER_BUF, struct container, pump.writing),
	HANDOVER(37, HANDOVER_INT, struct container, pump.trouble),
	HANDOVER_BOOL(38, struct container, pump.last),
	HANDOVER_BOOL(39, struct container, pump.giving_up),
	HANDOVER(40, HANDOVER_UINT, struct container, pump.lost),
	HANDOVER(41, HANDOVER_FD, struct container, pump.log.dir_fd),
	HANDOVER(42, HANDOVER_TEXT, struct container, pump.log.name),
	HANDOVER(43, HANDOVER_UINT, struct container, pump.log.max_bytes),
	HANDOVER(44, HANDOVER_UINT, struct container, pump.log.max_files, .max = LOG_FILES_MAX),
	HANDOVER(45, HANDOVER_UINT, struct container, pump.log.size),
	HANDOVER(46, HANDOVER_UINT, struct container, pump.log.number),
	HANDOVER_BOOL(47, struct container, pump.log.torn),
	HANDOVER_BOOL(48, struct container, pump.policy.drop),
	HANDOVER(49, HANDOVER_UINT, struct container, pump.policy.block_for),
	HANDOVER(50, HANDOVER_UINT, struct container, pump.n_read),
	HANDOVER(51, HANDOVER_UINT, struct container, pump.writing_end),
	HANDOVER_BOOL(52, struct container, pump.dropping),
	HANDOVER(53, HANDOVER_UINT, struct container, pump.block_until),
	HANDOVER(54, HANDOVER_UINT, struct container, pump.unmarked),
	HANDOVER(55, HANDOVER_UINT, struct container, pump.marked),
	HANDOVER(56, HANDOVER_UINT, struct container, status.log_lost),
	HANDOVER(57, HANDOVER_UINT, struct container, pump.torn),
	HANDOVER_BOOL(58, struct container, pump.keeps),
	HANDOVER(59, HANDOVER_UINT, struct container, pump.kept_at),
	HANDOVER(60, HANDOVER_FD, struct container, input.fd),
	HANDOVER(61, HANDOVER_BUF, struct container, input.data),
	HANDOVER_BOOL(62, struct container, input.closing),
	HANDOVER_BOOL(63, struct container, input.is_tty),
	HANDOVER_BOOL(64, struct container, input.inside_line),
	HANDOVER_BOOL(70, struct container, stdin_open),
	HANDOVER_BOOL(71, struct container, tty),
	HANDOVER(72, HANDOVER_FD, struct container, terminal.pty.master_fd),
	HANDOVER(73, HANDOVER_FD, struct container, terminal.pty.slave_fd),
	HANDOVER_BOOL(74, struct container, pump.streams[0].is_tty),
	HANDOVER_BOOL(75, struct container, attach.ended),
	HANDOVER_BOOL(76, struct container, attach.abandoned),
	HANDOVER(77, HANDOVER_UINT, struct container, attach.ring.added),
	HANDOVER_BOOL(80, struct container, security.has_caps),
	HANDOVER(81, HANDOVER_UINT, struct container, security.caps),
	HANDOVER_BOOL(82, struct container, security.may_gain),
	HANDOVER_BOOL(83, struct container, security.unfiltered),
	HANDOVER(84, HANDOVER_INT, struct container, security.oom_score_adj),
	HANDOVER_BOOL(87, struct container, security.own_filter),
	HANDOVER(88, HANDOVER_BUF, struct container, filter),
	HANDOVER(89, HANDOVER_UINT, struct container, filter_flags),
	HANDOVER(85, HANDOVER_BYTES, struct container, security.rlimits),
	HANDOVER(86, HANDOVER_UINT, struct container, security.n_rlimits,
		 .max = ISOLATE_RLIMITS_MAX),
};
HANDOVER_LEFT(struct container, link, "of its cell");
HANDOVER_LEFT(struct container, dir, "found by its name");
HANDOVER_LEFT(struct container, status.cell_group, "said by whoever tells it, of the directory");
HANDOVER_LEFT(struct container, status.group, "said by whoever tells it, of the directory");
HANDOVER_LEFT(struct container, cell, "the record stands in that of its cell");
HANDOVER_LEFT(struct container, host, "the keeper's");
HANDOVER_LEFT(struct container, start, "gone once it is spawned");
HANDOVER_LEFT(struct container, pump.next_log, "a log that is being written is not handed over");
HANDOVER_LEFT(struct container, pump.changed, "likewise");
HANDOVER_LEFT(struct container, pump.changed_data, "likewise");
HANDOVER_LEFT(struct container, early_signals, "sent once it runs");
HANDOVER_LEFT(struct container, maker, "over once it runs");
HANDOVER_LEFT(struct container, hurries, "over once it runs");
HANDOVER_LEFT(struct container, user, "a record of its own");
HANDOVER_LEFT(struct container, security.groups, "those of the user");
HANDOVER_LEFT(struct container, security.n_groups, "likewise");
HANDOVER_LEFT(struct container, security.groups_exact, "likewise");
HANDOVER_LEFT(struct container, filter_prog, "made of the filter for each plan");
HANDOVER_LEFT(struct container, security.own_masks, "of its start");
HANDOVER_LEFT(struct container, security.writable_sys, "of its start");
HANDOVER_LEFT(struct container, security.writable_groups, "of its start");
HANDOVER_LEFT(struct container, security.all_devices, "its group has them");
HANDOVER_LEFT(struct container, security.pids, "of its start");
HANDOVER_LEFT(struct container, security.pids_of, "of its start");
HANDOVER_LEFT(struct container, ns_fd, "the next exec opens them again");
HANDOVER_LEFT(struct container, null_fd, "the next exec opens it again");
HANDOVER_LEFT(struct container, child.report_fd, "closed once it runs");
HANDOVER_LEFT(struct container, child.give_fd, "closed once it runs");
HANDOVER_LEFT(struct container, stdio, "of its start");
HANDOVER_LEFT(struct container, report, "closed once it runs");
HANDOVER_LEFT(struct container, watch, "container_resume()");
HANDOVER_LEFT(struct container, retry, "container_resume()");
HANDOVER_LEFT(struct container, retry_delay, "begins anew");
HANDOVER_LEFT(struct container, execs, "there are none");
HANDOVER_LEFT(struct container, n_execs, "there are none");
HANDOVER_LEFT(struct container, record, "the keeper's; whoever asked for the start was told");
HANDOVER_LEFT(struct container, pump.threads, "the keeper's");
HANDOVER_LEFT(struct container, pump.fn, "of this program");
HANDOVER_LEFT(struct container, pump.work, "no thread writes");
HANDOVER_LEFT(struct container, pump.n_written, "no thread writes");
HANDOVER_LEFT(struct container, pump.write_error, "no thread writes");
HANDOVER_LEFT(struct container, pump.has_log, "pump_resume()");
HANDOVER_LEFT(struct container, pump.retry, "pump_resume()");
HANDOVER_LEFT(struct container, pump.notify, "pump_resume()");
HANDOVER_LEFT(struct container, pump.delay, "begins anew");
HANDOVER_LEFT(struct container, pump.resting, "the next program tries at once");
HANDOVER_LEFT(struct container, pump.policy.max_bytes, "pump.log has it");
HANDOVER_LEFT(struct container, pump.policy.max_files, "pump.log has it");
HANDOVER_LEFT(struct container, pump.log.moving, "a change of names begins anew");
HANDOVER_LEFT(struct container, pump.log.hole, "a change of names begins anew");
HANDOVER_LEFT(struct container, pump.streams[0].source, "pump_resume()");
HANDOVER_LEFT(struct container, pump.streams[0].pump, "of this program");
HANDOVER_LEFT(struct container, pump.streams[0].chunk, "pump_busy() while there is one");
HANDOVER_LEFT(struct container, pump.streams[0].chunk_len, "of the chunk");
HANDOVER_LEFT(struct container, pump.streams[0].chunk_time, "of the chunk");
HANDOVER_LEFT(struct container, input.loop, "of this program");
HANDOVER_LEFT(struct container, input.source, "input_resume()");
HANDOVER_LEFT(struct container, input.done, "nobody waits, or the keeper were busy");
HANDOVER_LEFT(struct container, input.userdata, "of `done`");
HANDOVER_LEFT(struct container, input.waiters, "each is attached, and the keeper were busy");
HANDOVER_LEFT(struct container, pump.is_read, "nobody reads, or the keeper were busy");
HANDOVER_LEFT(struct container, pump.grown, "kept_init()");
HANDOVER_LEFT(struct container, pump.grown_data, "kept_init()");
HANDOVER_LEFT(struct container, kept, "nobody reads, or the keeper were busy");
HANDOVER_LEFT(struct container, pump.held, "nobody is attached");
HANDOVER_LEFT(struct container, pump.tee, "attach_point_init()");
HANDOVER_LEFT(struct container, pump.tee_userdata, "attach_point_init()");
HANDOVER_LEFT(struct container, terminal.pty.mount_fd, "closed once it is spawned");
HANDOVER_LEFT(struct container, attach.loop, "of this program");
HANDOVER_LEFT(struct container, attach.pump, "of this program");
HANDOVER_LEFT(struct container, attach.attached, "nobody is, or the keeper were busy");
HANDOVER_LEFT(struct container, attach.n_attached, "nobody is, or the keeper were busy");
HANDOVER_LEFT(struct container, attach.timer, "nobody is awaited, or the keeper were busy");
HANDOVER_LEFT(struct container, attach.awaited, "nobody is awaited, or the keeper were busy");
HANDOVER_LEFT(struct container, attach.settled, "container_resume()");
HANDOVER_LEFT(struct container, attach.over, "container_resume()");
HANDOVER_LEFT(struct container, attach.on_settled, "attach_point_init()");
HANDOVER_LEFT(struct container, attach.ring.base, "a record of its own");
HANDOVER_LEFT(struct container, attach.ring.size, "ring_load()");
HANDOVER_LEFT(struct container, attach.ring.head, "places begin anew");
HANDOVER_LEFT(struct container, attach.ring.tail, "places begin anew");
HANDOVER_LEFT(struct container, attach.ring.dropped, "container_resume()");

static const struct handover_field cell_fields[] = {
	HANDOVER(1, HANDOVER_TEXT, struct cell, name),
	HANDOVER_BOOL(2, struct cell, shares_instance),
	HANDOVER_BOOL(3, struct cell, host_network),
	HANDOVER(4, HANDOVER_UINT, struct cell, state, .max = CELL_STATE_COUNT - 1),
	HANDOVER(5, HANDOVER_FD, struct cell, cgroup_fd),
	HANDOVER(6, HANDOVER_FD, struct cell, ns_fd[ISOLATE_NS_NET]),
	HANDOVER(7, HANDOVER_FD, struct cell, ns_fd[ISOLATE_NS_IPC]),
	HANDOVER(8, HANDOVER_FD, struct cell, ns_fd[ISOLATE_NS_UTS]),
	HANDOVER(9, HANDOVER_FD, struct cell, shm_fd),
	HANDOVER_BOOL(10, struct cell, shm_mounted),
	/* Where it is not just cell.NAME; a program that knows no other refuses the state. */
	HANDOVER(11, HANDOVER_TEXT, struct cell, dir),
	HANDOVER(12, HANDOVER_UINT, struct cell, ids.uid),
	HANDOVER(13, HANDOVER_UINT, struct cell, ids.gid),
	HANDOVER(14, HANDOVER_UINT, struct cell, ids.count),
	HANDOVER(15, HANDOVER_FD, struct cell, ns_fd[ISOLATE_NS_USER]),
	HANDOVER_BOOL(16, struct cell, unnamed),
	HANDOVER_BOOL(17, struct cell, given_network),
	HANDOVER(18, HANDOVER_TEXT, struct cell, hostname),
};
HANDOVER_LEFT(struct cell, link, "of the keeper");
HANDOVER_LEFT(struct cell, containers, "records of their own");
HANDOVER_LEFT(struct cell, removals, "nobody waits, or the keeper were busy");
HANDOVER_LEFT(struct cell, layer_fd, "the keeper's");
HANDOVER_LEFT(struct cell, shm_parent_fd, "the keeper's");

/* ---- writing ---- */

static int write_ring(struct handover_writer *w, const struct ring *ring)
{
	struct kept_output kept = { .pieces = BUF_INIT };
	size_t at;
	int r;

	if (ring->tail == ring->head || w->data.len > HANDOVER_RINGS_MAX)
		return 0;
	r = ring_save(ring, &kept.pieces);
	if (r == 0)
		r = handover_begin(w, CONTAINER_TAG_RING, &at);
	if (r == 0)
		r = handover_write(w, output_fields, ARRAY_SIZE(output_fields), &kept);
	if (r == 0)
		handover_end(w, at);
	buf_done(&kept.pieces);
	return r;
}

static int write_container(struct handover_writer *w, const struct container *c)
{
	size_t at, user_at;
	int r;

	r = handover_begin(w, CELL_TAG_CONTAINER, &at);
	if (r == 0)
		r = handover_write(w, container_fields, ARRAY_SIZE(container_fields), c);
	if (r == 0 && c->user) {
		r = handover_begin(w, CONTAINER_TAG_USER, &user_at);
		if (r == 0)
			r = handover_write(w, user_fields, ARRAY_SIZE(user_fields), c->user);
		if (r == 0)
			handover_end(w, user_at);
	}
	if (r == 0)
		r = write_ring(w, &c->attach.ring);
	if (r == 0)
		handover_end(w, at);
	return r;
}

int handover_write_cell(struct handover_writer *w, const struct cell *cell)
{
	struct cell shown = *cell;
	struct container *c;
	int r;

	/* Else it is the keeper's. */
	if (!cell->shm_mounted)
		shown.shm_fd = -1;
	if (!strstr(shown.dir, CGROUP_NUMBERED))
		*shown.dir = '\0';
	r = handover_write(w, cell_fields, ARRAY_SIZE(cell_fields), &shown);
	if (r < 0)
		return r;
	list_for_each (c, &cell->containers, struct container, link) {
		r = write_container(w, c);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- reading ---- */

struct reading {
	const struct container_host *host;
	struct cell *cell;
	struct container *container;
};

static int read_ring(struct container *c, struct handover_reader *r, struct error *err)
{
	struct kept_output kept = { .pieces = BUF_INIT };
	int ret;

	ret = handover_read(r, "output", output_fields, ARRAY_SIZE(output_fields), &kept, NULL,
			    NULL, err);
	if (ret == 0) {
		ret = ring_load(&c->attach.ring, &kept.pieces);
		if (ret == -EBADMSG)
			ret = error_refuse(err, ERROR_INVALID,
					   "state: the last output of container \"%s\" is none",
					   c->name);
		else if (ret < 0)
			ret = error_set(err, ret, "state: the last output of container %s",
					c->name);
	}
	buf_done(&kept.pieces);
	return ret;
}

static int read_user(struct container *c, struct handover_reader *r, struct error *err)
{
	c->user = calloc(1, sizeof(*c->user));
	if (!c->user)
		return error_set(err, -ENOMEM, "state: the user of container %s", c->name);
	return handover_read(r, "a user", user_fields, ARRAY_SIZE(user_fields), c->user, NULL, NULL,
			     err);
}

static int read_part(void *userdata, uint32_t tag, struct handover_reader *r, struct error *err)
{
	const struct reading *reading = userdata;
	struct container *c = reading->container;

	if (tag == CONTAINER_TAG_USER && !c->user)
		return read_user(c, r, err);
	if (tag == CONTAINER_TAG_RING && c->attach.ring.tail == 0)
		return read_ring(c, r, err);
	return -ENOENT;
}

/* What the code takes for granted in these states. */
static int check_container(const struct container *c, const struct handover_reader *r,
			   struct error *err)
{
	enum container_state state = c->status.state;
	bool lives = state == CONTAINER_RUNNING;
	bool ok = c->id[0] && c->name[0] && state != CONTAINER_STARTING;

	ok = ok && ring_held(&c->attach.ring) <= c->attach.ring.added;
	if (!container_is_over(c))
		ok = ok && c->user && c->env && c->cwd && c->ended != lives;
	if (lives && !r->trial)
		ok = ok && c->child.pidfd >= 0 && c->child.pid > 0 && c->cgroup_fd >= 0;
	return ok ? 0
		  : error_refuse(err, ERROR_INVALID, "state: container \"%s\" is not whole",
				 c->name);
}

static int read_container(void *userdata, uint32_t tag, struct handover_reader *r,
			  struct error *err)
{
	struct reading *reading = userdata;
	struct container *c;
	int ret;

	if (tag != CELL_TAG_CONTAINER)
		return -ENOENT;
	ret = container_alloc(&c, reading->host, reading->cell);
	if (ret < 0)
		return error_set(err, ret, "state: make a container");
	list_add_tail(&reading->cell->containers, &c->link);
	reading->container = c;
	ret = handover_read(r, "a container", container_fields, ARRAY_SIZE(container_fields), c,
			    read_part, reading, err);
	/* One that has ended has none any more. */
	if (r->trial || cgroup_find_name(reading->cell->cgroup_fd, c->name, c->dir) < 0)
		(void)str_copy(c->dir, sizeof(c->dir), c->name);
	return ret < 0 ? ret : check_container(c, r, err);
}

static int check_cell(const struct cell *cell, const struct handover_reader *r, struct error *err)
{
	bool ok = cell->name[0] && cell_open(cell);

	if (!r->trial)
		ok = ok && cell->cgroup_fd >= 0 && (!cell->shm_mounted || cell->shm_fd >= 0);
	return ok ? 0
		  : error_refuse(err, ERROR_INVALID, "state: cell \"%s\" is not whole", cell->name);
}

int handover_read_cell(struct handover_reader *r, const struct container_host *host, int layer_fd,
		       int shm_parent_fd, int shm_fd, struct cell **ret, struct error *err)
{
	struct reading reading = { .host = host };
	struct cell *cell;
	int n;

	n = cell_alloc(&cell, layer_fd, shm_parent_fd, -1);
	if (n < 0)
		return error_set(err, n, "state: make a cell");
	reading.cell = cell;
	n = handover_read(r, "a cell", cell_fields, ARRAY_SIZE(cell_fields), cell, read_container,
			  &reading, err);
	if (n == 0)
		n = check_cell(cell, r, err);
	if (n < 0) {
		handover_drop_cell(cell);
		return n;
	}
	if (!*cell->hostname)
		(void)str_copy(cell->hostname, sizeof(cell->hostname), cell->name);
	if (!*cell->dir)
		(void)str_printf(cell->dir, sizeof(cell->dir), "cell.%s", cell->name);
	if (cell->shares_instance)
		cell->shm_fd = shm_fd;
	*ret = cell;
	return 0;
}

void handover_drop_cell(struct cell *cell)
{
	struct container *c;

	list_for_each (c, &cell->containers, struct container, link)
		container_free(c);
	if (cell->shm_mounted)
		cell->shm_fd = fd_close(cell->shm_fd);
	cell->shm_mounted = false;
	cell_free(cell);
}
