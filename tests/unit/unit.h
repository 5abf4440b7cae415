/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_TESTS_UNIT_H
#define NACRE_TESTS_UNIT_H

/*
 * A unit test program: functions of CHECK()s, listed in UNIT_MAIN(). It speaks TAP (one "ok N -
 * name" or "not ok N - name" a test), which tests/run counts.
 *
 *   static void adds(void) { CHECK(1 + 1 == 2); }
 *   UNIT_MAIN({ "adds", adds })
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "failmalloc.h"

struct unit_test {
	const char *name;
	void (*run)(void);
	bool is_needed; /* by the others: it runs also where one of them is run alone */
};

static int unit_failures;
static const char *unit_skipped __attribute__((unused));

/* Ends a test that this host cannot run; it counts as skipped, with the reason. */
#define SKIP(reason)                                                                               \
	do {                                                                                       \
		unit_skipped = (reason);                                                           \
		return;                                                                            \
	} while (0)

static inline void unit_failed(void)
{
	unit_failures++;
	if (failmalloc_check_failed)
		failmalloc_check_failed();
}

#define UNIT_PATIENCE 60     /* s, with what must come */
#define UNIT_PATIENCE_VAIN 2 /* s, where an allocation has failed: then it may never come */

/* Seconds of a clock that nobody sets. */
static inline time_t unit_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Whether a test that waits since then goes on to wait. */
static inline bool unit_waits(time_t since)
{
	bool vain = failmalloc_has_failed && failmalloc_has_failed();

	return unit_now() - since <= (vain ? UNIT_PATIENCE_VAIN : UNIT_PATIENCE);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);                        \
			unit_failed();                                                             \
		}                                                                                  \
	} while (0)

#define CHECK_STR(a, b)                                                                            \
	do {                                                                                       \
		const char *unit_a_ = (a), *unit_b_ = (b);                                         \
		if (!unit_a_ || !unit_b_ || strcmp(unit_a_, unit_b_) != 0) {                       \
			printf("# %s:%d: \"%s\" is not \"%s\"\n", __FILE__, __LINE__,              \
			       unit_a_ ? unit_a_ : "(null)", unit_b_ ? unit_b_ : "(null)");        \
			unit_failed();                                                             \
		}                                                                                  \
	} while (0)

#define CHECK_INT(a, b)                                                                            \
	do {                                                                                       \
		long long unit_a_ = (long long)(a), unit_b_ = (long long)(b);                      \
		if (unit_a_ != unit_b_) {                                                          \
			printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, unit_a_, \
			       unit_b_);                                                           \
			unit_failed();                                                             \
		}                                                                                  \
	} while (0)

/* Runs them in their order and says how each went; what main() returns. */
static inline int unit_run(const struct unit_test *tests, size_t n)
{
	bool failed = false;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	if (failmalloc_begin)
		failmalloc_begin();
	for (size_t i = 0; i < n; i++) {
		if (failmalloc_leaves_out && failmalloc_leaves_out(i + 1) && !tests[i].is_needed)
			continue;
		unit_failures = 0;
		unit_skipped = NULL;
		tests[i].run();
		printf("%sok %zu - %s%s%s\n", unit_failures ? "not " : "", i + 1, tests[i].name,
		       unit_skipped ? " # SKIP " : "", unit_skipped ? unit_skipped : "");
		failed = failed || unit_failures;
	}
	if (failmalloc_end)
		failmalloc_end();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define UNIT_MAIN(...)                                                                             \
	int main(void)                                                                             \
	{                                                                                          \
		static const struct unit_test tests[] = { __VA_ARGS__ };                           \
                                                                                                   \
		return unit_run(tests, sizeof(tests) / sizeof(tests[0]));                          \
	}

#endif
