/* SPDX-License-Identifier: Apache-2.0 */

/* What a pod answers to a health check: how the bytes are cut makes no difference to the verdict.
 */

#include "fuzz.h"
#include "wire/message/probe.h"

static void feed_http(const uint8_t *data, size_t size)
{
	struct probe_http whole = { .n = 0 }, cut = whole;
	enum probe_verdict a = probe_http_feed(&whole, data, size), b = PROBE_MORE;

	for (size_t i = 0, n; b == PROBE_MORE && i < size; i += n) {
		n = 1 + data[i] % 5;
		n = n < size - i ? n : size - i;
		b = probe_http_feed(&cut, data + i, n);
	}
	fuzz_need(a == b && whole.status == cut.status);
	fuzz_need((a == PROBE_GOOD) == (whole.status >= 200 && whole.status < 400));
}

static void feed_grpc(const uint8_t *data, size_t size)
{
	struct probe_grpc whole = { .n_head = 0 }, cut = whole;
	enum probe_verdict a = probe_grpc_feed(&whole, data, size), b = PROBE_MORE;

	for (size_t i = 0, n; b == PROBE_MORE && i < size; i += n) {
		n = 1 + data[i] % 7;
		n = n < size - i ? n : size - i;
		b = probe_grpc_feed(&cut, data + i, n);
	}
	fuzz_need(a == b && whole.answered == cut.answered && whole.status == cut.status);
	fuzz_need(a != PROBE_GOOD || (whole.answered && whole.status == 1));
	fuzz_need(a != PROBE_MORE || size <= PROBE_ANSWER_MAX);
	fuzz_need(whole.n_body <= sizeof(whole.body) && whole.padding <= 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	feed_http(data, size);
	feed_grpc(data, size);
	return 0;
}
