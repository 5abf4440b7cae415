/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/instance.h"

#include "instance/fake_test.h"
#include "instance/place.h"
#include "unit.h"

/* ---- who waits ---- */

struct told {
	unsigned n;
	enum instance_state state;
	enum error_kind kind;
	int code;
	char text[ERROR_TEXT_MAX], field[ERROR_FIELD_MAX];
	bool remove;
};

static void told_by(void *userdata, struct instance *i, const struct error *err)
{
	struct told *t = userdata;

	t->n++;
	t->state = i->state;
	t->code = err ? err->code : 0;
	t->kind = err ? err->kind : ERROR_KIND_COUNT;
	(void)str_copy(t->text, sizeof(t->text), err ? err->text : "");
	(void)str_copy(t->field, sizeof(t->field), err ? err->field : "");
	if (t->remove && i->state == INSTANCE_FAILED)
		instance_remove(i);
}

static void begin(void)
{
	struct instances_config config;
	struct error err = ERROR_INIT;

	fake_begin();
	config = fake_config();
	CHECK_INT(instances_new(&fake.all, &config, &err), 0);
}

static struct instance *create(struct instance *parent, const char *name, struct told *told)
{
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, parent, &(struct instance_spec){ .name = name },
				  told ? told_by : NULL, told, &i, &err),
		  0);
	CHECK_STR(err.text, "");
	return i;
}

static struct instance *ready(const char *name)
{
	struct instance *i = create(NULL, name, NULL);

	fake_yes(i, FAKE_OPEN);
	fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	return i;
}

/* Below a READY one; its group is made as the keeper above would. */
static struct instance *nested(struct instance *parent, const char *name)
{
	struct instance *i = create(parent, name, NULL);
	struct error err = ERROR_INIT;
	char group[80];

	(void)str_printf(group, sizeof(group), "inst.%s", name);
	(void)fd_close(cgroup_make(parent->cgroup_fd, group, &err));
	fake_yes(parent, FAKE_SPAWN);
	fake_yes(i, FAKE_OPEN);
	fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	return i;
}

/* ---- birth ---- */

static void is_ready_when_it_said_hello(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = create(NULL, "a", &told);
	CHECK(instances_find(fake.all, "a") == i);
	CHECK(instances_find_id(fake.all, i->id) == i);
	fake_turns();
	CHECK_INT(told.n, 0);
	fake_yes(i, FAKE_OPEN);
	CHECK_INT(told.n, 0);
	fake_turns();
	CHECK_INT(told.n, 1);
	CHECK_INT(told.code, 0);
	CHECK_INT(told.state, INSTANCE_READY);
	CHECK(fake_exists("base/inst.a"));
	CHECK_STR(fake.states, "a:spawning a:ready ");
	fake_end_all();
}

/* A keeper that cannot be used is ended, and reaped, before anybody hears of it. */
static void ends_what_does_not_say_hello(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = create(NULL, "a", &told);
	fake_answer(i, FAKE_OPEN, ERROR_PRECONDITION);
	FAKE_UNTIL(told.n == 1);
	CHECK(!fake_unreaped(0));
	CHECK_INT(told.state, INSTANCE_FAILED);
	CHECK_INT(told.kind, ERROR_UNAVAILABLE);
	CHECK(strstr(told.text, "did not say hello: the fake refuses") != NULL);
	CHECK(!fake_exists("base/inst.a"));
	fake_end_all();
}

static void tells_why_a_keeper_died_before_hello(void)
{
	struct told told = { .n = 0 };
	struct instance *i;
	siginfo_t si;

	begin();
	i = create(NULL, "a", &told);
	(void)str_copy(fake.words, sizeof(fake.words), "cannot mount /proc");
	/* The connection breaks first; the process is to say why. It is dead by then, for on a busy
	 * machine it would take longer than the daemon's patience here. */
	fake_kill_keeper(0);
	CHECK_INT(waitid(P_PIDFD, (id_t)fake.keepers[0].pidfd, &si, WEXITED | WNOWAIT), 0);
	fake_answer(i, FAKE_OPEN, ERROR_UNAVAILABLE);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "instance a: its keeper was killed by signal 9: cannot mount /proc");
	fake_end_all();
}

