/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/workload_bed_test.h"

/* ---- the daemon's end, and what the next one finds ---- */

static void tells_who_waits_when_the_daemon_ends(void)
{
	struct told started = { .n = 0 }, ended = { .n = 0 };
	struct workload *w;

	begin();
	(void)run_well(WORKLOAD_POD, "p", 1, &started);
	w = running_cell("web");
	workload_wait(w, NULL, told_by, &ended);
	close_daemon();
	CHECK_INT(started.n, 1);
	CHECK_INT(started.code, -EAGAIN);
	CHECK_INT(ended.n, 1);
	CHECK_INT(ended.state, WORKLOAD_RUNNING);
	open_daemon();
	finish();
}

/* The daemon was killed; the next one has read the records. */
static void restart(void)
{
	close_daemon();
	open_daemon();
}

static void resume(void)
{
	struct instance *i;

	list_for_each (i, instances_list(fake.all), struct instance, link) {
		if (i->ended || i->synced)
			continue;
		fake_yes(i, FAKE_OPEN);
		synced(i);
	}
	workloads_resume(all);
	fake_turns();
}

static void what_runs_goes_on(void)
{
	struct workload *pod, *cell, *lost;

	begin();
	(void)running_pod("p");
	(void)running_cell("web");
	(void)running_cell("lost");
	restart();
	pod = workloads_find(all, "p");
	cell = workloads_find(all, "web");
	lost = workloads_find(all, "lost");
	CHECK(pod && cell && lost);
	CHECK_INT(image.n_users, 3);
	tell(pod, 0, CONTAINER_RUNNING);
	tell(cell, 0, CONTAINER_EXITED);
	resume();
	CHECK_INT(pod->state, WORKLOAD_RUNNING);
	CHECK_INT(cell->state, WORKLOAD_EXITED);
	CHECK_INT(lost->state, WORKLOAD_EXITED);
	CHECK_INT(lost->containers[0]->status.exit_code, 125);
	CHECK_INT(fake_count(node(), FAKE_REMOVE_CELL), 2);
	CHECK_INT(pod->instance->state, INSTANCE_READY);
	finish();
}

static void a_start_that_was_cut_is_finished_or_undone(void)
{
	struct workload *whole, *half;

	begin();
	(void)run_well(WORKLOAD_CELL, "whole", 2, NULL);
	(void)run_well(WORKLOAD_CELL, "half", 2, NULL);
	(void)run_well(WORKLOAD_POD, "p", 1, NULL);
	fake_turns();
	restart();
	whole = workloads_find(all, "whole");
	half = workloads_find(all, "half");
	tell(whole, 0, CONTAINER_RUNNING);
	tell(whole, 1, CONTAINER_EXITED);
	tell(half, 0, CONTAINER_RUNNING);
	CHECK_INT(whole->state, WORKLOAD_STARTING);
	resume();
	CHECK_INT(whole->state, WORKLOAD_RUNNING);
	/* It has its name until nothing of it is left in the keeper. */
	CHECK_INT(half->state, WORKLOAD_REMOVING);
	CHECK_STR(half->reason, "the daemon was restarted while it started");
	CHECK_STR(fake_asked(node(), FAKE_REMOVE_CELL)->name, "half");
	CHECK(workloads_find(all, "half") == half);
	fake_yes(node(), FAKE_REMOVE_CELL);
	fake_turns();
	CHECK(workloads_find(all, "half") == NULL);
	CHECK(strstr(seen, "half=failed ") != NULL);
	CHECK(strstr(seen, "half=removed ") != NULL);
	CHECK(strstr(seen, "p=removed ") != NULL);
	CHECK(workloads_find(all, "p") == NULL);
	CHECK(instances_find(fake.all, "p") == NULL);
	CHECK_INT(node()->state, INSTANCE_READY);
	finish();
}

static void a_stop_that_was_cut_is_finished(void)
{
	struct workload *w;

	begin();
	w = running_cell("web");
	workload_stop(w, 1, NULL, NULL);
	restart();
	w = workloads_find(all, "web");
	tell(w, 0, CONTAINER_RUNNING);
	resume();
	CHECK_INT(w->state, WORKLOAD_STOPPING);
	CHECK_INT(fake_asked(node(), FAKE_SIGNAL)->sig, SIGKILL);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(w->state, WORKLOAD_EXITED);
	finish();
}

static void a_stop_that_was_cut_has_its_grace(void)
{
	struct workload *w;

	begin();
	w = running_cell("web");
	workload_stop(w, NSEC_PER_SEC, NULL, NULL);
	fake_yes(node(), FAKE_SIGNAL);
	restart();
	w = workloads_find(all, "web");
	tell(w, 0, CONTAINER_RUNNING);
	resume();
	CHECK_INT(w->state, WORKLOAD_STOPPING);
	CHECK(fake_asked(node(), FAKE_SIGNAL) == NULL);
	FAKE_UNTIL(fake_asked(node(), FAKE_SIGNAL) != NULL);
	CHECK_INT(fake_asked(node(), FAKE_SIGNAL)->sig, SIGKILL);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(w->state, WORKLOAD_EXITED);
	finish();
}

