/* SPDX-License-Identifier: Apache-2.0 */

/* What is said to nacre-gate and by it: a message that was decoded is encoded to the same bytes. */

#include "fuzz.h"
#include "wire/message/gatemsg.h"

static uint8_t packet[GATEMSG_SIZE_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct gatemsg m;
	int len;

	if (gatemsg_decode(&m, data, size, &err) < 0)
		return 0;
	fuzz_need(gatemsg_length(data, size) == (int)size);
	len = gatemsg_encode(&m, packet, &err);
	fuzz_need(len >= 0 && (size_t)len == size && memcmp(packet, data, size) == 0);
	return 0;
}