static void fails_where_it_cannot_connect(void)
{
	struct told told = { .n = 0 };

	begin();
	fake.connect_error = -ECONNREFUSED;
	(void)create(NULL, "a", &told);
	CHECK_INT(told.n, 0);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(told.state, INSTANCE_FAILED);
	CHECK(!fake_unreaped(0));
	fake_end_all();
}

/* What whoever asked can do about it is told by the kind of what failed, and by its field. */
static void fails_as_what_failed_did(void)
{
	struct told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i, *below;

	begin();
	fake.connect_error = -ENOMEM;
	i = create(NULL, "a", &told);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(told.kind, ERROR_FAULT);
	CHECK_INT(told.code, -ENOMEM);
	CHECK(strstr(told.text, "instance a: ") == told.text);
	instance_remove(i);
	fake_turns();

	fake.connect_error = 0;
	i = ready("b");
	below = create(i, "c", &told);
	fake_answer(i, FAKE_SPAWN, ERROR_EXHAUSTED);
	FAKE_UNTIL(told.n == 2);
	CHECK_INT(told.kind, ERROR_EXHAUSTED);
	CHECK_STR(told.text, "instance b/c: the fake refuses");
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "it is gone");
	CHECK_INT(instance_blame(below, &err), told.code);
	CHECK_STR(err.text, "it is gone");
	/* Of one that was in order and ended there is nothing more to say. */
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "it is gone");
	fake_kill_keeper(fake.n_keepers - 1);
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	(void)instance_blame(i, &err);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	fake_end_all();
}

static void fails_without_the_limits_it_should_have(void)
{
	char word[] = "memory.max=1", *limits[] = { word, NULL };
	struct told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;

	begin();
	i = create(NULL, "a", &told);
	i->limits = strv_copy(limits);
	fake_yes(i, FAKE_OPEN);
	(void)error_field(&err, ERROR_PRECONDITION, "memory.max", "too little");
	fake_answer_with(i, FAKE_LIMIT, &err);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(told.kind, ERROR_PRECONDITION);
	CHECK_STR(told.field, "memory.max");
	CHECK_STR(told.text, "instance a: its limits: memory.max: too little");
	fake_end_all();
}

