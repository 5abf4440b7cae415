/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/words.h"

#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

static void finds_words(void)
{
	struct error err = ERROR_INIT;
	uint64_t n = 7;

	CHECK_INT(word_find(words_rlimits, "RLIMIT_NOFILE", &n), 0);
	CHECK_INT(n, RLIMIT_NOFILE);
	CHECK_INT(word_find(words_propagation, "rslave", &n), 0);
	CHECK_INT(n, MS_SLAVE | MS_REC);
	CHECK_INT(word_find(words_propagation, "RSLAVE", &n), -ENOENT);
	CHECK_INT(n, MS_SLAVE | MS_REC);
	CHECK(word_need(words_domains, "LINUX64", "linux.personality.domain", &n, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_STR(err.field, "linux.personality.domain");
	CHECK(strstr(err.text, "\"LINUX64\" is not known") != NULL);
}

static void joins_flags(void)
{
	const char *const names[] = { "SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_DL_OVERRUN" };
	const char *const wrong[] = { "SCHED_FLAG_RECLAIM", "SCHED_FLAG_LAZY" };
	struct error err = ERROR_INIT;
	uint64_t n = 99;

	CHECK_INT(word_flags(words_sched_flags, names, 2, "f", &n, &err), 0);
	CHECK_INT(n, 0x05);
	CHECK_INT(word_flags(words_sched_flags, names, 0, "f", &n, &err), 0);
	CHECK_INT(n, 0);
	n = 99;
	CHECK(word_flags(words_sched_flags, wrong, 2, "f", &n, &err) < 0);
	CHECK_INT(n, 99);
}

static void reads_signals(void)
{
	struct error err = ERROR_INIT;
	int n = 0;

	CHECK_INT(word_signal("SIGTERM", &n, &err), 0);
	CHECK_INT(n, SIGTERM);
	CHECK_INT(word_signal("9", &n, &err), 0);
	CHECK_INT(n, SIGKILL);
	CHECK(word_signal("SIGNOTHING", &n, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
}

static void reads_lists_as_bits(void)
{
	static const char *const wrong[] = { "",      ",", "0,",  "-3",       "3-",  "3-1",
					     "0-3-5", "a", "0 1", "99999999", "1,,2" };
	struct error err = ERROR_INIT;
	uint64_t bits[2] = { 0, 0 };

	CHECK_INT(word_bits("0-3,7", "cpus", bits, 2, &err), 0);
	CHECK_INT(bits[0], 0x8f);
	CHECK_INT(word_bits("63-64,127", "cpus", bits, 2, &err), 0);
	CHECK(bits[0] == (UINT64_C(1) << 63 | 0x8f) && bits[1] == (UINT64_C(1) << 63 | 1));
	CHECK(word_bits("128", "cpus", bits, 2, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err = (struct error)ERROR_INIT;
		CHECK(word_bits(wrong[i], "cpus", bits, 2, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK_STR(err.field, "cpus");
	}
}

UNIT_MAIN({ "finds_words", finds_words }, { "joins_flags", joins_flags },
	  { "reads_signals", reads_signals }, { "reads_lists_as_bits", reads_lists_as_bits })
