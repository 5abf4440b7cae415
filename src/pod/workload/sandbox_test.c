/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/sandbox.h"

#include "pod/workload/workload_bed_test.h"

static struct workload *ready_sandbox(struct told *told)
{
	struct workload_spec spec = {
		.kind = WORKLOAD_POD, .name = "s", .network = "own", .lasts = true
	};
	struct error err = ERROR_INIT;
	struct workload *w = NULL;

	CHECK_INT(workload_run(all, &spec, told_by, told, &w, &err), 0);
	CHECK_STR(err.text, "");
	fake_yes(w->instance, FAKE_OPEN);
	synced(w->instance);
	fake_turns();
	return w;
}

static struct pod_container *create(struct workload *w, const char *name, struct told *told)
{
	char *const words[] = { program, NULL };
	struct pod_container_spec spec = { .name = name, .image = "app", .command = words };
	struct error err = ERROR_INIT;
	struct pod_container *c = NULL;

	CHECK_INT(sandbox_create_container(w, &spec, NULL, told_by, told, &c, &err), 0);
	CHECK_STR(err.text, "");
	fake_turns();
	return c;
}

static void start(struct pod_container *c)
{
	struct told started = { .n = 0 };
	struct error err = ERROR_INIT;

	CHECK_INT(sandbox_start_container(c, told_by, &started, &err), 0);
	CHECK_INT(started.n, 0);
	for (size_t i = 0; i < c->workload->n_containers; i++)
		if (c->workload->containers[i] == c)
			start_answered(c->workload, i, CONTAINER_RUNNING);
	CHECK_INT(started.n, 1);
}

static void stop_and_remove(struct workload *w)
{
	struct told stopped = { .n = 0 }, down = { .n = 0 };

	workload_stop(w, 0, told_by, &stopped);
	CHECK_INT(sandbox_wait_down(w, told_by, &down), 0);
	fake_turns();
	CHECK_INT(stopped.n, 1);
	CHECK_INT(w->state, WORKLOAD_EXITED);
	CHECK_INT(down.n, 0);
	fake_kill_keeper(1);
	FAKE_UNTIL(down.n == 1);
	remove_well(w);
}

static void lives_without_a_container(void)
{
	struct told started = { .n = 0 };
	struct workload *w;

	begin();
	w = ready_sandbox(&started);
	CHECK_INT(started.n, 1);
	CHECK_INT(w->state, WORKLOAD_RUNNING);
	CHECK_INT(fake_count(w->instance, FAKE_START), 0);
	stop_and_remove(w);
	check_nothing_left();
	finish();
}

static void containers_come_and_go(void)
{
	struct told t = { .n = 0 }, created = { .n = 0 }, ended = { .n = 0 }, removed = { .n = 0 };
	struct error err = ERROR_INIT;
	struct pod_container *c, *other;
	struct workload *w;

	begin();
	w = ready_sandbox(&t);
	c = create(w, "one", &created);
	CHECK_INT(created.n, 1);
	CHECK_STR(pod_container_state_word(c), "created");
	start(c);
	CHECK_INT(c->status.state, CONTAINER_RUNNING);
	tell(w, 0, CONTAINER_EXITED);
	CHECK_INT(w->state, WORKLOAD_RUNNING);

	other = create(w, "two", &created);
	start(other);
	CHECK_INT(sandbox_stop_container(other, 0, NSEC_PER_SEC, told_by, &ended, &err), 0);
	CHECK_INT(fake_asked(w->instance, FAKE_SIGNAL)->sig, SIGINT);
	fake_yes(w->instance, FAKE_SIGNAL);
	/* A second call sends nothing, and hastens its end. */
	CHECK_INT(sandbox_stop_container(other, 0, NSEC_PER_MSEC, told_by, &ended, &err), 0);
	FAKE_UNTIL(fake_asked(w->instance, FAKE_SIGNAL) != NULL);
	CHECK_INT(fake_asked(w->instance, FAKE_SIGNAL)->sig, SIGKILL);
	fake_yes(w->instance, FAKE_SIGNAL);
	tell(w, 1, CONTAINER_EXITED);
	CHECK_INT(ended.n, 2);

	CHECK_INT(sandbox_remove_container(c, told_by, &removed, &err), 0);
	fake_turns();
	CHECK_INT(removed.n, 0);
	fake_yes(w->instance, FAKE_REMOVE);
	fake_turns();
	CHECK_INT(removed.n, 1);
	CHECK_INT(w->n_containers, 1);
	CHECK(w->containers[0] == other);
	/* The name is free. */
	c = create(w, "one", &created);
	CHECK_INT(c->position, 2);
	CHECK_INT(sandbox_remove_container(c, told_by, &removed, &err), 0);
	fake_turns();
	CHECK_INT(removed.n, 2);
	stop_and_remove(w);
	check_nothing_left();
	finish();
}

