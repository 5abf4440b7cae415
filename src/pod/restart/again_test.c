/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/workload_bed_test.h"

#include "pod/restart/again.h"
#include "pod/restart/restart.h"
#include "pod/workload/sandbox.h"

/* ---- starting what is there ---- */

static int start(struct workload *w, bool by_policy, struct told *told, struct error *err)
{
	char *const words[] = { program, NULL };
	char high[] = "memory.max=2";
	char *const limits[] = { high, NULL };
	struct pod_container_spec c[] = {
		{ .name = "one", .image = image.id, .limits = limits },
		{ .name = "two", .image = image.id },
	};
	struct workload_spec spec = { .kind = w->kind,
				      .name = w->path,
				      .network = "own",
				      .containers = c,
				      .n_containers = w->n_containers };

	c[0].command = words;
	return workload_start(w, &spec, by_policy, told ? told_by : NULL, told, err);
}

static void start_well(struct workload *w, struct told *told)
{
	struct error err = ERROR_INIT;

	CHECK_INT(start(w, false, told, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(w->state, WORKLOAD_STARTING);
}

/* The restart of the daemon; keepers say what they have. */
static void restart(void)
{
	struct instance *i;

	close_daemon();
	open_daemon();
	list_for_each (i, instances_list(fake.all), struct instance, link) {
		if (i->ended || i->synced)
			continue;
		fake_yes(i, FAKE_OPEN);
		synced(i);
	}
	workloads_resume(all);
	fake_turns();
}

static struct workload *ended_cell(const char *name)
{
	struct workload *w = running_cell(name);

	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(w->state, WORKLOAD_EXITED);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	return w;
}

static void an_ended_one_runs_again_with_its_files(void)
{
	struct told told = { .n = 0 };
	struct workload *w;
	char id[ID_SIZE], container[ID_SIZE];

	begin();
	w = ended_cell("web");
	(void)str_copy(id, sizeof(id), w->id);
	(void)str_copy(container, sizeof(container), w->containers[0]->id);
	n_rootfs_again = 0;
	start_well(w, &told);
	CHECK_INT(told.n, 0);
	CHECK_STR(w->containers[0]->limits[0], "memory.max=2");
	fake_turns();
	CHECK_INT(n_rootfs, 1);
	CHECK_INT(n_rootfs_again, 1);
	CHECK_INT(image.n_users, 1);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(told.n, 1);
	CHECK_INT(told.state, WORKLOAD_RUNNING);
	CHECK_STR(w->id, id);
	CHECK_STR(w->containers[0]->id, container);
	CHECK(strstr(seen, "web=exited web=starting ") != NULL);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(w->state, WORKLOAD_EXITED);
	remove_well(w);
	check_nothing_left();
	finish();
}

static void a_pod_gets_another_instance(void)
{
	char before[ID_SIZE];
	struct workload *w;

	begin();
	w = running_pod("p");
	(void)str_copy(before, sizeof(before), w->instance->id);
	tell(w, 0, CONTAINER_EXITED);
	fake_kill_keeper(fake.n_keepers - 1);
	FAKE_UNTIL(w->taken_down);
	fake_turns();
	start_well(w, NULL);
	CHECK(w->instance && !str_eq(w->instance->id, before));
	fake_yes(w->instance, FAKE_OPEN);
	synced(w->instance);
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	finish();
}

static void refuses_what_cannot_be_started(void)
{
	struct error err = ERROR_INIT;
	struct workload *w, *x;

	begin();
	w = running_cell("web");
	CHECK_INT(workload_check_start(w, &err), 1);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(workload_check_start(w, &err), 0);
	/* It is not down yet. */
	CHECK(start(w, false, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	CHECK_INT(w->state, WORKLOAD_EXITED);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	w->n_containers--;
	CHECK(start(w, false, NULL, &err) < 0);
	w->n_containers++;
	x = run_well(WORKLOAD_EXECUTABLE, "x", 1, NULL);
	CHECK(workload_check_start(x, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
	w->auto_remove = true;
	CHECK(workload_check_start(w, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	finish();
}

static void what_cannot_be_made_again_stays(void)
{
	struct told told = { .n = 0 };
	struct workload *w;

	begin();
	w = ended_cell("web");
	fail_rootfs = 1;
	start_well(w, &told);
	fake_turns();
	CHECK_INT(told.n, 1);
	CHECK_INT(told.state, WORKLOAD_FAILED);
	CHECK_INT(n_rootfs, 1);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK(workloads_find(all, "web") == w);
	start_well(w, NULL);
	fake_turns();
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	finish();
}

static void a_start_that_was_cut_leaves_an_ended_one(void)
{
	struct workload *w;

	begin();
	w = ended_cell("web");
	start_well(w, NULL);
	restart();
	w = workloads_find(all, "web");
	CHECK(w != NULL);
	CHECK_INT(w->state, WORKLOAD_FAILED);
	CHECK_INT(n_rootfs, 1);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK(workloads_find(all, "web") == w);
	start_well(w, NULL);
	fake_turns();
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	finish();
}

/* ---- created ---- */

static void a_created_one_waits_for_its_start(void)
{
	struct told told = { .n = 0 }, ended = { .n = 0 }, stopped = { .n = 0 };
	struct workload *w;

	begin();
	run_more.create_only = true;
	w = run_well(WORKLOAD_POD, "p", 2, &told);
	run_more.create_only = false;
	fake_turns();
	CHECK_INT(told.n, 1);
	CHECK_INT(w->state, WORKLOAD_CREATED);
	CHECK_STR(pod_container_state_word(w->containers[0]), "created");
	CHECK_INT(n_rootfs, 2);
	CHECK_INT(count_fds(), n_fds);
	CHECK(w->instance == NULL);
	restart();
	w = workloads_find(all, "p");
	CHECK_INT(w->state, WORKLOAD_CREATED);
	workload_stop(w, 0, told_by, &stopped);
	workload_wait(w, NULL, told_by, &ended);
	fake_turns();
	CHECK_INT(stopped.n, 1);
	CHECK_INT(ended.n, 0);
	start_well(w, NULL);
	fake_yes(w->instance, FAKE_OPEN);
	synced(w->instance);
	start_answered(w, 0, CONTAINER_RUNNING);
	start_answered(w, 1, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	finish();
}

static void a_created_one_is_removed(void)
{
	struct workload *w;

	begin();
	run_more.create_only = true;
	w = run_well(WORKLOAD_CELL, "c", 1, NULL);
	run_more.create_only = false;
	fake_turns();
	CHECK_INT(w->state, WORKLOAD_CREATED);
	remove_well(w);
	check_nothing_left();
	finish();
}

/* ---- policies ---- */

static unsigned n_asked;

static void asked(void *userdata, struct workload *w)
{
	struct error err = ERROR_INIT;

	n_asked++;
	CHECK_INT(start(w, true, NULL, &err), 0);
}

static struct workload *policy_cell(enum restart_policy policy, unsigned max)
{
	struct workload *w;

	restart_asked = asked;
	n_asked = 0;
	begin();
	run_more.restart = (struct restart_rule){ policy, max };
	w = running_cell("web");
	run_more.restart.policy = RESTART_NO;
	return w;
}

/* Its one container ends with this exit code, and nothing of it is left in its keeper. */
static void ends_with(struct workload *w, int exit_code)
{
	struct fake_peer *f = fake_of(w->instance->peer);
	struct container_view view = view_of(w, 0, CONTAINER_EXITED);

	view.status.started_at = 1;
	view.status.finished_at = 2;
	view.status.exit_code = exit_code;
	f->events->on_container(f->userdata, &view);
	fake_turns();
	CHECK_INT(w->state, WORKLOAD_EXITED);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
}

static void runs_again(struct workload *w, unsigned count, nsec_t delay)
{
	CHECK_INT(w->restart_next, delay);
	FAKE_UNTIL(n_asked == count);
	fake_turns();
	start_answered(w, 0, CONTAINER_RUNNING);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	CHECK_INT(w->restart_count, count);
	CHECK_INT(w->restart_at, 0);
}

static void starts_again_with_back_off(void)
{
	struct workload *w = policy_cell(RESTART_ALWAYS, 0);

	ends_with(w, 0);
	CHECK(w->restart_at != 0);
	runs_again(w, 1, RESTART_FIRST);
	ends_with(w, 1);
	runs_again(w, 2, 2 * RESTART_FIRST);
	ends_with(w, 0);
	runs_again(w, 3, 4 * RESTART_FIRST);
	/* One that ran well begins anew. */
	w->restart_delay = RESTART_LAST;
	ends_with(w, 0);
	CHECK_INT(w->restart_next, RESTART_LAST);
	workload_stop(w, 0, NULL, NULL);
	CHECK_INT(w->restart_at, 0);
	CHECK(w->stopped);
	start_well(w, NULL);
	CHECK(!w->stopped);
	CHECK_INT(w->restart_count, 0);
	finish();
}

static void on_failure_counts(void)
{
	struct workload *w = policy_cell(RESTART_ON_FAILURE, 2);

	ends_with(w, 3);
	runs_again(w, 1, RESTART_FIRST);
	ends_with(w, 3);
	runs_again(w, 2, 2 * RESTART_FIRST);
	ends_with(w, 3);
	CHECK_INT(w->restart_at, 0);
	start_well(w, NULL);
	fake_turns();
	start_answered(w, 0, CONTAINER_RUNNING);
	ends_with(w, 0);
	CHECK_INT(w->restart_at, 0);
	finish();
}

static void a_stop_ends_it_for_good(void)
{
	struct workload *w = policy_cell(RESTART_UNLESS_STOPPED, 0);

	workload_stop(w, 1, NULL, NULL);
	ends_with(w, 0);
	CHECK_INT(w->restart_at, 0);
	restart();
	w = workloads_find(all, "web");
	CHECK(w->stopped);
	CHECK_INT(w->restart_at, 0);
	finish();
}

static void goes_on_over_a_restart_of_the_daemon(void)
{
	struct workload *w = policy_cell(RESTART_ALWAYS, 0);

	ends_with(w, 0);
	runs_again(w, 1, RESTART_FIRST);
	ends_with(w, 0);
	CHECK(w->restart_at != 0);
	restart();
	w = workloads_find(all, "web");
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(w->restart.policy, RESTART_ALWAYS);
	runs_again(w, 2, 2 * RESTART_FIRST);
	finish();
}

static void what_never_ran_is_not_tried_again(void)
{
	struct workload *w;

	restart_asked = asked;
	n_asked = 0;
	begin();
	run_more.restart.policy = RESTART_ALWAYS;
	w = run_well(WORKLOAD_CELL, "web", 1, NULL);
	run_more.restart.policy = RESTART_NO;
	fake_turns();
	start_answered(w, 0, CONTAINER_FAILED);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK_INT(w->restart_at, 0);
	finish();
}

static void words_of_policies(void)
{
	for (int p = 0; p < RESTART_POLICY_COUNT; p++)
		CHECK_INT(restart_policy_of(restart_policy_word((enum restart_policy)p)), p);
	CHECK_INT(restart_policy_of("sometimes"), RESTART_POLICY_COUNT);
	CHECK_INT(restart_policy_of(""), RESTART_POLICY_COUNT);
}

UNIT_MAIN({ "an_ended_one_runs_again_with_its_files", an_ended_one_runs_again_with_its_files },
	  { "a_pod_gets_another_instance", a_pod_gets_another_instance },
	  { "refuses_what_cannot_be_started", refuses_what_cannot_be_started },
	  { "what_cannot_be_made_again_stays", what_cannot_be_made_again_stays },
	  { "a_start_that_was_cut_leaves_an_ended_one", a_start_that_was_cut_leaves_an_ended_one },
	  { "a_created_one_waits_for_its_start", a_created_one_waits_for_its_start },
	  { "a_created_one_is_removed", a_created_one_is_removed },
	  { "starts_again_with_back_off", starts_again_with_back_off },
	  { "on_failure_counts", on_failure_counts },
	  { "a_stop_ends_it_for_good", a_stop_ends_it_for_good },
	  { "goes_on_over_a_restart_of_the_daemon", goes_on_over_a_restart_of_the_daemon },
	  { "what_never_ran_is_not_tried_again", what_never_ran_is_not_tried_again },
	  { "words_of_policies", words_of_policies })
