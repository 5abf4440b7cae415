/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/hash.h"

#include "unit.h"

/* Values of the reference by Fowler, Noll and Vo. */
static void known_values(void)
{
	CHECK(hash_add(HASH_INIT, "", 0) == 0xcbf29ce484222325ULL);
	CHECK(hash_add(HASH_INIT, "a", 1) == 0xaf63dc4c8601ec8cULL);
	CHECK(hash_add(HASH_INIT, "foobar", 6) == 0x85944171f73967e8ULL);
}

static void texts_keep_their_ends(void)
{
	CHECK(hash_add_str(hash_add_str(HASH_INIT, "a"), "b") != hash_add_str(HASH_INIT, "ab"));
	CHECK(hash_add_str(HASH_INIT, "ab") == hash_add(hash_add(HASH_INIT, "a", 1), "b", 2));
}

UNIT_MAIN({ "known values", known_values }, { "texts keep their ends", texts_keep_their_ends })
