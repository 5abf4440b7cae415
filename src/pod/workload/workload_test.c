/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/workload_bed_test.h"

/* ---- the plain course ---- */

static void a_cell_runs_and_ends(void)
{
	struct told started = { .n = 0 }, ended = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_CELL, "web", 1, &started);
	CHECK_INT(started.n, 0);
	fake_turns();
	CHECK_INT(fake_count(node(), FAKE_START), 1);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_RUNNING);
	workload_wait(w, NULL, told_by, &ended);
	tell(w, 0, CONTAINER_DRAINING);
	CHECK_INT(ended.n, 0);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(ended.n, 1);
	CHECK_INT(ended.state, WORKLOAD_EXITED);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK(workloads_find(all, "web") == w);
	remove_well(w);
	CHECK_STR(seen, "web=starting web/one=running web=running web/one=exited web=exited "
			"web=removing web=removed ");
	check_nothing_left();
	finish();
}

static void a_pod_runs_and_is_stopped(void)
{
	struct told stopped = { .n = 0 };
	struct workload *w;

	begin();
	w = running_pod("p");
	CHECK_STR(w->instance->owner, w->id);
	workload_stop(w, NSEC_PER_SEC, told_by, &stopped);
	CHECK_INT(fake_asked(w->instance, FAKE_SIGNAL)->sig, SIGINT);
	CHECK(!fake_asked(w->instance, FAKE_SIGNAL)->all);
	fake_yes(w->instance, FAKE_SIGNAL);
	/* It does not listen. */
	FAKE_UNTIL(fake_asked(w->instance, FAKE_SIGNAL) != NULL);
	CHECK_INT(fake_asked(w->instance, FAKE_SIGNAL)->sig, SIGKILL);
	CHECK(fake_asked(w->instance, FAKE_SIGNAL)->all);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(stopped.n, 1);
	CHECK(fake_asked(w->instance, FAKE_SHUTDOWN) != NULL);
	fake_kill_keeper(1);
	FAKE_UNTIL(instances_find(fake.all, "p") == NULL);
	fake_turns();
	CHECK(w->instance == NULL);
	remove_well(w);
	check_nothing_left();
	finish();
}

static void its_name_is_free_when_its_removal_was_told(void)
{
	struct told removed = { .n = 0 };
	struct workload *w;

	begin();
	w = running_pod("p");
	/* The keeper dies by itself, and the kernel takes its time with the group. */
	fake.n_busy = 3;
	fake_kill_keeper(1);
	FAKE_UNTIL(w->state == WORKLOAD_FAILED);
	CHECK_STR(w->reason, "its keeper was killed by signal 9");
	CHECK_INT(w->containers[0]->status.exit_code, 137);
	CHECK_INT(workload_remove(w, false, told_by, &removed, NULL), 0);
	fake_turns();
	CHECK_INT(removed.n, 0);
	FAKE_UNTIL(removed.n == 1);
	w = run_well(WORKLOAD_POD, "p", 1, NULL);
	CHECK(w && w->state == WORKLOAD_STARTING);
	finish();
}

static void removes_itself(void)
{
	struct told ended = { .n = 0 }, removed = { .n = 0 };
	struct workload *w;

	begin();
	w = running_cell("web");
	w->auto_remove = true;
	workload_wait(w, NULL, told_by, &ended);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(ended.n, 1);
	CHECK(!ended.removed);
	CHECK_INT(w->state, WORKLOAD_REMOVING);
	/* Who comes late waits for the same. */
	CHECK_INT(workload_remove(w, false, told_by, &removed, NULL), 0);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(removed.n, 1);
	check_nothing_left();
	finish();
}

/* ---- what goes wrong ---- */

static void a_container_that_fails_takes_the_others_along(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_CELL, "web", 2, &started);
	fake_turns();
	start_answered(w, 0, CONTAINER_RUNNING);
	start_answered(w, 1, CONTAINER_FAILED);
	CHECK_INT(started.n, 0);
	CHECK_INT(fake_asked(node(), FAKE_SIGNAL)->sig, SIGKILL);
	CHECK_STR(fake_asked(node(), FAKE_SIGNAL)->name, w->containers[0]->id);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(started.reason, "container two: no such program");
	CHECK_INT(workload_exit_code(w), 127);
	finish();
}

