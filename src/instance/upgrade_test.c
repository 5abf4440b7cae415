/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/upgrade.h"

#include "instance/fake_test.h"
#include "unit.h"

#define OTHER "00000000000000000000"

static void begin(void)
{
	struct instances_config config;
	struct error err = ERROR_INIT;

	fake_begin();
	config = fake_config();
	CHECK_INT(instances_new(&fake.all, &config, &err), 0);
}

static struct instance *create(struct instance *parent, const char *name)
{
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, parent, &(struct instance_spec){ .name = name }, NULL,
				  NULL, &i, &err),
		  0);
	return i;
}

static void say_build(struct instance *i, const char *build)
{
	struct fake_peer *f = fake_of(i->peer);

	(void)str_copy(f->hello.build, sizeof(f->hello.build), build);
	(void)str_copy(f->hello.version, sizeof(f->hello.version), "0.0.9");
}

static void synced(struct instance *i)
{
	struct fake_peer *f = fake_of(i->peer);

	f->events->on_synced(f->userdata);
}

/* READY, with a keeper of that build; what it has is told. */
static struct instance *built(struct instance *parent, const char *name, const char *build)
{
	struct instance *i = create(parent, name);
	struct error err = ERROR_INIT;
	char group[80];

	if (parent) {
		(void)str_printf(group, sizeof(group), "inst.%s", name);
		(void)fd_close(cgroup_make(parent->cgroup_fd, group, &err));
		fake_yes(parent, FAKE_SPAWN);
	}
	say_build(i, build);
	fake_yes(i, FAKE_OPEN);
	fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	synced(i);
	return i;
}

/* The keeper goes on as this build. */
static void go_on(struct instance *i)
{
	say_build(i, build_id());
	fake_yes(i, FAKE_UPGRADE);
}

static void asks_a_keeper_of_another_build(void)
{
	struct instance *a, *b;

	begin();
	a = built(NULL, "a", OTHER);
	b = built(NULL, "b", build_id());
	CHECK(upgrade_pending(a));
	CHECK(!upgrade_pending(b));
	CHECK(!instances_synced(fake.all));
	FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
	CHECK_STR(fake_asked(a, FAKE_UPGRADE)->name, build_id());
	CHECK(upgrade_pending(a));
	go_on(a);
	CHECK(!upgrade_pending(a));
	CHECK(instances_synced(fake.all));
	CHECK_STR(a->note, "");
	CHECK_INT(fake.n_noted, 1);
	fake_turns();
	CHECK_INT(fake_count(a, FAKE_UPGRADE), 0);
	CHECK_INT(fake_count(b, FAKE_UPGRADE), 0);
	fake_end_all();
}

/* Busy at once, busy after a while, and lost: nobody notes anything of it. */
static void asks_a_busy_one_again(void)
{
	static const enum error_kind kinds[] = { ERROR_ABORTED, ERROR_UNAVAILABLE };
	struct instance *a;

	begin();
	fake.n_refusals = 2;
	a = built(NULL, "a", OTHER);
	FAKE_UNTIL(fake.n_refusals == 0);
	for (size_t n = 0; n < ARRAY_SIZE(kinds); n++) {
		FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
		fake_answer(a, FAKE_UPGRADE, kinds[n]);
		/* Whoever waits for all to be synced does not wait for the next time. */
		CHECK(!upgrade_pending(a));
	}
	FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
	go_on(a);
	CHECK_STR(a->note, "");
	fake_end_all();
}

static void notes_one_that_stays_what_it_is(void)
{
	struct instance *a, *b;

	begin();
	a = built(NULL, "a", OTHER);
	FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
	fake_answer(a, FAKE_UPGRADE, ERROR_PRECONDITION);
	CHECK_STR(a->note, "its keeper goes on as build 000000000000 of version 0.0.9: the fake "
			   "refuses");
	fake_turns();
	CHECK_INT(fake_count(a, FAKE_UPGRADE), 0);

	/* From a time when that was not known. */
	b = create(NULL, "b");
	say_build(b, "");
	fake_of(b->peer)->hello.can_upgrade = false;
	fake_yes(b, FAKE_OPEN);
	synced(b);
	FAKE_UNTIL(b->note[0]);
	CHECK_STR(b->note, "its keeper goes on as build ? of version 0.0.9: that cannot be "
			   "exchanged in place");
	CHECK_INT(fake_count(b, FAKE_UPGRADE), 0);
	CHECK(instances_synced(fake.all));
	fake_end_all();
}

