/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/limits_words.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"

static void forms(void)
{
	static const char *const bad[] = { "memory.max",     "=1",     "",
					   "cgroup.procs=1", "../x=1", "cpuset.cpus=x" };
	char *good[] = { (char[]){ "cpuset.cpus=0" }, (char[]){ "memory.max=4096" },
			 (char[]){ "cpu.max=max 100000" }, NULL };
	char *many[LIMITS_WORDS_MAX + 2] = { NULL };

	CHECK_INT(limits_words_check(NULL, NULL), 0);
	CHECK_INT(limits_words_check(good, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char *words[] = { (char *)(uintptr_t)bad[i], NULL };

		CHECK(limits_words_check(words, NULL) < 0);
	}
	for (size_t i = 0; i < LIMITS_WORDS_MAX; i++)
		many[i] = good[1];
	CHECK_INT(limits_words_check(many, NULL), 0);
	many[LIMITS_WORDS_MAX] = good[1];
	CHECK(limits_words_check(many, NULL) < 0);
}

/* On files that stand for those of a group. */
static void applied_in_order_or_not_at_all(void)
{
	char dir[] = "limits-words-XXXXXX";
	char *words[] = { (char[]){ "pids.max=7" }, (char[]){ "memory.max=4096" }, NULL };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int dir_fd = -1;
	struct error err = ERROR_INIT;

	CHECK(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir_fd >= 0);
	CHECK(mknodat(dir_fd, "pids.max", S_IFREG | 0600, 0) == 0);
	CHECK(limits_words_apply(dir_fd, words, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(error_text(&err), "memory.max") != NULL);
	CHECK_INT(fd_read_file(dir_fd, "pids.max", 100, &b), 0);
	CHECK_INT(b.len, 0);
	CHECK_INT(limits_words_apply(dir_fd, NULL, NULL), 0);
	CHECK(unlinkat(dir_fd, "pids.max", 0) == 0 && rmdir(dir) == 0);
}

UNIT_MAIN({ "forms", forms }, { "applied in order or not at all", applied_in_order_or_not_at_all })
