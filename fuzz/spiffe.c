/* SPDX-License-Identifier: Apache-2.0 */

/* SPIFFE ids: what was read is made of its two parts, and of nothing that could be read otherwise.
 */

#include "fuzz.h"
#include "wire/name/spiffe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct spiffe s;

	if (spiffe_parse(&s, (const char *)data, size, &err) < 0)
		return 0;
	fuzz_need(size <= SPIFFE_MAX && s.domain == (const char *)data + 9);
	fuzz_need(s.domain_len > 0 && s.path == s.domain + s.domain_len);
	fuzz_need(9 + s.domain_len + s.path_len == size);
	for (size_t i = 0; i < size; i++)
		fuzz_need(data[i] > 0x20 && data[i] < 0x7f && !strchr("%?#@[]\\\"", data[i]));
	fuzz_need(s.path_len == 0 || (s.path[0] == '/' && s.path[s.path_len - 1] != '/'));
	return 0;
}