/* The keeper says why there is no container. */
static void start_refused(struct workload *w, const char *field)
{
	struct fake_call *c = fake_asked(w->instance, FAKE_START), call;
	struct error err = ERROR_INIT;

	CHECK(c != NULL);
	if (!c)
		return;
	(void)error_field(&err, ERROR_PRECONDITION, field, "not here");
	call = *c;
	fake_call_free(c);
	call.started(call.userdata, NULL, &err);
	fake_turns();
}

static void a_limit_that_is_refused_leaves_nothing(void)
{
	static const struct {
		const char *field, *told;
	} fields[] = { { "cpu.max", "containers[1].cpu.max" },
		       { CELL_LIMITS_FIELD "cpu.max", "cpu.max" } };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct told started = { .n = 0 };
		struct workload *w;

		begin();
		w = run_well(WORKLOAD_CELL, "web", 2, &started);
		fake_turns();
		start_answered(w, 0, CONTAINER_RUNNING);
		start_refused(w, fields[i].field);
		tell(w, 0, CONTAINER_EXITED);
		/* Told when it is gone, and not before. */
		CHECK_INT(started.n, 0);
		fake_yes(node(), FAKE_REMOVE_CELL);
		fake_turns();
		CHECK_INT(started.n, 1);
		CHECK(started.removed);
		CHECK_INT(started.code, -EBUSY);
		CHECK_STR(started.field, fields[i].told);
		fake_yes(node(), FAKE_SIGNAL);
		check_nothing_left();
		finish();
	}
}

static void a_limit_of_the_pod_that_is_refused_leaves_nothing(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_POD, "p", 1, &started);
	refuse_limits = true;
	fake_yes(w->instance, FAKE_OPEN);
	synced(w->instance);
	refuse_limits = false;
	CHECK_INT(started.n, 0);
	fake_kill_keeper(1);
	FAKE_UNTIL(started.n == 1);
	CHECK(started.removed);
	CHECK_STR(started.field, "cpu.max");
	check_nothing_left();
	finish();
}

static void an_instance_that_fails_is_told_once(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_POD, "p", 1, &started);
	w->auto_remove = true;
	fake.n_busy = 2;
	fake_kill_keeper(1);
	FAKE_UNTIL(started.n == 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(started.reason, "its keeper was killed by signal 9");
	CHECK_INT(started.failure.kind, ERROR_UNAVAILABLE);
	FAKE_UNTIL(list_empty(workloads_list(all)));
	CHECK_INT(started.n, 1);
	check_nothing_left();
	finish();
}

static void one_that_is_to_go_where_it_fails(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	for (int drops = 0; drops < 2; drops++) {
		started.n = 0;
		w = run_well(WORKLOAD_POD, "p", 1, &started);
		w->drops_failed = drops;
		fake_kill_keeper(fake.n_keepers - 1);
		FAKE_UNTIL(started.n == 1);
		CHECK_INT(started.failure.kind, ERROR_UNAVAILABLE);
		if (!drops)
			remove_well(w);
		FAKE_UNTIL(list_empty(workloads_list(all)));
	}
	check_nothing_left();
	finish();
}

static void lose_answer(const struct workload *w, size_t n)
{
	struct fake_call *c = fake_asked(node(), FAKE_START), call;
	struct error err = ERROR_INIT;

	CHECK(c != NULL);
	if (!c)
		return;
	CHECK_STR(c->name, w->containers[n]->id);
	call = *c;
	fake_call_free(c);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the connection was lost");
	call.started(call.userdata, NULL, &err);
	fake_turns();
}

/* Its calls end first, then the loss is told, and then the kernel says what has happened. */
static void a_keeper_that_dies_while_it_starts_is_named(void)
{
	struct told started = { .n = 0 };
	struct error err = ERROR_INIT;
	struct workload *w;
	struct fake_peer *f;

	begin();
	w = run_well(WORKLOAD_CELL, "web", 1, &started);
	fake_turns();
	lose_answer(w, 0);
	f = fake_of(node()->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the connection was lost");
	f->events->on_lost(f->userdata, &err);
	CHECK(instance_is_lost(node()));
	fake_turns();
	CHECK_INT(started.n, 0);
	fake_kill_keeper(0);
	/* A daemon that stands still meanwhile finds both, the end and that it
	 * has waited long enough for it. */
	(void)usleep(1100000);
	FAKE_UNTIL(started.n == 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(started.reason, "its keeper was killed by signal 9");
	CHECK_STR(w->containers[0]->status.reason, "its keeper was killed by signal 9");
	finish();
}

/* The call failed, and nothing else. */
static void a_start_without_an_answer_fails(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_CELL, "web", 2, &started);
	fake_turns();
	lose_answer(w, 0);
	start_answered(w, 1, CONTAINER_RUNNING);
	CHECK_INT(started.n, 0);
	FAKE_UNTIL(fake_asked(node(), FAKE_SIGNAL) != NULL);
	CHECK_STR(fake_asked(node(), FAKE_SIGNAL)->name, w->containers[1]->id);
	tell(w, 1, CONTAINER_EXITED);
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(started.reason, "container one: the connection was lost");
	finish();
}

/* Its instance is gone before whoever made it has heard of that. */
static void its_instance_is_stopped_by_somebody_else(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_POD, "p", 1, &started);
	w->auto_remove = true;
	instance_stop(w->instance, NULL, NULL);
	fake_kill_keeper(1);
	FAKE_UNTIL(list_empty(workloads_list(all)));
	CHECK_INT(started.n, 1);
	CHECK_STR(started.reason, "the instance p was stopped");
	check_nothing_left();
	finish();
}

