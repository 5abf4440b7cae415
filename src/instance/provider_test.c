/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/provider.h"

#include "instance/choose.h"
#include "instance/end.h"
#include "instance/fake_test.h"
#include "instance/link.h"
#include "instance/pids.h"
#include "instance/place.h"
#include "unit.h"

/*
 * A second kind, given from above: its machine is a process that sleeps, its keeper a fake peer.
 */

static struct {
	struct provider provider;
	const char *refusal;
	bool preferred;
	int fail_create;
	bool late;
	unsigned n_killed, n_closed;
	void *closed;
	bool no_tools, too_small;
	unsigned n_disks, n_dropped;
	peer_done_fn put;
	void *put_userdata;
} kind;

static int other_plan(struct provider *p, struct error *err)
{
	CHECK(p == &kind.provider);
	return kind.refusal ? error_refuse(err, ERROR_PRECONDITION, "%s", kind.refusal) : 0;
}

static int other_plan_nested(struct provider *p, const struct instance *around,
			     const struct instance_size *wish, struct instance_machine *ret,
			     struct error *err)
{
	if (kind.too_small)
		return error_refuse(err, ERROR_PRECONDITION, "%s is too small", around->path);
	*ret = (struct instance_machine){ .memory = wish->memory + 1, .room = 1, .cpus = 1 };
	return 0;
}

static int other_open_tools(struct provider *p, struct error *err)
{
	return kind.no_tools ? error_refuse(err, ERROR_PRECONDITION, "nobody has made its disk")
			     : eventfd(0, EFD_CLOEXEC);
}

static int other_put_disk(struct instance *i, const char *name, int fd,
			  char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
			  struct error *err)
{
	CHECK_STR(i->path, "a");
	kind.n_disks++;
	kind.put = done;
	kind.put_userdata = userdata;
	return str_copy(ret_serial, INSTANCE_SERIAL_SIZE, "slot7");
}

static void other_drop_disk(struct instance *i, const char *name)
{
	kind.n_dropped++;
}

static bool other_is_preferred(struct provider *p, char *ret, size_t size)
{
	(void)str_copy(ret, size, kind.preferred ? "a guest was booted" : "no guest was booted");
	return kind.preferred;
}

static int other_draw(struct instance *i)
{
	return id_new(i->id);
}

static void other_withdraw(struct instance *i)
{
}

static void other_on_child(struct loop_child *child, int code, int status)
{
	struct instance *i = container_of(child, struct instance, child);

	instance_ended(i, "its machine has ended");
}

static void other_start(struct instance *i)
{
	i->pid = fake_process();
	CHECK(i->pid > 0);
	i->pidfd = fcntl(fake_keeper_add(i->cgroup_fd, i->pid), F_DUPFD_CLOEXEC, 3);
	i->own = &kind;
	loop_child_init(&i->child, i->all->config.loop, i->pidfd, other_on_child);
}

static int other_create(struct instance *i, struct error *err)
{
	int r = place_make_dir(i, err);

	if (r == 0)
		r = place_open_cgroup(i, err);
	if (r < 0)
		return r;
	if (kind.fail_create)
		return error_set(err, kind.fail_create, "start its machine");
	if (kind.late)
		return 1;
	other_start(i);
	return 0;
}