/* From the top down; of those that share a connection one at a time. */
static void takes_turns_on_a_connection(void)
{
	struct instance *a, *b, *c;

	begin();
	a = built(NULL, "a", build_id());
	b = built(a, "b", build_id());
	c = built(a, "c", build_id());
	/* Somebody else has exchanged all three. */
	for (struct instance *i = c;; i = i == c ? b : a) {
		say_build(i, OTHER);
		upgrade_consider(i);
		if (i == a)
			break;
	}
	FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
	fake_turns();
	CHECK_INT(fake_count(b, FAKE_UPGRADE) + fake_count(c, FAKE_UPGRADE), 0);
	go_on(a);
	FAKE_UNTIL(fake_asked(b, FAKE_UPGRADE) != NULL);
	fake_turns();
	CHECK_INT(fake_count(c, FAKE_UPGRADE), 0);
	go_on(b);
	FAKE_UNTIL(fake_asked(c, FAKE_UPGRADE) != NULL);
	go_on(c);
	CHECK(instances_synced(fake.all));
	fake_end_all();
}

static void asks_a_few_at_a_time(void)
{
	struct instance *all[UPGRADES_MAX + 2];
	unsigned n_asked;

	begin();
	for (size_t n = 0; n < ARRAY_SIZE(all); n++) {
		char name[8];

		(void)str_printf(name, sizeof(name), "i%zu", n);
		all[n] = built(NULL, name, OTHER);
	}
	for (size_t done = 0; done < ARRAY_SIZE(all); done++) {
		FAKE_UNTIL(fake_asked(all[done], FAKE_UPGRADE) != NULL);
		fake_turns();
		n_asked = 0;
		for (size_t n = 0; n < ARRAY_SIZE(all); n++)
			n_asked += fake_count(all[n], FAKE_UPGRADE);
		CHECK_INT(n_asked, MIN((size_t)UPGRADES_MAX, ARRAY_SIZE(all) - done));
		go_on(all[done]);
	}
	fake_end_all();
}

/* The place of one that ends while it is asked is free again. */
static void one_that_ends_meanwhile_holds_nobody_up(void)
{
	struct instance *a;

	begin();
	a = built(NULL, "a", OTHER);
	FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
	CHECK_INT(fake.all->n_upgrading, 1);
	fake_kill_keeper(0);
	FAKE_UNTIL(a->state == INSTANCE_FAILED);
	CHECK_INT(fake.all->n_upgrading, 0);
	CHECK(!upgrade_pending(a));
	fake_end_all();
}

/* ---- a connection that is lost, and made again (link.c) ---- */

static void is_as_before_when_it_is_connected_again(void)
{
	struct error err = ERROR_INIT;
	struct fake_peer *f;
	struct instance *a;

	begin();
	a = built(NULL, "a", build_id());
	f = fake_of(a->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "end of file");
	f->events->on_gap(f->userdata, &err);
	CHECK(instance_is_lost(a));
	CHECK_INT(a->state, INSTANCE_READY);
	/* It comes back as another build. */
	say_build(a, OTHER);
	f->events->on_back(f->userdata);
	synced(a);
	CHECK(!instance_is_lost(a));
	CHECK_INT(fake.n_synced, 1);
	FAKE_UNTIL(fake_asked(a, FAKE_UPGRADE) != NULL);
	go_on(a);
	CHECK_INT(a->state, INSTANCE_READY);
	fake_end_all();
}

static void is_left_alone_when_it_speaks_another_language(void)
{
	struct error err = ERROR_INIT;
	struct fake_peer *f;
	struct instance *a;

	begin();
	a = built(NULL, "a", build_id());
	f = fake_of(a->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "end of file");
	f->events->on_gap(f->userdata, &err);
	(void)error_refuse(&err, ERROR_PRECONDITION, "too far apart");
	f->events->on_lost(f->userdata, &err);
	CHECK(a->mute);
	CHECK(!instance_is_lost(a));
	CHECK_STR(a->note, "too far apart");
	fake_turns();
	CHECK_INT(a->state, INSTANCE_READY);
	fake_end_all();
}

static void ends_when_it_cannot_be_connected_again(void)
{
	struct error err = ERROR_INIT;
	struct fake_peer *f;
	struct instance *a;

	begin();
	a = built(NULL, "a", build_id());
	f = fake_of(a->peer);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "end of file");
	f->events->on_gap(f->userdata, &err);
	f->events->on_lost(f->userdata, &err);
	FAKE_UNTIL(a->state == INSTANCE_FAILED);
	CHECK_STR(a->reason, "the connection to its keeper was lost: end of file");
	fake_end_all();
}

UNIT_MAIN({ "asks_a_keeper_of_another_build", asks_a_keeper_of_another_build },
	  { "asks_a_busy_one_again", asks_a_busy_one_again },
	  { "notes_one_that_stays_what_it_is", notes_one_that_stays_what_it_is },
	  { "takes_turns_on_a_connection", takes_turns_on_a_connection },
	  { "asks_a_few_at_a_time", asks_a_few_at_a_time },
	  { "one_that_ends_meanwhile_holds_nobody_up", one_that_ends_meanwhile_holds_nobody_up },
	  { "is_as_before_when_it_is_connected_again", is_as_before_when_it_is_connected_again },
	  { "is_left_alone_when_it_speaks_another_language",
	    is_left_alone_when_it_speaks_another_language },
	  { "ends_when_it_cannot_be_connected_again", ends_when_it_cannot_be_connected_again })
