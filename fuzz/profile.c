/* SPDX-License-Identifier: Apache-2.0 */

/* Seccomp profiles of strangers, up to the filter. */

#include "fetch/unpack/profile.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct profile_place here = { .caps = 0xa80425fb, .major = 6, .minor = 1 };
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *filter = NULL;
	struct error err = ERROR_INIT;

	if (size > PROFILE_BYTES_MAX)
		return 0;
	if (profile_compile(&filter, data, size, &here, &err) < 0)
		fuzz_need(err.code != 0 && !filter);
	else
		fuzz_need(filter->prog.len > 0 && filter->prog.len <= BPF_MAXINSNS);
	return 0;
}
