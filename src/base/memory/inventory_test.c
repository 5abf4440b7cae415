/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/inventory.h"

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

static bool note(void *userdata, const struct inventory_finding *f)
{
	CHECK(buf_addf(userdata, "%s|%s|%s|%s\n", f->kind, f->id, f->name, f->what) == 0);
	return true;
}

static void expect(struct inventory *t, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *said = NULL;

	inventory_each(t, note, &b);
	said = buf_take_str(&b);
	CHECK_STR(said, text);
	inventory_done(t);
}

static void whole(void)
{
	struct inventory t;

	inventory_init(&t);
	expect(&t, "");
	inventory_must(&t, "cgroup", "a", "1", "pod");
	inventory_may(&t, "cgroup", "a/b");
	inventory_may(&t, "cgroup", "a/c");
	inventory_seen(&t, "cgroup", "a/b");
	inventory_seen(&t, "cgroup", "a");
	CHECK(!t.incomplete);
	expect(&t, "");
}

static void unknown(void)
{
	struct inventory t;

	inventory_init(&t);
	inventory_seen(&t, "log", "x");
	/* The same name of another kind. */
	inventory_may(&t, "cgroup", "x");
	expect(&t, "log||x|it is there, and no record knows it\n");
	/* Only the topmost of what has no record, and nothing of what a record answers for. */
	inventory_seen(&t, "cgroup", "a");
	inventory_seen(&t, "cgroup", "a/b");
	inventory_seen(&t, "cgroup", "a/b/c");
	inventory_seen(&t, "cgroup", "ab");
	inventory_may_below(&t, "cgroup", "own");
	inventory_seen(&t, "cgroup", "own/a/b");
	inventory_may(&t, "cgroup", "alone");
	inventory_seen(&t, "cgroup", "alone/a");
	expect(&t, "cgroup||a|it is there, and no record knows it\n"
		   "cgroup||ab|it is there, and no record knows it\n"
		   "cgroup||alone/a|it is there, and no record knows it\n");
}

static void missing(void)
{
	struct inventory t;

	inventory_init(&t);
	inventory_may(&t, "log", "1");
	inventory_must(&t, "log", "1", "1", "pod");
	inventory_must(&t, "log", "2", "2", "cell");
	inventory_seen(&t, "log", "1");
	expect(&t, "log|2|cell|2 is missing\n");
}

static void faults(void)
{
	struct inventory t;

	inventory_init(&t);
	inventory_fault(&t, "record", "1", "pod", "it says otherwise");
	inventory_seen(&t, "log", "x");
	expect(&t, "log||x|it is there, and no record knows it\n"
		   "record|1|pod|it says otherwise\n");
}

static void full(void)
{
	struct inventory t;
	char name[16];

	inventory_init(&t);
	for (int i = 0; i < INVENTORY_ITEMS_MAX; i++) {
		(void)str_printf(name, sizeof(name), "%d", i);
		inventory_may(&t, "x", name);
	}
	CHECK(!t.incomplete);
	inventory_seen(&t, "x", "7");
	CHECK(!t.incomplete);
	inventory_seen(&t, "x", "one more");
	CHECK(t.incomplete);
	expect(&t, "");
}

UNIT_MAIN({ "what is whole", whole }, { "what no record knows", unknown },
	  { "what is missing", missing }, { "faults", faults }, { "the limit", full })
