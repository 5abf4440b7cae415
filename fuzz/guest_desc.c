/* SPDX-License-Identifier: Apache-2.0 */

/* What a guest set says of itself: what was read is read again from what it is written as. */

#include "fuzz.h"
#include "vm/guest/guest_desc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct guest_desc d = { .memory_mib = 0 }, again;
	char *text;

	if (guest_desc_read(&d, (const char *)data, size, NULL) < 0)
		return 0;
	text = guest_desc_write(&d);
	fuzz_need(text != NULL);
	fuzz_need(guest_desc_read(&again, text, strlen(text), NULL) == 0);
	fuzz_need(strcmp(d.release, again.release) == 0 && strcmp(d.words, again.words) == 0);
	fuzz_need(d.kernel_bytes == again.kernel_bytes && d.memory_mib == again.memory_mib);
	free(text);
	return 0;
}