/* The call tells of it as what it could not be made for. */
static void an_instance_that_cannot_be_made_is_the_failure(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	fake.connect_error = -EMFILE;
	w = run_well(WORKLOAD_POD, "p", 1, &started);
	FAKE_UNTIL(started.n == 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_INT(started.failure.kind, ERROR_FAULT);
	CHECK_INT(started.failure.code, -EMFILE);
	fake.connect_error = 0;
	remove_well(w);
	check_nothing_left();
	finish();
}

static void is_stopped_while_its_instance_is_made(void)
{
	struct told started = { .n = 0 }, stopped = { .n = 0 }, removed = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_POD, "p", 1, &started);
	workload_stop(w, NSEC_PER_SEC, told_by, &stopped);
	CHECK_INT(workload_remove(w, true, told_by, &removed, NULL), 0);
	fake_turns();
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(started.reason, "it was stopped while it started");
	CHECK_INT(started.failure.kind, ERROR_ABORTED);
	CHECK_INT(stopped.n, 1);
	fake_yes(w->instance, FAKE_OPEN);
	fake_turns();
	CHECK(fake_asked(w->instance, FAKE_START) == NULL);
	CHECK_INT(removed.n, 0);
	fake_kill_keeper(1);
	FAKE_UNTIL(removed.n == 1);
	check_nothing_left();
	finish();
}

/* A signal must not overtake the start that it is meant for. */
static void is_removed_while_its_start_is_not_answered(void)
{
	struct told removed = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_CELL, "web", 1, NULL);
	fake_turns();
	CHECK_INT(workload_remove(w, true, told_by, &removed, NULL), 0);
	fake_turns();
	CHECK(fake_asked(node(), FAKE_SIGNAL) == NULL);
	CHECK(fake_asked(node(), FAKE_REMOVE_CELL) == NULL);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_STOPPING);
	CHECK_INT(fake_asked(node(), FAKE_SIGNAL)->sig, SIGKILL);
	tell(w, 0, CONTAINER_EXITED);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(removed.n, 1);
	check_nothing_left();
	finish();
}

static void a_stop_reaches_what_started_late(void)
{
	struct told stopped = { .n = 0 };
	struct workload *w;

	begin();
	w = run_well(WORKLOAD_CELL, "web", 1, NULL);
	fake_turns();
	workload_stop(w, 3600 * NSEC_PER_SEC, told_by, &stopped);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(fake_asked(node(), FAKE_SIGNAL)->sig, SIGINT);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(stopped.n, 1);
	CHECK_INT(stopped.state, WORKLOAD_EXITED);
	finish();
}

static void kills_again_where_a_signal_was_lost(void)
{
	struct workload *w;

	begin();
	w = running_cell("web");
	workload_stop(w, 0, NULL, NULL);
	fake_answer(node(), FAKE_SIGNAL, ERROR_UNAVAILABLE);
	FAKE_UNTIL(fake_asked(node(), FAKE_SIGNAL) != NULL);
	CHECK_INT(w->state, WORKLOAD_STOPPING);
	/* And what does not end by that is ended by what is around it. */
	fake_answer(node(), FAKE_SIGNAL, ERROR_UNAVAILABLE);
	FAKE_UNTIL(fake_asked(node(), FAKE_REMOVE_CELL) != NULL);
	CHECK(!fake_asked(node(), FAKE_SIGNAL));
	CHECK_INT(w->state, WORKLOAD_STOPPING);
	finish();
}

