/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/variant.h"

#include <stddef.h>

#include "base/macros.h"
#include "unit.h"

static void newest_that_runs(void)
{
	static const struct {
		const char *wanted, *wanted_variant, *better, *worse; /* NULL: does not run */
	} cases[] = {
		{ "arm", "v7", "v7", "v6" }, { "arm", "v7", "v6", "v5" },
		{ "arm", "v7", "", "v6" },   { "arm", "", "v7", "v6" },
		{ "arm", "v6", "v5", NULL }, { "arm64", "", "v8", NULL },
		{ "arm64", "v8", "", NULL }, { "amd64", "v3", "v3", "v2" },
		{ "amd64", "v3", "v2", "" }, { "amd64", "v2", "v1", NULL },
		{ "amd64", "", "", "v1" },   { "amd64", "", "v1", NULL },
		{ "riscv64", "", "", NULL },
	};
	static const struct {
		const char *wanted, *wanted_variant, *architecture, *variant;
	} never[] = {
		{ "arm", "v6", "arm", "v7" },     { "arm", "v6", "arm", "" },
		{ "amd64", "", "amd64", "v2" },   { "amd64", "", "arm64", "" },
		{ "arm", "v7", "arm", "v8" },     { "amd64", "v1", "amd64", "x" },
		{ "amd64", "v1", "amd64", "v0" }, { "arm", "v7", "arm", "v71" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int better = variant_rank(cases[i].wanted, cases[i].wanted_variant, cases[i].wanted,
					  cases[i].better);
		int worse = cases[i].worse ? variant_rank(cases[i].wanted, cases[i].wanted_variant,
							  cases[i].wanted, cases[i].worse)
					   : 0;

		CHECK(better > worse);
		if (better <= worse)
			printf("# case %zu\n", i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		CHECK_INT(variant_rank(never[i].wanted, never[i].wanted_variant,
				       never[i].architecture, never[i].variant),
			  0);
}

UNIT_MAIN({ "newest_that_runs", newest_that_runs })
