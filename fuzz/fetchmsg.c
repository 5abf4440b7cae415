/* SPDX-License-Identifier: Apache-2.0 */

/* What nacre-fetch says: a message that was decoded is encoded to the same bytes. */

#include "fuzz.h"
#include "wire/message/fetchmsg.h"

static uint8_t packet[FETCHMSG_SIZE_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct fetchmsg m;
	int len;

	if (fetchmsg_decode(&m, data, size, &err) < 0)
		return 0;
	len = fetchmsg_encode(&m, packet, &err);
	fuzz_need(len >= 0 && (size_t)len == size && memcmp(packet, data, size) == 0);
	return 0;
}
