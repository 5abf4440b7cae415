/* SPDX-License-Identifier: Apache-2.0 */
#include "clouds/plan.h"

#include <errno.h>

#include "unit.h"

static void types(void)
{
	static const char *const bad[] = { "",
					   "a",
					   "a=1",
					   "a=1:",
					   "a=0:1GiB",
					   "=1:1GiB",
					   "a=1:0",
					   "a=1:1GiB:",
					   "a=1:1GiB:x",
					   "a=1:1GiB:0.1234567",
					   "a=1:1GiB:.5",
					   "a b=1:1GiB",
					   "a=1:1GiB:1." };
	struct cloud_type t;

	CHECK_INT(cloud_type_parse("t3.small=2:2GiB:0.0208", &t), 0);
	CHECK_STR(t.name, "t3.small");
	CHECK(t.cpus == 2 && t.memory == (uint64_t)2 << 30 && t.price == 20800);
	CHECK_INT(cloud_type_parse("x=1:512MiB", &t), 0);
	CHECK(t.price == 0);
	CHECK_INT(cloud_type_parse("x=1:512MiB:12", &t), 0);
	CHECK(t.price == 12000000);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(cloud_type_parse(bad[i], &t), -EINVAL);
}

static void choices(void)
{
	struct cloud_settings s = { .n_types = 0 };
	const struct cloud_type *t;
	struct error err = ERROR_INIT;

	CHECK_INT(cloud_plan_type(&s, 1, 0, &t, &err), -EINVAL);
	CHECK_STR(err.field, "type");
	CHECK_INT(cloud_type_parse("big=8:32GiB:0.4", &s.types[0]), 0);
	CHECK_INT(cloud_type_parse("small=2:2GiB:0.02", &s.types[1]), 0);
	CHECK_INT(cloud_type_parse("wide=8:16GiB:0.3", &s.types[2]), 0);
	s.n_types = 3;
	CHECK_INT(cloud_plan_type(&s, 0, 0, &t, &err), 0);
	CHECK_STR(t->name, "small");
	CHECK_INT(cloud_plan_type(&s, 3, 0, &t, &err), 0);
	CHECK_STR(t->name, "wide");
	CHECK_INT(cloud_plan_type(&s, 3, (uint64_t)20 << 30, &t, &err), 0);
	CHECK_STR(t->name, "big");
	err = (struct error)ERROR_INIT;
	CHECK(cloud_plan_type(&s, 9, 0, &t, &err) < 0 && err.kind == ERROR_EXHAUSTED);
	s.types[0].price = 0;
	CHECK_INT(cloud_plan_type(&s, 0, 0, &t, &err), 0);
	CHECK_STR(t->name, "big");
}

static void words(void)
{
	CHECK(cloud_word_is_valid("subnet-0ab") && cloud_word_is_valid("a/b:c@d"));
	CHECK(!cloud_word_is_valid("") && !cloud_word_is_valid("a b") &&
	      !cloud_word_is_valid("a,b") && !cloud_word_is_valid("a\"") &&
	      !cloud_word_is_valid("\xc3\xa9"));
}

UNIT_MAIN({ "types", types }, { "choices", choices }, { "words", words })
