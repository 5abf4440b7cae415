/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/request.h"

#include <string.h>

#include "unit.h"

static void ids(void)
{
	char id[REQUEST_ID_MAX + 2];

	CHECK(request_id_is("a"));
	CHECK(request_id_is("A-z.0_9"));
	CHECK(!request_id_is(""));
	CHECK(!request_id_is("a b"));
	CHECK(!request_id_is("a/b"));
	memset(id, 'x', sizeof(id));
	id[REQUEST_ID_MAX] = '\0';
	CHECK(request_id_is(id));
	id[REQUEST_ID_MAX] = 'x';
	id[REQUEST_ID_MAX + 1] = '\0';
	CHECK(!request_id_is(id));
}

static void keys(void)
{
	char id[REQUEST_ID_MAX + 1], a[REQUEST_KEY_SIZE], b[REQUEST_KEY_SIZE];

	memset(id, 'x', REQUEST_ID_MAX);
	id[REQUEST_ID_MAX] = '\0';
	request_key(a, id, UINT64_MAX);
	CHECK_INT(strlen(a), REQUEST_KEY_SIZE - 1);
	request_key(a, "r1", 10);
	CHECK_STR(a, "r1 000000000000000a");
	request_key(b, "r1", 11);
	CHECK(request_same_id(a, b));
	request_key(b, "r", 10);
	CHECK(!request_same_id(a, b));
	CHECK(!request_same_id(b, a));
	CHECK(!request_same_id("", ""));
	CHECK(!request_same_id(a, ""));
}

UNIT_MAIN({ "ids", ids }, { "keys", keys })