static void the_keeper_dies_in_each_state(void)
{
	struct told started = { .n = 0 }, stopped = { .n = 0 }, removed = { .n = 0 };
	struct workload *starting, *running, *stopping, *removing;
	struct error err = ERROR_INIT;
	struct told gone = { .n = 0 };
	struct instance *last;

	begin();
	removing = running_cell("removing");
	CHECK_INT(workload_remove(removing, true, told_by, &removed, NULL), 0);
	tell(removing, 0, CONTAINER_EXITED);
	CHECK_INT(removing->state, WORKLOAD_REMOVING);
	running = running_cell("running");
	stopping = running_cell("stopping");
	workload_stop(stopping, 3600 * NSEC_PER_SEC, told_by, &stopped);
	starting = run_well(WORKLOAD_CELL, "starting", 1, &started);
	fake_turns();
	CHECK(fake_asked(node(), FAKE_START) != NULL);

	last = node();
	fake_kill_keeper(0);
	FAKE_UNTIL(last->state == INSTANCE_FAILED);
	fake_turns();
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(starting->reason, "its keeper was killed by signal 9");
	CHECK_INT(starting->containers[0]->status.state, CONTAINER_FAILED);
	CHECK_INT(stopped.n, 1);
	CHECK_INT(stopped.state, WORKLOAD_FAILED);
	CHECK_INT(running->state, WORKLOAD_FAILED);
	CHECK_STR(running->containers[0]->status.reason, "its keeper was killed by signal 9");
	CHECK_INT(removed.n, 1);

	/* The next keeper knows nothing of them. */
	instance_stop(last, NULL, NULL);
	FAKE_UNTIL(last->clean_delay == 0);
	CHECK_INT(instances_open_node(fake.all, &err), 0);
	fake_turns();
	CHECK(running->instance == NULL);
	fake_yes(node(), FAKE_OPEN);
	CHECK_INT(workload_remove(running, false, told_by, &gone, NULL), 0);
	fake_turns();
	CHECK_INT(gone.n, 1);
	CHECK(fake_asked(node(), FAKE_REMOVE_CELL) == NULL);
	(void)running_cell("running");
	finish();
}

