/* SPDX-License-Identifier: Apache-2.0 */

/* References of images: the full form of a text is a reference, and its own full form. */

#include "base/text/str.h"
#include "fuzz.h"
#include "wire/name/digest.h"
#include "wire/name/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_str((struct fuzz_input){ data, size });
	char full[REFERENCE_SIZE], again[REFERENCE_SIZE];
	struct error err = ERROR_INIT;

	if (reference_normalise(full, text, &err) == 0) {
		fuzz_need(reference_normalise(again, full, &err) == 0);
		fuzz_need(str_eq(full, again));
	} else {
		fuzz_need(err.code != 0);
	}
	fuzz_need(!digest_is_valid(text) || strlen(text) == DIGEST_LEN);
	free(text);
	return 0;
}
