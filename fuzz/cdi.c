/* SPDX-License-Identifier: Apache-2.0 */

/* Files of vendors of devices: JSON, and behind a first byte that is odd YAML. */

#include "base/text/str.h"
#include "fetch/unpack/cdi.h"
#include "fuzz.h"

static void fuzz_add(struct buf *b, const char *word)
{
	fuzz_need(buf_add(b, word, strlen(word) + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_done) struct buf request = BUF_INIT, answer = BUF_INIT;
	struct error err = ERROR_INIT;
	char length[24];

	if (size == 0 || size > CDI_REQUEST_MAX)
		return 0;
	(void)str_printf(length, sizeof(length), "%zu", size - 1);
	fuzz_add(&request, "device");
	fuzz_add(&request, "vendor.com/net=one");
	fuzz_add(&request, "file");
	fuzz_add(&request, "/etc/cdi");
	fuzz_add(&request, data[0] & 1 ? "/etc/cdi/a.yaml" : "/etc/cdi/a.json");
	fuzz_add(&request, length);
	fuzz_need(buf_add(&request, data + 1, size - 1) == 0);
	if (cdi_resolve(&answer, buf_data(&request), request.len, &err) < 0)
		fuzz_need(err.code != 0);
	else
		fuzz_need(answer.len <= 2 * CDI_ANSWER_MAX);
	return 0;
}