static int other_connect(struct instance *i, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	*ret_fd_fd = -1;
	*ret_rpc_fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

static int other_adopt(struct instance *i, pid_t pid, unsigned long long start_time,
		       struct error *err)
{
	return error_refuse(err, ERROR_UNAVAILABLE, "its machine ended meanwhile");
}

static void other_kill(struct instance *i)
{
	kind.n_killed++;
	(void)cgroup_kill(i->cgroup_fd);
}

static void other_close(struct instance *i)
{
	if (!i->own)
		return;
	kind.closed = i->own;
	kind.n_closed++;
	i->own = NULL;
}

static const char *const other_names[] = { "machine", NULL };

static const struct provider_ops other_ops = {
	.hello_limit = 20 * NSEC_PER_SEC,
	.stop_grace = 10 * NSEC_PER_SEC,
	.leaves = other_names,
	.sockets = other_names,
	.plan = other_plan,
	.plan_nested = other_plan_nested,
	.open_tools = other_open_tools,
	.put_disk = other_put_disk,
	.drop_disk = other_drop_disk,
	.is_preferred = other_is_preferred,
	.draw = other_draw,
	.withdraw = other_withdraw,
	.create = other_create,
	.connect = other_connect,
	.adopt = other_adopt,
	.kill = other_kill,
	.close = other_close,
};

static void begin(bool with_other)
{
	struct instances_config config;
	struct error err = ERROR_INIT;

	fake_begin();
	memset(&kind, 0, sizeof(kind));
	kind.provider.ops = &other_ops;
	config = fake_config();
	if (with_other)
		config.providers[INSTANCE_VM] = &kind.provider;
	CHECK_INT(instances_new(&fake.all, &config, &err), 0);
}

struct told {
	unsigned n;
	char text[ERROR_TEXT_MAX];
};

static void told_by(void *userdata, struct instance *i, const struct error *err)
{
	struct told *t = userdata;

	t->n++;
	(void)str_copy(t->text, sizeof(t->text), err ? err->text : "");
}

static struct instance *create(struct instance *parent, const char *name, enum instance_kind k,
			       struct told *told)
{
	const struct instance_spec spec = { .name = name, .choice = { .kind = k, .reason = "so" } };
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, parent, &spec, told ? told_by : NULL, told, &i, &err),
		  0);
	return i;
}

static struct instance *ready(const char *name)
{
	struct instance *i = create(NULL, name, INSTANCE_VM, NULL);

	fake_yes(i, FAKE_OPEN);
	fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	return i;
}

/* ---- the choice ---- */

static void chosen(const struct instance *parent, enum instance_kind wish, enum instance_kind is,
		   const char *why)
{
	struct instance_choice choice;
	struct error err = ERROR_INIT;

	CHECK_INT(instances_choose(fake.all, parent, wish, &choice, &err), 0);
	CHECK_INT(choice.kind, is);
	CHECK_STR(choice.reason, why);
}

static void refused(const struct instance *parent, enum instance_kind wish, const char *why)
{
	struct instance_choice choice;
	struct error err = ERROR_INIT;

	CHECK(instances_choose(fake.all, parent, wish, &choice, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, why);
}

static void chooses_what_there_is(void)
{
	begin(false);
	chosen(NULL, INSTANCE_CELL, INSTANCE_CELL, "it was asked for by name");
	chosen(NULL, INSTANCE_KIND_COUNT, INSTANCE_CELL,
	       "this build has no microVMs, so auto is an isolated cell");
	refused(NULL, INSTANCE_VM, "this build has no provider \"vm\", only \"cell\"");
	fake_end_all();
}

static void chooses_what_is_preferred(void)
{
	struct instance *i;

	begin(true);
	chosen(NULL, INSTANCE_VM, INSTANCE_VM, "it was asked for by name");
	chosen(NULL, INSTANCE_KIND_COUNT, INSTANCE_CELL,
	       "no guest was booted, so auto is an isolated cell");
	kind.preferred = true;
	chosen(NULL, INSTANCE_KIND_COUNT, INSTANCE_VM, "a guest was booted");
	chosen(NULL, INSTANCE_CELL, INSTANCE_CELL, "it was asked for by name");
	kind.refusal = "there is no guest set";
	refused(NULL, INSTANCE_VM, "there is no guest set");
	kind.refusal = NULL;
	i = ready("a");
	chosen(i, INSTANCE_KIND_COUNT, INSTANCE_CELL,
	       "below another instance one of its own kernel is made by name only, so auto is an "
	       "isolated "
	       "cell");
	chosen(i, INSTANCE_CELL, INSTANCE_CELL, "it was asked for by name");
	i->choice.kind = INSTANCE_CELL;
	refused(i, INSTANCE_VM,
		"one of kind \"vm\" can be made below the node, and below an instance of kind "
		"\"vm\" "
		"of the node itself; a is a cell");
	i->choice.kind = INSTANCE_VM;
	chosen(i, INSTANCE_VM, INSTANCE_VM, "it was asked for by name");
	kind.no_tools = true;
	refused(i, INSTANCE_VM, "nobody has made its disk");
	fake_end_all();
}

/* ---- its life ---- */

static void lives_as_its_provider_makes_it(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin(true);
	i = ready("a");
	CHECK(i->provider == &kind.provider);
	CHECK_STR(instance_kind_word(i->choice.kind), "vm");
	CHECK(instance_is_remote(i));
	CHECK(fake_exists("base/inst.a"));
	CHECK_INT(instance_container_pid(i, "cell.x/main", 7, false), 0);
	instance_stop(i, told_by, &told);
	CHECK_INT(fake_count(i, FAKE_SHUTDOWN), 1);
	CHECK_INT(kind.n_killed, 0);
	/* It does not obey. */
	FAKE_UNTIL(told.n == 1);
	CHECK(kind.n_killed >= 1);
	CHECK_INT(kind.n_closed, 1);
	CHECK(kind.closed == &kind);
	CHECK(!fake_exists("base/inst.a"));
	CHECK_STR(fake.states, "a:spawning a:ready a:stopping a:removed ");
	fake_end_all();
}

static struct instance *limited(const char *name, struct told *told)
{
	char word[] = "pids.max=7", *words[] = { word, NULL };
	const struct instance_spec spec = { .name = name,
					    .limits = words,
					    .choice = { .kind = INSTANCE_VM } };
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, NULL, &spec, told_by, told, &i, &err), 0);
	FAKE_UNTIL(fake_asked(i, FAKE_OPEN));
	CHECK(!fake_asked(i, FAKE_LIMIT));
	fake_yes(i, FAKE_OPEN);
	return i;
}

