/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/choice.h"

#include <stdlib.h>

#include "base/text/str.h"
#include "unit.h"

static char tag[] = "1.27", short_name[] = "nginx:1.27", full[] = "docker.io/library/nginx:1.27",
	    digest[] = "nginx@sha256:"
		       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	    wrong[] = "Not A Name";

static void takes(void)
{
	static const struct {
		const char *ref;
		char *said;
		bool takes;
	} cases[] = {
		{ "", NULL, true },
		{ "", tag, true },
		{ "1.27", tag, true },
		{ "1.2", tag, false },
		{ "nginx:1.27", short_name, true },
		{ "nginx:1.27", full, true },
		{ full, short_name, true },
		{ "nginx", full, false },
		{ "1.27", full, false },
		{ "docker.io/library/1.27:latest", tag, false },
		{ "Not A Name", wrong, true },
		{ "x", NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *said[] = { cases[i].said, NULL };
		struct choice c = CHOICE_INIT(cases[i].ref, "");

		CHECK_INT(choice_takes(&c, said), cases[i].takes);
	}
}

static void tells_what_there_is(void)
{
	struct choice c = CHOICE_INIT("x", "");
	char *one[] = { tag, NULL }, *two[] = { full, short_name, NULL };
	struct error err = ERROR_INIT;

	CHECK(choice_fail(&c, &err) < 0);
	CHECK(strstr(err.text, "none with a name") != NULL);
	CHECK(!choice_takes(&c, one) && !choice_takes(&c, two));
	CHECK(choice_fail(&c, &err) < 0);
	CHECK(strstr(err.text, "it has: 1.27, docker.io/library/nginx:1.27, nginx:1.27") != NULL);
	for (int i = 0; i < 100; i++)
		CHECK(!choice_takes(&c, two));
	CHECK(strlen(c.offers) <= CHOICE_OFFERS_MAX);
	CHECK(str_has_suffix(c.offers, "1.27"));
}

static void names(void)
{
	char *said[] = { tag, digest, wrong, short_name, NULL };
	_cleanup_strv_ char **without = NULL, **with = NULL, **as_name = NULL;
	struct choice c = CHOICE_INIT("", "");

	CHECK_INT(choice_names(&c, said, true, &without, NULL), 0);
	CHECK(without && str_eq(without[0], full) && !without[1]);
	c.repository = "quay.io/a/b";
	CHECK_INT(choice_names(&c, said, true, &with, NULL), 0);
	CHECK(with && str_eq(with[0], "quay.io/a/b:1.27") && str_eq(with[1], full) && !with[2]);
	said[1] = NULL;
	CHECK_INT(choice_names(&c, said, false, &as_name, NULL), 0);
	CHECK(as_name && str_eq(as_name[0], "docker.io/library/1.27:latest"));
}

UNIT_MAIN({ "takes", takes }, { "tells_what_there_is", tells_what_there_is }, { "names", names })
