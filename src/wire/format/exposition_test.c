/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/exposition.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "unit.h"

static void writes_families(void)
{
	const struct exposition_label labels[] = { { "name", "a\\b\"c\nd" },
						   { "none", NULL },
						   { "le", "+Inf" } };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	struct exposition e;

	exposition_init(&e, &b);
	exposition_family(&e, "empty", "gauge", "Nothing.");
	exposition_family(&e, "a_total", "counter", "Some help.");
	exposition_sample(&e, "", NULL, 0, 9007199254740991.0);
	exposition_sample(&e, "", labels + 1, 1, 0.1);
	exposition_family(&e, "h", "histogram", "More.");
	exposition_sample(&e, "_bucket", labels, 3, 1.0 / 3);
	exposition_sample(&e, "_sum", labels, 1, INFINITY);
	exposition_sample(&e, "_count", labels, 1, -0.000001);
	CHECK_INT(exposition_end(&e), e.result);
	if (e.result < 0)
		return;
	text = buf_take_str(&b);
	if (!text)
		return;
	CHECK_STR(text, "# HELP a_total Some help.\n# TYPE a_total counter\n"
			"a_total 9007199254740991\na_total 0.1\n"
			"# HELP h More.\n# TYPE h histogram\n"
			"h_bucket{name=\"a\\\\b\\\"c\\nd\",le=\"+Inf\"} 0.33333333333333331\n"
			"h_sum{name=\"a\\\\b\\\"c\\nd\"} +Inf\n"
			"h_count{name=\"a\\\\b\\\"c\\nd\"} -1e-06\n# EOF\n");
}

static void keeps_its_first_error(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT_LIMIT(40);
	struct exposition e;

	exposition_init(&e, &b);
	exposition_family(&e, "a_total", "counter", "A family that is too long.");
	exposition_sample(&e, "", NULL, 0, 1);
	CHECK_INT(exposition_end(&e), -ENOBUFS);
	CHECK_INT(b.len, 0);
}

UNIT_MAIN({ "writes_families", writes_families },
	  { "keeps_its_first_error", keeps_its_first_error })