static void is_not_ready_without_its_limits(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin(true);
	i = limited("a", &told);
	CHECK_STR(fake_asked(i, FAKE_LIMIT)->name, "pids.max=7");
	CHECK_INT(i->state, INSTANCE_SPAWNING);
	fake_yes(i, FAKE_LIMIT);
	CHECK_INT(i->state, INSTANCE_READY);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "");
	told.n = 0;
	i = limited("b", &told);
	fake_answer(i, FAKE_LIMIT, ERROR_PRECONDITION);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK(i->broken);
	fake_end_all();
}

static void fails_as_its_machine_does(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin(true);
	kind.fail_create = -ENOSPC;
	(void)create(NULL, "a", INSTANCE_VM, &told);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "instance a: start its machine: No space left on device");
	CHECK(!fake_exists("base/inst.a"));
	kind.fail_create = 0;
	i = ready("b");
	fake_kill_keeper(0);
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "its machine has ended");
	CHECK_INT(kind.n_closed, 1);
	fake_end_all();
}

static void may_be_made_later(void)
{
	struct told told = { .n = 0 };
	struct instance *i;
	unsigned n;

	begin(true);
	kind.late = true;
	i = create(NULL, "a", INSTANCE_VM, &told);
	fake_turns();
	CHECK(i->peer == NULL);
	CHECK_INT(i->state, INSTANCE_SPAWNING);
	other_start(i);
	n = fake.n_saved;
	instance_made(i);
	CHECK_INT(fake.n_saved, n + 1);
	fake_yes(i, FAKE_OPEN);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "");
	CHECK_INT(i->state, INSTANCE_READY);

	/* One that cannot be, after all. */
	i = create(NULL, "b", INSTANCE_VM, &told);
	instance_break(i, "no room for its machine");
	FAKE_UNTIL(told.n == 2);
	CHECK_STR(told.text, "instance b: no room for its machine");
	CHECK(!fake_exists("base/inst.b"));

	/* One that takes too long. */
	i = create(NULL, "c", INSTANCE_VM, &told);
	FAKE_UNTIL(told.n == 3);
	CHECK_STR(told.text, "instance c: its keeper did not answer");
	CHECK_INT(i->state, INSTANCE_FAILED);

	/* One that is stopped meanwhile. */
	i = create(NULL, "d", INSTANCE_VM, &told);
	instance_stop(i, NULL, NULL);
	FAKE_UNTIL(told.n == 4);
	CHECK_INT(kind.n_killed, 0);
	CHECK(!fake_exists("base/inst.d"));
	fake_end_all();
}

