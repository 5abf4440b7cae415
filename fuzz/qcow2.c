/* SPDX-License-Identifier: Apache-2.0 */

/* The beginning of a disk that somebody brings. */

#include "fuzz.h"
#include "vm/disk/qcow2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct qcow2 q;
	int r = qcow2_look(&q, data, size, UINT64_MAX, &err);

	fuzz_need((r < 0) == (err.kind == ERROR_INVALID));
	if (r < 0)
		return 0;
	fuzz_need(qcow2_is(data, size));
	fuzz_need(q.bytes > 0 && q.bytes <= QCOW2_BYTES_MAX);
	return 0;
}
