/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fault/failpoint.h"

#include "base/fault/failpoint_names.h"
#include "base/macros.h"

void failpoint_list(FILE *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(failpoint_names); i++)
		(void)fprintf(to, "%-20s %-7s %-7s %s\n", failpoint_names[i].name,
			      failpoint_names[i].who, failpoint_names[i].both ? "both" : "before",
			      failpoint_names[i].about);
}
