/* SPDX-License-Identifier: Apache-2.0 */

/* What a guest, or its node, says on the boot port: each frame that was read is written as it came.
 */

#include "fuzz.h"
#include "wire/message/bootmsg.h"

static uint8_t frame[BOOTMSG_FRAME_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct bootmsg m;

	for (;;) {
		int n = bootmsg_next(&m, data, size, &err);

		if (n <= 0)
			return 0;
		fuzz_need((size_t)n <= size);
		fuzz_need(bootmsg_encode(&m, frame, &err) == n);
		fuzz_need(memcmp(frame, data, (size_t)n) == 0);
		data += n;
		size -= (size_t)n;
	}
}