/* What is not there on this kernel is neither looked for nor told. */
static void one_below_has_nothing_here(void)
{
	struct instance *i, *below, *deeper;

	begin(true);
	i = ready("a");
	below = create(i, "b", INSTANCE_CELL, NULL);
	fake_yes(i, FAKE_SPAWN);
	fake_yes(below, FAKE_OPEN);
	fake_turns();
	CHECK_INT(below->state, INSTANCE_READY);
	CHECK(instance_is_remote(below));
	CHECK_STR(below->cgroup, "");
	CHECK_INT(below->cgroup_fd, -1);
	CHECK_INT(below->pid, 0);
	deeper = create(below, "c", INSTANCE_CELL, NULL);
	fake_yes(below, FAKE_SPAWN);
	fake_yes(deeper, FAKE_OPEN);
	fake_turns();
	CHECK_INT(deeper->state, INSTANCE_READY);
	CHECK_STR(deeper->cgroup, "");
	fake_kill_keeper(0);
	FAKE_UNTIL(deeper->state == INSTANCE_FAILED);
	CHECK(strstr(deeper->reason, "its machine has ended") != NULL);
	fake_end_all();
}

/* ---- a machine in a machine ---- */

static struct instance *nested(struct instance *parent, struct told *told)
{
	struct instance *i = create(parent, "b", INSTANCE_VM, told);

	CHECK_INT(kind.n_disks, 1);
	CHECK_STR(i->tools, "slot7");
	CHECK(!fake_asked(parent, FAKE_SPAWN));
	return i;
}

static void one_in_a_machine_is_made_of_a_disk(void)
{
	struct told told = { .n = 0 };
	struct instance *a, *b;

	begin(true);
	a = ready("a");
	b = nested(a, &told);
	CHECK(b->machine.memory == 1 && instance_is_remote(b));
	kind.put(kind.put_userdata, NULL);
	CHECK_STR(fake_asked(a, FAKE_SPAWN)->name, "b");
	fake_yes(a, FAKE_SPAWN);
	fake_yes(b, FAKE_OPEN);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "");
	CHECK_STR(b->kernel, "6.1.0");
	CHECK_INT(kind.n_dropped, 0);
	instance_stop(b, told_by, &told);
	fake_yes(a, FAKE_END);
	FAKE_UNTIL(told.n == 2);
	CHECK_INT(kind.n_dropped, 1);
	fake_end_all();
}

static void its_disk_goes_when_it_comes_to_nothing(void)
{
	struct told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *a, *b;

	begin(true);
	a = ready("a");
	b = nested(a, &told);
	kind.put(kind.put_userdata, NULL);
	fake_answer(a, FAKE_SPAWN, ERROR_FAULT);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "instance a/b: the fake refuses");
	CHECK_INT(kind.n_dropped, 1);
	instance_remove(b);
	fake_turns();

	/* It is told to end while its disk is on the way: nobody makes it any more. */
	kind.n_disks = 0;
	b = nested(a, &told);
	instance_stop(b, told_by, &told);
	fake_yes(a, FAKE_END);
	FAKE_UNTIL(told.n == 3);
	CHECK_INT(kind.n_dropped, 1);
	kind.put(kind.put_userdata, NULL);
	CHECK(!fake_asked(a, FAKE_SPAWN));
	CHECK_INT(kind.n_dropped, 2);
	fake_turns();

	/* There is none. */
	kind.n_disks = 0;
	told.n = 0;
	(void)nested(a, &told);
	(void)error_refuse(&err, ERROR_EXHAUSTED, "no slot");
	kind.put(kind.put_userdata, &err);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "instance a/b: no slot");
	CHECK_INT(kind.n_dropped, 2);
	fake_end_all();
}

