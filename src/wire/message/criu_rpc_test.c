/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/criu_rpc.h"

#include <errno.h>

#include "base/macros.h"
#include "unit.h"

static void check_bytes(const struct buf *b, const char *wanted, size_t len)
{
	CHECK_INT(b->len, len);
	CHECK(b->len == len && memcmp(buf_data(b), wanted, len) == 0);
}

#define CHECK_BYTES(b, text) check_bytes(b, text, sizeof(text) - 1)

static void writes_questions(void)
{
	_cleanup_(buf_done) struct buf version = BUF_INIT, feature = BUF_INIT, yes = BUF_INIT,
				       no = BUF_INIT;

	CHECK(criu_request_write(&version, CRIU_VERSION, NULL, false) == 0);
	CHECK_BYTES(&version, "\x08\x0a");
	CHECK(criu_request_write(&feature, CRIU_FEATURE_CHECK, NULL, true) == 0);
	CHECK_BYTES(&feature, "\x08\x09\x2a\x02\x08\x01");
	CHECK(criu_notified_write(&yes, true) == 0);
	CHECK_BYTES(&yes, "\x08\x06\x18\x01");
	CHECK(criu_notified_write(&no, false) == 0);
	CHECK_BYTES(&no, "\x08\x06\x18\x00");
}

static void writes_options(void)
{
	static const struct criu_pair mounts[] = { { "/a", "a" } }, joins[] = { { "ipc", "/i" } };
	static const struct criu_descriptor inherited[] = { { "pipe:[1]", 1 } };
	static const char *const externals[] = { "net[5]:x" };
	const struct criu_options few = { .images_fd = 5, .work_fd = 300, .pid = 7 };
	const struct criu_options many = {
		.images_fd = 5,
		.work_fd = 6,
		.tcp_established = true,
		.orphan_terminal = true,
		.manage_groups = true,
		.groups = CRIU_GROUPS_SOFT,
		.empty_ns = 0x40000000,
		.log_file = "d",
		.group_root = "/g",
		.lsm_mount_context = "c",
		.mounts = mounts,
		.n_mounts = 1,
		.inherited = inherited,
		.n_inherited = 1,
		.externals = externals,
		.n_externals = 1,
		.joins = joins,
		.n_joins = 1,
	};
	_cleanup_(buf_done) struct buf a = BUF_INIT, b = BUF_INIT;

	CHECK(criu_request_write(&a, CRIU_DUMP, &few, false) == 0);
	CHECK_BYTES(&a, "\x08\x01\x12\x08\x08\x05\x88\x01\xac\x02\x10\x07");
	CHECK(criu_request_write(&b, CRIU_RESTORE, &many, false) == 0);
	CHECK_BYTES(&b, "\x08\x02\x12\x55"
			"\x08\x05\x88\x01\x06"
			"\x90\x02\x03"
			"\xb0\x02\x80\x80\x80\x80\x04"
			"\x28\x01\xc0\x01\x01\x90\x03\x01"
			"\x52\x01"
			"d"
			"\xfa\x03\x01"
			"c"
			"\xba\x01\x07\x0a\x02/a\x12\x01"
			"a"
			"\xca\x01\x04\x12\x02/g"
			"\xda\x01\x0c\x0a\x08pipe:[1]\x10\x01"
			"\xaa\x02\x08net[5]:x"
			"\xba\x02\x09\x0a\x03ipc\x12\x02/i");
}

static struct criu_answer answer;
static struct error error;

/* What the bytes say; the strings live until the next call. */
static int reads(const char *bytes, size_t len)
{
	static struct arena arena;

	arena_done(&arena);
	error = (struct error)ERROR_INIT;
	return criu_answer_read(&answer, &arena, bytes, len, &error);
}

#define READS(text) reads(text, sizeof(text) - 1)

static void reads_answers(void)
{
	CHECK(READS("\x08\x02\x10\x01\x22\x03\x08\xac\x02") == 0);
	CHECK(answer.type == CRIU_RESTORE && answer.success);
	CHECK_INT(answer.restored, 300);
	CHECK(READS("\x08\x06\x10\x01\x2a\x0a\x0a\x06"
		    "script\x10\x05") == 0);
	CHECK(answer.type == CRIU_NOTIFY && answer.success);
	CHECK_STR(answer.script, "script");
	CHECK_INT(answer.notified, 5);
	CHECK(READS("\x08\x01\x10\x00\x38\x03\x4a\x02no") == 0);
	CHECK(answer.type == CRIU_DUMP && !answer.success);
	CHECK_INT(answer.number, 3);
	CHECK_STR(answer.message, "no");
	CHECK(READS("\x08\x09\x10\x01\x42\x02\x08\x01") == 0);
	CHECK(answer.mem_track);
	/* What was restored is -1 where nothing was; a question that was not understood. */
	CHECK(READS("\x08\x02\x10\x00\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") == 0);
	CHECK(!answer.success);
	CHECK_INT(answer.restored, 0);
	CHECK(READS("\x08\x00\x10\x00") == 0);
	CHECK(!answer.success);
}

static void reads_versions(void)
{
	CHECK(READS("\x08\x0a\x10\x01\x52\x06\x08\x03\x10\x11\x20\x01") == 0);
	CHECK_INT(answer.version, 31701);
	CHECK(READS("\x08\x0a\x10\x01\x52\x04\x08\x04\x10\x00") == 0);
	CHECK_INT(answer.version, 40000);
	/* Built from between 3.17 and 3.18. */
	CHECK(READS("\x08\x0a\x10\x01\x52\x07\x08\x03\x10\x11\x1a\x01g") == 0);
	CHECK_INT(answer.version, 31800);
}

static void passes_over_what_it_does_not_know(void)
{
	CHECK(READS("\x08\x01\x10\x01\x78\x05\x7d"
		    "abcd\x79"
		    "abcdefgh\x7a\x02xy") == 0);
	CHECK(answer.type == CRIU_DUMP && answer.success);
}

static void refuses_other_bytes(void)
{
	CHECK(READS("") < 0);
	CHECK_STR(error.text, "criu says something that is none of its messages");
	CHECK(error.kind == ERROR_INVALID);
	CHECK(READS("\x10\x01") < 0);                                 /* success of nothing */
	CHECK(READS("\x08") < 0);                                     /* no value */
	CHECK(READS("\x08\x80") < 0);                                 /* half a number */
	CHECK(READS("\x00\x01") < 0);                                 /* field 0 */
	CHECK(READS("\x0b\x01") < 0);                                 /* a group */
	CHECK(READS("\x08\x01\x4a\x05no") < 0);                       /* a text past the end */
	CHECK(READS("\x08\x01\x4a\x02n\0") < 0);                      /* NUL in a text */
	CHECK(READS("\x08\x01\x48\x02") < 0);                         /* a number for a text */
	CHECK(READS("\x0a\x01x\x10\x01") < 0);                        /* a text for a number */
	CHECK(READS("\x08\x02\x22\x02\x08\x00") < 0);                 /* process 0 */
	CHECK(READS("\x08\x02\x22\x06\x08\x80\x80\x80\x80\x08") < 0); /* no number of a process */
	CHECK(READS("\x08\x0a\x52\x02\x08\x64") < 0);                 /* version 100 */
	CHECK(READS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02") < 0); /* past 64 bits */
	CHECK(READS("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") < 0);
}

UNIT_MAIN({ "writes questions", writes_questions }, { "writes options", writes_options },
	  { "reads answers", reads_answers }, { "reads versions", reads_versions },
	  { "passes over what it does not know", passes_over_what_it_does_not_know },
	  { "refuses other bytes", refuses_other_bytes })