static void refuses_a_taken_path_and_too_many(void)
{
	struct error err = ERROR_INIT;
	struct instance *i;
	size_t n;

	begin();
	(void)ready("a");
	CHECK(instance_create(fake.all, NULL, &(struct instance_spec){ .name = "a" }, NULL, NULL,
			      &i, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXISTS);
	n = fake.all->by_id.n;
	fake.all->by_id.n = INSTANCES_MAX;
	CHECK(instance_create(fake.all, NULL, &(struct instance_spec){ .name = "b" }, NULL, NULL,
			      &i, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	fake.all->by_id.n = n;
	fake_end_all();
}

/* ---- the end ---- */

static void a_failed_one_keeps_its_name_until_it_is_removed(void)
{
	struct told told = { .n = 0 }, stop = { .n = 0, .remove = true };
	struct instance *i;

	begin();
	i = ready("a");
	fake.n_busy = 2;
	fake_kill_keeper(0);
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "its keeper was killed by signal 9");
	CHECK(i->peer == NULL);
	instance_stop(i, told_by, &told);
	instance_stop(i, told_by, &stop);
	CHECK_INT(told.n, 0);
	FAKE_UNTIL(told.n == 1 && stop.n == 1);
	CHECK_INT(fake.n_busy, 0);
	CHECK(!fake_exists("base/inst.a"));
	CHECK(instances_find(fake.all, "a") == NULL);
	CHECK_INT(fake.n_forgotten, 1);
	(void)ready("a");
	fake_end_all();
}

/* Both remove it: the second finds it gone. */
static void two_that_wait_may_both_remove(void)
{
	struct told one = { .remove = true }, two = { .remove = true };
	struct instance *i;

	begin();
	i = ready("a");
	fake_kill_keeper(0);
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	instance_stop(i, told_by, &one);
	instance_stop(i, told_by, &two);
	FAKE_UNTIL(one.n == 1 && two.n == 1);
	CHECK_INT(one.state, INSTANCE_FAILED);
	CHECK_INT(two.state, INSTANCE_GONE);
	fake_turns();
	CHECK(list_empty(instances_list(fake.all)));
	fake_end_all();
}

static void a_failed_spawn_that_is_removed_at_once_leaves_nothing(void)
{
	struct told told = { .remove = true };

	begin();
	fake.n_busy = 3;
	(void)create(NULL, "a", &told);
	fake_kill_keeper(0);
	FAKE_UNTIL(told.n == 1);
	fake_turns();
	CHECK(!fake_exists("base/inst.a"));
	CHECK(list_empty(instances_list(fake.all)));
	fake_end_all();
}

static void stops(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = ready("a");
	instance_stop(i, told_by, &told);
	CHECK_INT(i->state, INSTANCE_STOPPING);
	fake_yes(i, FAKE_SHUTDOWN);
	fake_turns();
	CHECK_INT(told.n, 0);
	fake_kill_keeper(0);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(told.state, INSTANCE_GONE);
	CHECK_INT(told.code, 0);
	CHECK_STR(fake.states, "a:spawning a:ready a:stopping a:removed ");
	CHECK(instances_find(fake.all, "a") == NULL);
	CHECK(!fake_exists("base/inst.a"));
	fake_end_all();
}

/* Hello comes while it is told to end already: whoever waits for the end must not wait for ever. */
static void stops_during_the_start_what_does_not_obey(void)
{
	struct told made = { .n = 0 }, stopped = { .n = 0 };
	struct instance *i;

	begin();
	i = create(NULL, "a", &made);
	instance_stop(i, told_by, &stopped);
	fake_yes(i, FAKE_OPEN);
	CHECK_INT(i->state, INSTANCE_STOPPING);
	FAKE_UNTIL(stopped.n == 1);
	CHECK_INT(made.n, 1);
	CHECK_INT(made.kind, ERROR_ABORTED);
	CHECK_INT(stopped.code, 0);
	CHECK_INT(stopped.state, INSTANCE_GONE);
	fake_end_all();
}

static void ends_also_without_memory_to_wait(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = ready("a");
	fake.fail_calloc = 1;
	instance_stop(i, told_by, &told);
	CHECK_INT(told.n, 1);
	CHECK_INT(told.code, -ENOMEM);
	CHECK_INT(i->state, INSTANCE_STOPPING);
	fake_kill_keeper(0);
	FAKE_UNTIL(instances_find(fake.all, "a") == NULL);
	CHECK_INT(told.n, 1);
	fake_end_all();
}

static void kills_a_keeper_whose_connection_is_lost(void)
{
	struct error err = ERROR_INIT;
	struct instance *i;
	struct fake_peer *f;

	begin();
	i = ready("a");
	f = fake_of(i->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "end of file");
	f->events->on_lost(f->userdata, &err);
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "the connection to its keeper was lost: end of file");
	CHECK(!fake_unreaped(0));
	fake_end_all();
}

static void tells_who_waits_when_the_daemon_ends(void)
{
	struct told made = { .n = 0 }, stopped = { .n = 0 };

	begin();
	(void)create(NULL, "a", &made);
	instance_stop(ready("b"), told_by, &stopped);
	fake_end_all();
	CHECK_INT(made.n, 1);
	CHECK_INT(made.kind, ERROR_UNAVAILABLE);
	CHECK_INT(stopped.n, 1);
	CHECK_INT(stopped.kind, ERROR_UNAVAILABLE);
}

/* ---- nested ---- */

static void a_nested_one_ends_with_what_is_around_it(void)
{
	struct instance *a, *b, *c;

	begin();
	a = ready("a");
	b = nested(a, "b");
	c = nested(b, "c");
	fake_kill_keeper(0);
	FAKE_UNTIL(a->state == INSTANCE_FAILED);
	CHECK_INT(b->state, INSTANCE_FAILED);
	CHECK_STR(b->reason, "the instance a around it ended: its keeper was killed by signal 9");
	CHECK_INT(c->state, INSTANCE_FAILED);
	CHECK(strstr(c->reason, "the instance a/b around it ended") != NULL);
	instance_remove(a);
	fake_turns();
	CHECK(instances_find(fake.all, "a") == NULL);
	/* Their parent is gone, they can still be stopped and removed. */
	CHECK(b->parent == NULL);
	instance_stop(b, NULL, NULL);
	instance_remove(b);
	instance_remove(c);
	fake_turns();
	CHECK(list_empty(instances_list(fake.all)));
	fake_end_all();
}

/* The one below is being made, or ended, while that around it is stopped: nothing may call back. */
static void is_stopped_while_one_below_is_made(void)
{
	struct told made = { .n = 0 }, stopped = { .n = 0 }, ended = { .n = 0 };
	struct instance *a, *c;

	begin();
	a = ready("a");
	c = nested(a, "c");
	(void)create(a, "b", &made);
	instance_stop(c, told_by, &ended);
	instance_stop(a, told_by, &stopped);
	fake_kill_keeper(0);
	FAKE_UNTIL(stopped.n == 1);
	fake_turns();
	CHECK_INT(made.n, 1);
	CHECK_INT(made.kind, ERROR_ABORTED);
	CHECK_INT(ended.n, 1);
	CHECK_INT(ended.code, 0);
	CHECK(list_empty(instances_list(fake.all)));
	fake_end_all();
}

static void waits_for_the_answer_to_end_before_it_is_freed(void)
{
	struct told told = { .n = 0 };
	struct instance *a, *b;
	struct fake_peer *f;

	begin();
	a = ready("a");
	b = nested(a, "b");
	f = fake_of(a->peer);
	instance_stop(b, told_by, &told);
	/* It has ended by itself in the same moment. */
	f->events->on_child_end(f->userdata, "b", "killed");
	fake_turns();
	CHECK_INT(told.n, 1);
	CHECK_INT(told.state, INSTANCE_GONE);
	/* The name is free, although the answer is still to come. */
	b = create(a, "b", NULL);
	fake_yes(a, FAKE_END);
	fake_turns();
	CHECK(instances_find(fake.all, "a/b") == b);
	CHECK_INT(b->state, INSTANCE_SPAWNING);
	fake_answer(a, FAKE_SPAWN, ERROR_FAULT);
	fake_turns();
	CHECK_INT(b->state, INSTANCE_FAILED);
	CHECK_STR(b->reason, "the fake refuses");
	fake_end_all();
}

static void a_nested_one_is_stopped_while_it_is_made(void)
{
	struct told made = { .n = 0 }, stopped = { .n = 0 };
	struct instance *a, *b;

	begin();
	a = ready("a");
	b = create(a, "b", &made);
	instance_stop(b, told_by, &stopped);
	fake_yes(a, FAKE_SPAWN);
	CHECK(b->peer == NULL);
	fake_turns();
	CHECK_INT(stopped.n, 0);
	fake_yes(a, FAKE_END);
	fake_turns();
	CHECK_INT(stopped.n, 1);
	CHECK_INT(made.n, 1);
	CHECK_INT(made.kind, ERROR_ABORTED);
	CHECK(instances_find(fake.all, "a/b") == NULL);
	fake_end_all();
}

static void the_keeper_above_says_why(void)
{
	struct error err = ERROR_INIT;
	struct instance *a, *b;
	struct fake_peer *f;

	begin();
	a = ready("a");
	b = nested(a, "b");
	f = fake_of(b->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "end of file");
	f->events->on_lost(f->userdata, &err);
	fake_turns();
	CHECK_INT(b->state, INSTANCE_READY);
	f = fake_of(a->peer);
	f->events->on_child_end(f->userdata, "b", "keeper of b was killed by signal 9");
	fake_turns();
	CHECK_INT(b->state, INSTANCE_FAILED);
	CHECK_STR(b->reason, "keeper of b was killed by signal 9");
	fake_end_all();
}

/* Where the keeper above does not answer either, it is over after a while. */
static void a_nested_one_that_is_lost_is_ended(void)
{
	struct error err = ERROR_INIT;
	struct instance *a, *b;
	struct fake_peer *f;

	begin();
	a = ready("a");
	b = nested(a, "b");
	f = fake_of(b->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "end of file");
	f->events->on_lost(f->userdata, &err);
	FAKE_UNTIL(fake_asked(a, FAKE_END) != NULL);
	FAKE_UNTIL(b->state == INSTANCE_FAILED);
	CHECK_STR(b->reason, "the connection to its keeper was lost: end of file");
	instance_remove(b);
	fake_turns();
	fake_yes(a, FAKE_END);
	fake_turns();
	CHECK_INT(a->state, INSTANCE_READY);
	fake_end_all();
}

static void gives_up_on_a_spawn_that_is_never_answered(void)
{
	struct told made = { .n = 0 };
	struct instance *a;

	begin();
	a = ready("a");
	(void)create(a, "b", &made);
	FAKE_UNTIL(fake_asked(a, FAKE_END) != NULL);
	fake_yes(a, FAKE_END);
	fake_turns();
	CHECK_INT(made.n, 1);
	CHECK(strstr(made.text, "its keeper did not answer") != NULL);
	fake_yes(a, FAKE_SPAWN);
	fake_turns();
	fake_end_all();
}

/* ---- an earlier life ---- */

static struct instance *adopt(const char *path, enum instance_state state, bool alive)
{
	struct error err = ERROR_INIT;
	struct instance_record r = {
		.id = "00000000000000aa", .path = path, .owner = "", .reason = "", .state = state
	};
	char cgroup[128], name[128];
	int fd;

	(void)str_printf(name, sizeof(name), "%s%s", *path ? "inst." : "node", path);
	(void)str_printf(cgroup, sizeof(cgroup), "base/%s", name);
	r.cgroup = cgroup;
	if (state == INSTANCE_FAILED)
		r.reason = "its keeper had enough";
	fd = cgroup_make(fake.cgroup_fd, name, &err);
	if (alive) {
		r.pid = fake_process();
		(void)fake_keeper_add(fd, r.pid);
		CHECK_INT(process_start_time(-1, r.pid, &r.start_time), 0);
	}
	(void)fd_close(fd);
	CHECK_INT(instance_adopt(fake.all, &r, &err), 0);
	return instances_find(fake.all, path);
}

static void takes_a_living_one_up_again(void)
{
	struct instance *i;
	struct fake_peer *f;

	begin();
	i = adopt("a", INSTANCE_READY, true);
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK(!instances_synced(fake.all));
	fake_yes(i, FAKE_OPEN);
	f = fake_of(i->peer);
	f->events->on_synced(f->userdata);
	CHECK(instances_synced(fake.all));
	CHECK_INT(fake.n_synced, 1);
	fake_kill_keeper(0);
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	fake_end_all();
}

static void ends_what_was_half_done(void)
{
	static const enum instance_state states[] = { INSTANCE_SPAWNING, INSTANCE_STOPPING };

	for (size_t n = 0; n < ARRAY_SIZE(states); n++) {
		struct instance *i;

		begin();
		i = adopt("a", states[n], true);
		/* One that was being made leaves no record. */
		CHECK((i == NULL) == (states[n] == INSTANCE_SPAWNING));
		if (i) {
			CHECK_INT(i->state, INSTANCE_FAILED);
			CHECK_STR(i->reason, "the daemon was restarted while it was stopping");
		}
		CHECK(instances_synced(fake.all));
		CHECK(!fake_exists("base/inst.a"));
		FAKE_UNTIL(fake_unreaped(0));
		fake_end_all();
	}
}

/* The keeper above may come to make it only now: it is asked to end it, and nobody takes the name
 * before that has answered. */
static void asks_for_the_end_of_a_nested_one_that_was_half_done(void)
{
	static const struct {
		enum instance_state state;
		const char *owner, *reason; /* reason NULL: it leaves no record */
	} tries[] = {
		{ INSTANCE_SPAWNING, "", NULL },
		{ INSTANCE_SPAWNING, "1", "the daemon was restarted while it was spawning" },
		{ INSTANCE_STOPPING, "", "the daemon was restarted while it was stopping" },
		{ INSTANCE_STOPPING, "1", "the daemon was restarted while it was stopping" },
	};

	for (size_t n = 0; n < ARRAY_SIZE(tries); n++) {
		struct error err = ERROR_INIT;
		struct instance_record r = { .id = "00000000000000bb",
					     .path = "a/b",
					     .owner = tries[n].owner,
					     .reason = "",
					     .cgroup = "base/inst.a/inst.b",
					     .state = tries[n].state };
		struct instance *a, *b;

		begin();
		a = ready("a");
		CHECK_INT(instance_adopt(fake.all, &r, &err), 0);
		FAKE_UNTIL(fake_asked(a, FAKE_END) != NULL);
		CHECK_STR(fake_asked(a, FAKE_END)->name, "b");
		b = instances_find(fake.all, "a/b");
		CHECK(b && !b->ended);
		CHECK(!instances_synced(fake.all));
		fake_yes(a, FAKE_END);
		FAKE_UNTIL(instances_find(fake.all, "a/b") == NULL || b->ended);
		b = instances_find(fake.all, "a/b");
		CHECK((b != NULL) == (tries[n].reason != NULL));
		if (b) {
			CHECK_INT(b->state, INSTANCE_FAILED);
			CHECK_STR(b->reason, tries[n].reason);
		}
		CHECK_INT(a->state, INSTANCE_READY);
		fake_end_all();
	}
}

static void knows_one_that_died_meanwhile(void)
{
	struct instance *i;

	begin();
	(void)str_copy(fake.words, sizeof(fake.words), "shut down");
	i = adopt("a", INSTANCE_READY, false);
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "its keeper ended while the daemon was away: shut down");
	CHECK(!fake_exists("base/inst.a"));
	fake_end_all();
}