static void set_recorded(const char *path, enum workload_state state, const char *instance)
{
	struct workload *w = workloads_find(all, path);
	struct run_workload r = { .id = w->id,
				  .path = w->path,
				  .kind = workload_kind_word(w->kind),
				  .instance = instance,
				  .state = (int)state,
				  .state_word = workload_state_word(state),
				  .network = "own",
				  .reason = "",
				  .restart = "no",
				  .created_at = w->created_at };

	CHECK_INT(run_store_put_workload(store, &r, NULL), 0);
}

/* Whatever a record says, the keeper of the node and the cells of others are not touched. */
static void a_record_without_an_instance_harms_nobody(void)
{
	static const enum workload_state states[] = { WORKLOAD_STARTING, WORKLOAD_EXITED,
						      WORKLOAD_FAILED, WORKLOAD_REMOVING };

	for (size_t n = 0; n < ARRAY_SIZE(states); n++) {
		struct workload *w, *other;

		begin();
		(void)running_cell("web");
		(void)running_pod("p");
		set_recorded("p", states[n], "");
		restart();
		other = workloads_find(all, "web");
		tell(other, 0, CONTAINER_RUNNING);
		resume();
		CHECK_INT(other->state, WORKLOAD_RUNNING);
		CHECK_INT(node()->state, INSTANCE_READY);
		CHECK(fake_asked(node(), FAKE_REMOVE_CELL) == NULL);
		/* Its own instance is found by its owner. */
		w = workloads_find(all, "p");
		CHECK_INT(w->instance->state, INSTANCE_STOPPING);
		fake_kill_keeper(1);
		FAKE_UNTIL(instances_find(fake.all, "p") == NULL);
		fake_turns();
		w = workloads_find(all, "p");
		CHECK((states[n] == WORKLOAD_REMOVING) == (w == NULL));
		finish();
	}
}

static void an_instance_without_its_pod_is_ended(void)
{
	struct workload *w;

	begin();
	w = running_pod("p");
	CHECK_INT(run_store_drop_workload(store, w->id, NULL), 0);
	restart();
	resume();
	CHECK(workloads_find(all, "p") == NULL);
	CHECK_INT(instances_find(fake.all, "p")->state, INSTANCE_STOPPING);
	fake_kill_keeper(1);
	FAKE_UNTIL(instances_find(fake.all, "p") == NULL);
	finish();
}

static void knows_what_died_with_its_keeper_meanwhile(void)
{
	struct workload *pod, *cell;

	begin();
	(void)running_pod("p");
	(void)running_cell("web");
	all = workloads_free(all);
	fake.all = instances_free(fake.all);
	store = run_store_close(store);
	image.n_users = 0;
	fake_kill_keeper(0);
	fake_kill_keeper(1);
	for (size_t i = 0; i < 2; i++) {
		siginfo_t si;

		CHECK_INT(waitid(P_PIDFD, (id_t)fake.keepers[i].pidfd, &si, WEXITED), 0);
	}
	open_daemon();
	pod = workloads_find(all, "p");
	cell = workloads_find(all, "web");
	resume();
	CHECK_INT(pod->state, WORKLOAD_FAILED);
	CHECK_STR(pod->reason, "its keeper ended while the daemon was away");
	CHECK_INT(cell->state, WORKLOAD_FAILED);
	CHECK_STR(cell->reason, "its keeper ended while the daemon was away");
	remove_well(pod);
	CHECK(instances_find(fake.all, "p") == NULL);
	CHECK_INT(instances_open_node(fake.all, NULL), 0);
	fake_turns();
	CHECK(cell->instance == NULL);
	remove_well(cell);
	finish();
}

UNIT_MAIN({ "tells_who_waits_when_the_daemon_ends", tells_who_waits_when_the_daemon_ends },
	  { "what_runs_goes_on", what_runs_goes_on },
	  { "a_start_that_was_cut_is_finished_or_undone",
	    a_start_that_was_cut_is_finished_or_undone },
	  { "a_stop_that_was_cut_is_finished", a_stop_that_was_cut_is_finished },
	  { "a_stop_that_was_cut_has_its_grace", a_stop_that_was_cut_has_its_grace },
	  { "a_record_without_an_instance_harms_nobody",
	    a_record_without_an_instance_harms_nobody },
	  { "an_instance_without_its_pod_is_ended", an_instance_without_its_pod_is_ended },
	  { "knows_what_died_with_its_keeper_meanwhile",
	    knows_what_died_with_its_keeper_meanwhile })
