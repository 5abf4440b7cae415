/* SPDX-License-Identifier: Apache-2.0 */

/* Input from the network of a cloud: DHCP, HTTP, user-data. */

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire/message/dhcp.h"
#include "wire/message/metadata.h"

static void try_dhcp(const uint8_t *data, size_t size)
{
	static const struct dhcp_ask asks[] = {
		{ .type = DHCP_DISCOVER, .number = 0x01020304, .mac = { 2, 1, 2, 3, 4, 5 } },
		{ .type = DHCP_REQUEST, .number = 0x01020304, .mac = { 2, 1, 2, 3, 4, 5 } },
	};
	struct dhcp_answer a;

	for (size_t i = 0; i < 2; i++) {
		if (!dhcp_decode(&a, &asks[i], data, size))
			continue;
		fuzz_need(a.type == DHCP_NAK || (a.prefix >= 1 && a.prefix <= 32));
		fuzz_need(a.mtu == 0 || (a.mtu >= 576 && a.mtu <= UINT16_MAX));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_done) struct buf frame = BUF_INIT;
	struct metadata_answer a;

	try_dhcp(data, size);
	if (metadata_answer(&a, data, size) == 1)
		fuzz_need(a.body <= size && a.len <= size - a.body && a.status >= 100);
	if (metadata_frame(data, size, &frame) == 0)
		fuzz_need(frame.len <= size);
	return 0;
}