static void cleans_up_behind_a_failed_one(void)
{
	struct instance *i;

	begin();
	i = adopt("a", INSTANCE_FAILED, false);
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "its keeper had enough");
	CHECK(instances_synced(fake.all));
	CHECK(!fake_exists("base/inst.a"));
	fake_end_all();
}

/* "x/b" must not be taken for "b". */
static void one_without_its_parent_touches_nobody(void)
{
	struct error err = ERROR_INIT;
	struct instance_record r = { .id = "00000000000000bb",
				     .path = "x/b",
				     .owner = "",
				     .reason = "",
				     .cgroup = "base/inst.x/inst.b",
				     .state = INSTANCE_READY };
	struct instance *b;

	begin();
	b = ready("b");
	CHECK_INT(instance_adopt(fake.all, &r, &err), 0);
	fake_turns();
	CHECK(fake_exists("base/inst.b"));
	CHECK_INT(instances_find(fake.all, "x/b")->state, INSTANCE_FAILED);
	CHECK_INT(b->state, INSTANCE_READY);
	fake_end_all();
}

static void sweeps_what_nobody_knows(void)
{
	struct error err = ERROR_INIT;

	begin();
	(void)ready("a");
	(void)fd_close(cgroup_make(fake.cgroup_fd, "inst.stray", &err));
	(void)fd_close(cgroup_make(fake.all->keepers_fd, "0123456789abcdef", &err));
	instances_sweep(fake.all);
	CHECK(fake_exists("base/inst.a"));
	CHECK(!fake_exists("base/inst.stray"));
	CHECK(!fake_exists("i/0123456789abcdef"));
	fake_end_all();
}