static void one_that_has_no_room_is_refused(void)
{
	const struct instance_spec spec = { .name = "b", .choice = { .kind = INSTANCE_VM } };
	struct error err = ERROR_INIT;
	struct instance *a, *b = NULL;

	begin(true);
	a = ready("a");
	kind.too_small = true;
	CHECK(instance_create(fake.all, a, &spec, NULL, NULL, &b, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "a is too small");
	CHECK_INT(kind.n_disks, 0);
	CHECK(instances_find(fake.all, "a/b") == NULL);
	fake_end_all();
}

/* ---- an earlier life ---- */

static struct instance_record record(enum instance_kind k)
{
	return (struct instance_record){ .id = "00000000000000aa",
					 .path = "a",
					 .owner = "",
					 .reason = "",
					 .cgroup = "base/inst.a",
					 .request = "",
					 .settings = "",
					 .kernel = "6.1.0",
					 .choice = { .kind = k },
					 .state = INSTANCE_READY };
}

static void is_taken_up_by_its_provider(void)
{
	struct instance_record r = record(INSTANCE_VM);
	struct error err = ERROR_INIT;
	struct instance *i;

	begin(true);
	CHECK_INT(instance_adopt(fake.all, &r, &err), 0);
	i = instances_find(fake.all, "a");
	CHECK(i != NULL);
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "its machine ended meanwhile");
	CHECK_STR(i->kernel, "6.1.0");
	fake_end_all();

	begin(false);
	CHECK(instance_adopt(fake.all, &r, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "\"a\" is of kind \"vm\"") != NULL);
	fake_end_all();
}

static void has_its_group_where_it_was_asked_to_be(void)
{
	struct instance_spec spec = { .name = "a", .cgroup_parent = "/pods/one" };
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	begin(false);
	CHECK_INT(instance_create(fake.all, NULL, &spec, NULL, NULL, &i, &err), 0);
	fake_yes(i, FAKE_OPEN);
	fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK_STR(i->cgroup, "/pods/one/inst.a");
	CHECK(faccessat(fake.dir_fd, "pods/one/inst.a", F_OK, 0) == 0);
	CHECK(faccessat(fake.cgroup_fd, "inst.a", F_OK, 0) < 0);
	instance_stop(i, NULL, NULL);
	fake_kill_keeper(fake.n_keepers - 1);
	FAKE_UNTIL(faccessat(fake.dir_fd, "pods/one/inst.a", F_OK, 0) < 0);
	CHECK(faccessat(fake.dir_fd, "pods/one", F_OK, 0) == 0);
	fake_end_all();
}

static void words_stand_for_kinds(void)
{
	CHECK_INT(instance_kind_of("cell"), INSTANCE_CELL);
	CHECK_INT(instance_kind_of("vm"), INSTANCE_VM);
	CHECK(instance_kind_can(INSTANCE_CELL, INSTANCE_PASSES_FDS));
	CHECK(!instance_kind_can(INSTANCE_CELL, INSTANCE_TAKES_NICS));
	CHECK(instance_kind_can(INSTANCE_VM, INSTANCE_LOCAL_CGROUP));
	CHECK(!instance_kind_can(INSTANCE_VM, INSTANCE_LOCAL_PROCESS));
	CHECK(!instance_kind_can(INSTANCE_VSPHERE, INSTANCE_LOCAL_CGROUP));
	CHECK_INT(instance_kind_of("VM"), INSTANCE_KIND_COUNT);
	CHECK_INT(instance_kind_of(""), INSTANCE_KIND_COUNT);
}

UNIT_MAIN({ "has_its_group_where_it_was_asked_to_be", has_its_group_where_it_was_asked_to_be },
	  { "chooses_what_there_is", chooses_what_there_is },
	  { "chooses_what_is_preferred", chooses_what_is_preferred },
	  { "lives_as_its_provider_makes_it", lives_as_its_provider_makes_it },
	  { "is_not_ready_without_its_limits", is_not_ready_without_its_limits },
	  { "fails_as_its_machine_does", fails_as_its_machine_does },
	  { "may_be_made_later", may_be_made_later },
	  { "one_below_has_nothing_here", one_below_has_nothing_here },
	  { "one_in_a_machine_is_made_of_a_disk", one_in_a_machine_is_made_of_a_disk },
	  { "its_disk_goes_when_it_comes_to_nothing", its_disk_goes_when_it_comes_to_nothing },
	  { "one_that_has_no_room_is_refused", one_that_has_no_room_is_refused },
	  { "is_taken_up_by_its_provider", is_taken_up_by_its_provider },
	  { "words_stand_for_kinds", words_stand_for_kinds })
