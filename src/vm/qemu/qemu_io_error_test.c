/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu_io_error.h"

#include <string.h>

#include "base/memory/arena.h"
#include "unit.h"
#include "wire/document/jsonread.h"

static bool reads(struct vm_io_error *ret, const char *text)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct json_value *v = NULL;
	struct error err = ERROR_INIT;

	*ret = (struct vm_io_error){ .n = 99 };
	return json_parse(&v, &a, text, strlen(text), &err) == 0 && qemu_io_error_read(ret, v);
}

static void of_a_slot(void)
{
	struct vm_io_error e;

	if (!reads(&e, "{\"device\": \"\", \"node-name\": \"slot11\", \"operation\": \"read\", "
		       "\"action\": \"report\", \"reason\": \"Input/output error\"}"))
		return;
	CHECK(e.slot && !e.writing && !e.stopped);
	CHECK_INT(e.n, 11);
	CHECK_STR(e.text, "Input/output error");
}

static void of_a_disk(void)
{
	struct vm_io_error e;

	if (!reads(&e, "{\"node-name\": \"image1\", \"operation\": \"write\", \"action\": "
		       "\"stop\", \"nospace\": true, \"reason\": \"No space left on device\"}"))
		return;
	CHECK(!e.slot && e.writing && e.stopped);
	CHECK_INT(e.n, 1);
	CHECK_STR(e.text, "No space left on device");
}

/* Its monitor may have been broken into. */
static void of_nothing_that_there_is(void)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"{\"node-name\": 7}",
		"{\"node-name\": \"slot\"}",
		"{\"node-name\": \"slot16\"}",
		"{\"node-name\": \"slot-1\"}",
		"{\"node-name\": \"file4\"}",
		"{\"node-name\": \"slot1x\"}",
		"{\"node-name\": \"none1\"}",
	};
	struct vm_io_error e;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		CHECK(!reads(&e, texts[i]));
	CHECK(!qemu_io_error_read(&e, NULL));
}

static void with_a_reason_that_is_none(void)
{
	struct vm_io_error e;

	if (reads(&e, "{\"node-name\": \"file0\"}"))
		CHECK_STR(e.text, "Input/output error");
	if (reads(&e, "{\"node-name\": \"file0\", \"reason\": \"a\\nb\"}"))
		CHECK(!strchr(e.text, '\n'));
	if (reads(&e,
		  "{\"node-name\": \"file0\", \"reason\": \"0123456789012345678901234567890123456"
		  "789012345678901234567890123456789\"}"))
		CHECK_INT(strlen(e.text), sizeof(e.text) - 1);
}

UNIT_MAIN({ "of a slot", of_a_slot }, { "of a disk", of_a_disk },
	  { "of nothing that there is", of_nothing_that_there_is },
	  { "with a reason that is none", with_a_reason_that_is_none })