/* ---- the node ---- */

static void the_node_gets_another_keeper(void)
{
	struct told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *node;
	char id[ID_SIZE];

	begin();
	CHECK_INT(instances_open_node(fake.all, &err), 0);
	node = instances_find(fake.all, "");
	fake_yes(node, FAKE_OPEN);
	CHECK_INT(node->state, INSTANCE_READY);
	CHECK(fake_exists("base/node"));
	(void)str_copy(id, sizeof(id), node->id);
	fake.n_busy = 2;
	fake_kill_keeper(0);
	FAKE_UNTIL(node->state == INSTANCE_FAILED);
	instance_stop(node, told_by, &told);
	FAKE_UNTIL(told.n == 1);
	CHECK(!fake_exists("base/node"));
	CHECK(!fake_exists("node"));
	CHECK_INT(instances_open_node(fake.all, &err), 0);
	/* The record of the last one would hide the new one from the next daemon. */
	CHECK_STR(fake.forgotten, id);
	fake_turns();
	node = instances_find(fake.all, "");
	CHECK(node && node->state == INSTANCE_SPAWNING);
	CHECK(fake_exists("base/node"));
	fake_end_all();
}

UNIT_MAIN({ "is_ready_when_it_said_hello", is_ready_when_it_said_hello },
	  { "ends_what_does_not_say_hello", ends_what_does_not_say_hello },
	  { "tells_why_a_keeper_died_before_hello", tells_why_a_keeper_died_before_hello },
	  { "fails_where_it_cannot_connect", fails_where_it_cannot_connect },
	  { "fails_as_what_failed_did", fails_as_what_failed_did },
	  { "fails_without_the_limits_it_should_have", fails_without_the_limits_it_should_have },
	  { "refuses_a_taken_path_and_too_many", refuses_a_taken_path_and_too_many },
	  { "a_failed_one_keeps_its_name_until_it_is_removed",
	    a_failed_one_keeps_its_name_until_it_is_removed },
	  { "two_that_wait_may_both_remove", two_that_wait_may_both_remove },
	  { "a_failed_spawn_that_is_removed_at_once_leaves_nothing",
	    a_failed_spawn_that_is_removed_at_once_leaves_nothing },
	  { "stops", stops },
	  { "stops_during_the_start_what_does_not_obey",
	    stops_during_the_start_what_does_not_obey },
	  { "ends_also_without_memory_to_wait", ends_also_without_memory_to_wait },
	  { "kills_a_keeper_whose_connection_is_lost", kills_a_keeper_whose_connection_is_lost },
	  { "tells_who_waits_when_the_daemon_ends", tells_who_waits_when_the_daemon_ends },
	  { "a_nested_one_ends_with_what_is_around_it", a_nested_one_ends_with_what_is_around_it },
	  { "is_stopped_while_one_below_is_made", is_stopped_while_one_below_is_made },
	  { "waits_for_the_answer_to_end_before_it_is_freed",
	    waits_for_the_answer_to_end_before_it_is_freed },
	  { "a_nested_one_is_stopped_while_it_is_made", a_nested_one_is_stopped_while_it_is_made },
	  { "the_keeper_above_says_why", the_keeper_above_says_why },
	  { "a_nested_one_that_is_lost_is_ended", a_nested_one_that_is_lost_is_ended },
	  { "gives_up_on_a_spawn_that_is_never_answered",
	    gives_up_on_a_spawn_that_is_never_answered },
	  { "takes_a_living_one_up_again", takes_a_living_one_up_again },
	  { "ends_what_was_half_done", ends_what_was_half_done },
	  { "asks_for_the_end_of_a_nested_one_that_was_half_done",
	    asks_for_the_end_of_a_nested_one_that_was_half_done },
	  { "knows_one_that_died_meanwhile", knows_one_that_died_meanwhile },
	  { "cleans_up_behind_a_failed_one", cleans_up_behind_a_failed_one },
	  { "one_without_its_parent_touches_nobody", one_without_its_parent_touches_nobody },
	  { "sweeps_what_nobody_knows", sweeps_what_nobody_knows },
	  { "the_node_gets_another_keeper", the_node_gets_another_keeper })