static void one_that_runs_is_killed_and_removed(void)
{
	struct told t = { .n = 0 }, removed = { .n = 0 };
	struct error err = ERROR_INIT;
	struct pod_container *c;
	struct workload *w;

	begin();
	w = ready_sandbox(&t);
	c = create(w, "one", &t);
	start(c);
	CHECK_INT(sandbox_remove_container(c, told_by, &removed, &err), 0);
	fake_turns();
	CHECK_INT(fake_asked(w->instance, FAKE_SIGNAL)->sig, SIGKILL);
	fake_yes(w->instance, FAKE_SIGNAL);
	tell(w, 0, CONTAINER_EXITED);
	fake_yes(w->instance, FAKE_REMOVE);
	fake_turns();
	CHECK_INT(removed.n, 1);
	CHECK_INT(w->n_containers, 0);
	CHECK_INT(n_rootfs, 0);
	stop_and_remove(w);
	check_nothing_left();
	finish();
}

static void refuses_what_it_cannot(void)
{
	char *const words[] = { program, NULL };
	struct pod_container_spec spec = { .name = "one", .image = "app", .command = words };
	struct told t = { .n = 0 };
	struct error err = ERROR_INIT;
	struct pod_container *c, *none = NULL;
	struct workload *w, *pod;

	begin();
	w = ready_sandbox(&t);
	c = create(w, "one", &t);
	CHECK_INT(sandbox_create_container(w, &spec, NULL, told_by, &t, &none, &err), -EEXIST);
	CHECK_INT(err.kind, ERROR_EXISTS);
	spec.name = "two";
	spec.image = "nothing";
	CHECK(sandbox_create_container(w, &spec, NULL, told_by, &t, &none, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK_INT(w->n_containers, 1);
	CHECK(sandbox_stop_container(c, 0, 0, told_by, &t, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	start(c);
	CHECK(sandbox_start_container(c, told_by, &t, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);

	pod = running_pod("p");
	spec.image = "app";
	CHECK(sandbox_create_container(pod, &spec, NULL, told_by, &t, &none, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(none == NULL);
	finish();
}

/* Its keeper dies, and so does all that is in it; one that was created never starts. */
static void a_dead_keeper_ends_it(void)
{
	struct told t = { .n = 0 };
	struct pod_container *c, *created;
	struct workload *w;

	begin();
	w = ready_sandbox(&t);
	c = create(w, "one", &t);
	start(c);
	created = create(w, "two", &t);
	fake_kill_keeper(1);
	FAKE_UNTIL(w->state == WORKLOAD_FAILED);
	CHECK_INT(c->status.state, CONTAINER_EXITED);
	CHECK_INT(created->status.state, CONTAINER_FAILED);
	CHECK_INT(created->phase, POD_CONTAINER_STARTED);
	FAKE_UNTIL(w->taken_down);
	remove_well(w);
	check_nothing_left();
	finish();
}

/* Words for the same file take each other's place; those that cannot be change nothing. */
static void limits_of_a_created_one_change(void)
{
	static char low[] = "memory.max=1", high[] = "memory.max=2", cpu[] = "cpu.max=1 2",
		    pids[] = "pids.max=1", io[] = "io.weight=1";
	struct told t = { .n = 0 };
	struct error err = ERROR_INIT;
	struct pod_container *c;
	struct workload *w;

	begin();
	w = ready_sandbox(&t);
	c = create(w, "one", &t);
	CHECK_INT(sandbox_limit_created(c, NULL, &err), 0);
	CHECK(!c->limits);
	CHECK_INT(sandbox_limit_created(c, (char *[]){ low, cpu, NULL }, &err), 0);
	CHECK_INT(sandbox_limit_created(c, (char *[]){ high, NULL }, &err), 0);
	CHECK_INT(strv_len(c->limits), 2);
	CHECK_STR(c->limits[0], "memory.max=2");
	CHECK(sandbox_limit_created(c, (char *[]){ pids, io, NULL }, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_INT(strv_len(c->limits), 2);
	start(c);
	err = (struct error)ERROR_INIT;
	CHECK(sandbox_limit_created(c, (char *[]){ low, NULL }, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	finish();
}

UNIT_MAIN({ "lives_without_a_container", lives_without_a_container },
	  { "containers_come_and_go", containers_come_and_go },
	  { "one_that_runs_is_killed_and_removed", one_that_runs_is_killed_and_removed },
	  { "refuses_what_it_cannot", refuses_what_it_cannot },
	  { "limits_of_a_created_one_change", limits_of_a_created_one_change },
	  { "a_dead_keeper_ends_it", a_dead_keeper_ends_it })