static void is_taken_back_where_it_cannot_be_prepared(void)
{
	struct told started = { .n = 0 };
	struct error err = ERROR_INIT;
	struct pod_container_spec c[] = { { .name = "one", .image = "app" },
					  { .name = "two", .image = "none" } };
	struct workload_spec spec = { .kind = WORKLOAD_CELL,
				      .name = "web",
				      .network = "own",
				      .containers = c,
				      .n_containers = 2 };
	struct workload *w;

	begin();
	CHECK(workload_run(all, &spec, NULL, NULL, &w, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK(str_has_prefix(err.text, "containers[1].image: "));
	check_nothing_left();

	fail_rootfs = 2;
	w = run_well(WORKLOAD_CELL, "web", 2, &started);
	fake_turns();
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK(strstr(started.reason, "No space left") != NULL);
	CHECK_STR(started.failure.text, started.reason);
	CHECK_INT(started.failure.kind, ERROR_FAULT);
	CHECK_INT(started.failure.code, -ENOSPC);
	remove_well(w);
	check_nothing_left();
	finish();
}

/* ---- a root that has to be made ready ---- */

static struct workload *awaits_roots(enum workload_kind kind, size_t n, struct told *told)
{
	struct workload *w;

	begin();
	rootfs_is_awaited = true;
	w = run_well(kind, "web", n, told);
	if (kind == WORKLOAD_POD) {
		fake_yes(w->instance, FAKE_OPEN);
		synced(w->instance);
	}
	fake_turns();
	CHECK_INT(n_rootfs_awaited, n);
	CHECK(fake_asked(w->instance, FAKE_START) == NULL);
	CHECK_INT(n_rootfs, 0);
	return w;
}

static void root_is_ready(struct workload *w, const struct error *err)
{
	n_rootfs_awaited--;
	rootfs_done(w, err);
	fake_turns();
}

static void finish_awaited(void)
{
	rootfs_is_awaited = false;
	CHECK_INT(n_rootfs_awaited, 0);
	check_nothing_left();
	finish();
}

static void starts_when_its_roots_are_ready(void)
{
	struct told started = { .n = 0 };
	struct workload *w = awaits_roots(WORKLOAD_CELL, 2, &started);

	root_is_ready(w, NULL);
	CHECK(fake_asked(w->instance, FAKE_START) == NULL);
	root_is_ready(w, NULL);
	CHECK_INT(fake_count(w->instance, FAKE_START), 2);
	CHECK_INT(n_rootfs, 2);
	start_answered(w, 0, CONTAINER_RUNNING);
	start_answered(w, 1, CONTAINER_RUNNING);
	CHECK_INT(started.state, WORKLOAD_RUNNING);
	tell(w, 0, CONTAINER_EXITED);
	tell(w, 1, CONTAINER_EXITED);
	remove_well(w);
	finish_awaited();

	w = awaits_roots(WORKLOAD_POD, 1, NULL);
	root_is_ready(w, NULL);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	tell(w, 0, CONTAINER_EXITED);
	fake_kill_keeper(1);
	FAKE_UNTIL(instances_find(fake.all, "web") == NULL);
	fake_turns();
	remove_well(w);
	finish_awaited();
}

static void fails_where_a_root_cannot_be_made_ready(void)
{
	struct told started = { .n = 0 };
	struct error err = ERROR_INIT;
	struct workload *w = awaits_roots(WORKLOAD_CELL, 2, &started);

	(void)error_refuse(&err, ERROR_FAULT, "mkfs.erofs was killed by signal 9");
	root_is_ready(w, &err);
	CHECK_INT(started.n, 1);
	CHECK_INT(started.state, WORKLOAD_FAILED);
	CHECK_STR(started.reason, "mkfs.erofs was killed by signal 9");
	/* The other one is waited for no more. */
	CHECK_INT(n_rootfs_awaited, 0);
	remove_well(w);
	finish_awaited();

	/* What cannot be on this node leaves nothing, and is told then. */
	started = (struct told){ .n = 0 };
	w = awaits_roots(WORKLOAD_CELL, 1, &started);
	err = (struct error)ERROR_INIT;
	(void)error_refuse(&err, ERROR_PRECONDITION, "the kernel cannot");
	root_is_ready(w, &err);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(started.n, 1);
	CHECK(started.removed);
	CHECK_INT(started.code, err.code);
	CHECK(workloads_find(all, "web") == NULL);
	finish_awaited();
}

static void is_stopped_while_its_roots_are_made_ready(void)
{
	struct told started = { .n = 0 };
	struct workload *w = awaits_roots(WORKLOAD_CELL, 2, &started);

	remove_well(w);
	CHECK_INT(started.n, 1);
	CHECK_STR(started.reason, "it was stopped while it started");
	finish_awaited();
	/* The daemon ends. */
	w = awaits_roots(WORKLOAD_CELL, 1, NULL);
	close_daemon();
	CHECK_INT(n_rootfs_awaited, 0);
	open_daemon();
	remove_well(workloads_find(all, "web"));
	finish_awaited();
}

static void refuses(void)
{
	struct error err = ERROR_INIT;
	struct pod_container_spec c = { .name = "one", .image = "app" };
	struct workload_spec spec = { .kind = WORKLOAD_CELL,
				      .name = "p",
				      .network = "own",
				      .containers = &c,
				      .n_containers = 1 };
	struct workload *w;
	size_t n;

	begin();
	w = running_pod("p");
	n_fds = count_fds();
	CHECK(run(WORKLOAD_CELL, "p", 1, NULL, &w, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXISTS);
	/* "p/p" would be the cell that the pod's own containers are in. */
	spec.parent = instances_find(fake.all, "p");
	CHECK(workload_run(all, &spec, NULL, NULL, &w, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXISTS);
	w = workloads_find(all, "p");
	CHECK(workload_remove(w, false, NULL, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	for (n = 0; n < WORKLOADS_MAX; n++) {
		char name[32];

		(void)str_printf(name, sizeof(name), "w%zu", n);
		if (run(WORKLOAD_EXECUTABLE, name, 1, NULL, &w, &err) < 0)
			break;
	}
	CHECK_INT(n, WORKLOADS_MAX - 1);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	finish();
}

static void goes_on_without_memory_to_wait(void)
{
	struct told told = { .n = 0 }, removed = { .n = 0 };
	struct error err = ERROR_INIT;
	struct workload *w;

	begin();
	w = running_pod("p");
	fake.fail_calloc = 1;
	workload_wait(w, NULL, told_by, &told);
	CHECK_INT(told.n, 1);
	CHECK_INT(told.code, -ENOMEM);
	fake.fail_calloc = 1;
	workload_stop(w, 0, told_by, &told);
	CHECK_INT(told.n, 2);
	fake.fail_calloc = 1;
	CHECK(workload_remove(w, true, told_by, &told, &err) < 0);
	CHECK_INT(told.n, 2);
	/* Nor for its instance: that is tried again. */
	CHECK_INT(workload_remove(w, true, told_by, &removed, NULL), 0);
	fake.fail_calloc = 1;
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(fake.fail_calloc, 0);
	fake_kill_keeper(1);
	FAKE_UNTIL(removed.n == 1);
	check_nothing_left();
	finish();
}

static void ends_what_has_no_record(void)
{
	struct container_view view = { .id = "00000000000000ff", .cell = "stray", .name = "x" };
	struct fake_peer *f;

	begin();
	(void)running_cell("web");
	f = fake_of(node()->peer);
	view.status.state = CONTAINER_RUNNING;
	f->events->on_container(f->userdata, &view);
	CHECK_STR(fake_asked(node(), FAKE_REMOVE_CELL)->name, "stray");
	fake_yes(node(), FAKE_REMOVE_CELL);
	/* What else is in the cell stays. */
	view.cell = "web";
	f->events->on_container(f->userdata, &view);
	CHECK(fake_asked(node(), FAKE_REMOVE_CELL) == NULL);
	CHECK_STR(fake_asked(node(), FAKE_SIGNAL)->name, view.id);
	finish();
}

static struct workload *forgetful;
static struct told forgotten;

static void forget_the_other(void *userdata, struct workload *w, const struct error *err)
{
	workload_forget_waiter(forgetful, &forgotten);
}

static void one_that_is_told_may_take_another_back(void)
{
	struct workload *w;

	begin();
	w = running_cell("web");
	forgetful = w;
	forgotten.n = 0;
	workload_wait(w, NULL, forget_the_other, NULL);
	workload_wait(w, NULL, told_by, &forgotten);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(forgotten.n, 0);
	CHECK_INT(workload_remove(w, false, forget_the_other, NULL, NULL), 0);
	CHECK_INT(workload_remove(w, false, told_by, &forgotten, NULL), 0);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(forgotten.n, 0);
	check_nothing_left();
	finish();
}

UNIT_MAIN({ "a_cell_runs_and_ends", a_cell_runs_and_ends },
	  { "a_pod_runs_and_is_stopped", a_pod_runs_and_is_stopped },
	  { "its_name_is_free_when_its_removal_was_told",
	    its_name_is_free_when_its_removal_was_told },
	  { "removes_itself", removes_itself },
	  { "a_container_that_fails_takes_the_others_along",
	    a_container_that_fails_takes_the_others_along },
	  { "a_limit_that_is_refused_leaves_nothing", a_limit_that_is_refused_leaves_nothing },
	  { "a_limit_of_the_pod_that_is_refused_leaves_nothing",
	    a_limit_of_the_pod_that_is_refused_leaves_nothing },
	  { "an_instance_that_fails_is_told_once", an_instance_that_fails_is_told_once },
	  { "one_that_is_to_go_where_it_fails", one_that_is_to_go_where_it_fails },
	  { "an_instance_that_cannot_be_made_is_the_failure",
	    an_instance_that_cannot_be_made_is_the_failure },
	  { "a_keeper_that_dies_while_it_starts_is_named",
	    a_keeper_that_dies_while_it_starts_is_named },
	  { "a_start_without_an_answer_fails", a_start_without_an_answer_fails },
	  { "its_instance_is_stopped_by_somebody_else", its_instance_is_stopped_by_somebody_else },
	  { "is_stopped_while_its_instance_is_made", is_stopped_while_its_instance_is_made },
	  { "is_removed_while_its_start_is_not_answered",
	    is_removed_while_its_start_is_not_answered },
	  { "a_stop_reaches_what_started_late", a_stop_reaches_what_started_late },
	  { "kills_again_where_a_signal_was_lost", kills_again_where_a_signal_was_lost },
	  { "the_keeper_dies_in_each_state", the_keeper_dies_in_each_state },
	  { "is_taken_back_where_it_cannot_be_prepared",
	    is_taken_back_where_it_cannot_be_prepared },
	  { "starts_when_its_roots_are_ready", starts_when_its_roots_are_ready },
	  { "fails_where_a_root_cannot_be_made_ready", fails_where_a_root_cannot_be_made_ready },
	  { "is_stopped_while_its_roots_are_made_ready",
	    is_stopped_while_its_roots_are_made_ready },
	  { "refuses", refuses },
	  { "goes_on_without_memory_to_wait", goes_on_without_memory_to_wait },
	  { "ends_what_has_no_record", ends_what_has_no_record },
	  { "one_that_is_told_may_take_another_back", one_that_is_told_may_take_another_back })
