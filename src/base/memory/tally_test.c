/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/tally.h"

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

static bool note(void *userdata, const struct tally_finding *f)
{
	CHECK(buf_addf(userdata, "%s|%s|%s|%s\n", f->kind, f->id, f->name, f->what) == 0);
	return true;
}

static void expect(struct tally *t, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *said = NULL;

	tally_each(t, note, &b);
	said = buf_take_str(&b);
	CHECK_STR(said, text);
	tally_done(t);
}

static void whole(void)
{
	struct tally t;

	tally_init(&t);
	expect(&t, "");
	tally_must(&t, "cgroup", "a", "1", "pod");
	tally_may(&t, "cgroup", "a/b");
	tally_may(&t, "cgroup", "a/c");
	tally_seen(&t, "cgroup", "a/b");
	tally_seen(&t, "cgroup", "a");
	CHECK(!t.incomplete);
	expect(&t, "");
}

static void unknown(void)
{
	struct tally t;

	tally_init(&t);
	tally_seen(&t, "log", "x");
	/* The same name of another kind. */
	tally_may(&t, "cgroup", "x");
	expect(&t, "log||x|it is there, and no record knows it\n");
	/* Only the topmost of what has no record, and nothing of what a record answers for. */
	tally_seen(&t, "cgroup", "a");
	tally_seen(&t, "cgroup", "a/b");
	tally_seen(&t, "cgroup", "a/b/c");
	tally_seen(&t, "cgroup", "ab");
	tally_may_below(&t, "cgroup", "own");
	tally_seen(&t, "cgroup", "own/a/b");
	tally_may(&t, "cgroup", "alone");
	tally_seen(&t, "cgroup", "alone/a");
	expect(&t, "cgroup||a|it is there, and no record knows it\n"
		   "cgroup||ab|it is there, and no record knows it\n"
		   "cgroup||alone/a|it is there, and no record knows it\n");
}

static void missing(void)
{
	struct tally t;

	tally_init(&t);
	tally_may(&t, "log", "1");
	tally_must(&t, "log", "1", "1", "pod");
	tally_must(&t, "log", "2", "2", "cell");
	tally_seen(&t, "log", "1");
	expect(&t, "log|2|cell|2 is missing\n");
}

static void faults(void)
{
	struct tally t;

	tally_init(&t);
	tally_fault(&t, "record", "1", "pod", "it says otherwise");
	tally_seen(&t, "log", "x");
	expect(&t, "log||x|it is there, and no record knows it\n"
		   "record|1|pod|it says otherwise\n");
}

static void full(void)
{
	struct tally t;
	char name[16];

	tally_init(&t);
	for (int i = 0; i < TALLY_ITEMS_MAX; i++) {
		(void)str_printf(name, sizeof(name), "%d", i);
		tally_may(&t, "x", name);
	}
	CHECK(!t.incomplete);
	tally_seen(&t, "x", "7");
	CHECK(!t.incomplete);
	tally_seen(&t, "x", "one more");
	CHECK(t.incomplete);
	expect(&t, "");
}

UNIT_MAIN({ "what is whole", whole }, { "what no record knows", unknown },
	  { "what is missing", missing }, { "faults", faults }, { "the limit", full })
