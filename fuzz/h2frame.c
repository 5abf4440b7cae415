/* SPDX-License-Identifier: Apache-2.0 */

/* The heads of HTTP/2 frames: how the bytes are cut makes no difference to what is let through. */

#include "fuzz.h"
#include "wire/format/h2frame.h"

static void feed(const uint8_t *data, size_t size, bool from_client)
{
	struct h2frame whole = { .from_client = from_client }, cut = whole;
	struct error err = ERROR_INIT;
	int a = h2frame_feed(&whole, data, size, &err), b = 0;

	for (size_t i = 0, n; b == 0 && i < size; i += n) {
		n = 1 + data[i] % 7;
		n = n < size - i ? n : size - i;
		b = h2frame_feed(&cut, data + i, n, &err);
	}
	fuzz_need(a == b);
	fuzz_need(a < 0 || (whole.left == cut.left && whole.n_head == cut.n_head &&
			    whole.block_stream == cut.block_stream));
	fuzz_need(whole.left <= H2FRAME_PAYLOAD_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	feed(data, size, false);
	feed(data, size, true);
	return 0;
}
