/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/id.h"

#include "unit.h"

static void is_hexadecimal_and_new(void)
{
	char was[ID_SIZE] = "", id[ID_SIZE];

	for (int i = 0; i < 1000; i++) {
		memset(id, 'x', sizeof(id));
		CHECK_INT(id_new(id), 0);
		CHECK_INT(strlen(id), ID_LEN);
		CHECK_INT(strspn(id, "0123456789abcdef"), ID_LEN);
		CHECK(strcmp(id, was) != 0);
		memcpy(was, id, sizeof(id));
	}
}

UNIT_MAIN({ "is hexadecimal and new", is_hexadecimal_and_new })
