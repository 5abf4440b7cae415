/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/ids.h"

#include "unit.h"

static void reads_ranges_of_others(void)
{
	struct ids_space s = { .first = 100000, .count = 4 * POD_IDS };

	CHECK_INT(ids_space_parse(&s, "a:100000:65536\n\n#b\nc:1\nd:x:1\ne:5:0\nf:4294967295:9\n"
				      "g:7:4294967288\nh:165536:1"),
		  0);
	CHECK_INT(s.n_others, 3);
	CHECK(s.others[0].first == 100000 && s.others[0].count == 65536);
	CHECK(s.others[1].first == 7 && s.others[1].count == 4294967288U);
	CHECK(s.others[2].first == 165536 && s.others[2].count == 1);
	ids_space_done(&s);
}

static void gives_what_nobody_has(void)
{
	struct ids_space s = { .first = 100000, .count = 5 * POD_IDS + 7 };
	const struct isolate_ids odd = { 100000 + POD_IDS + 9, 1, 1 },
				 groups = { 1, 100000 + 2 * POD_IDS - 1, 2 }, none = { 0, 0, 0 };
	struct isolate_ids got = { 0, 0, 0 };
	struct error err = ERROR_INIT;
	struct ids_taken t;

	CHECK_INT(ids_space_parse(&s, "a:1:100000"), 0);
	ids_taken_init(&t, &s);
	/* One id of the others' is enough, and so is one of a user or a group. */
	CHECK_INT(ids_choose(&t, &got, &err), 0);
	CHECK_INT(got.uid, 100000 + POD_IDS);
	ids_taken_add(&t, &odd);
	ids_taken_add(&t, &none);
	CHECK_INT(ids_choose(&t, &got, &err), 0);
	CHECK_INT(got.uid, 100000 + 2 * POD_IDS);
	ids_taken_add(&t, &groups);
	for (unsigned n = 3; n < 5; n++) {
		CHECK_INT(ids_choose(&t, &got, &err), 0);
		CHECK_INT(got.uid, 100000 + n * POD_IDS);
		CHECK(got.gid == got.uid && got.count == POD_IDS);
		ids_taken_add(&t, &got);
	}
	CHECK(ids_choose(&t, &got, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	ids_space_done(&s);
}

static void gives_nothing_of_nothing(void)
{
	const struct ids_space s = { .first = 100000, .count = POD_IDS - 1 };
	struct isolate_ids got;
	struct error err = ERROR_INIT;
	struct ids_taken t;

	ids_taken_init(&t, &s);
	CHECK(ids_choose(&t, &got, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
}

UNIT_MAIN({ "reads the ranges of others", reads_ranges_of_others },
	  { "gives what nobody has", gives_what_nobody_has },
	  { "gives nothing of nothing", gives_nothing_of_nothing })
