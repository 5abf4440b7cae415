/* SPDX-License-Identifier: Apache-2.0 */

/* The policy of users: whatever the file says, it is read or refused with its line. */

#include <string.h>

#include "daemon/policy.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *p = NULL;
	struct error err = ERROR_INIT;
	int r = policy_parse(&p, (const char *)data, size, "file", &err);

	if (r < 0)
		fuzz_need(!p && (strncmp(err.text, "file:", 5) == 0 || r == -12));
	else
		(void)policy_allows(p, "spiffe://nacre.local/user/alice",
				    "/nacre.v1.WorkloadService/Stop");
	(void)policy_free(p);
	return 0;
}
