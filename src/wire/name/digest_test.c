/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/digest.h"

#include "unit.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void accepts_only_the_form(void)
{
	static const struct {
		const char *text;
		bool valid;
	} cases[] = {
		{ "sha256:" HEX, true },
		{ "", false },
		{ "sha256:", false },
		{ HEX, false },
		{ "sha256:" HEX "0", false },
		{ "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde", false },
		{ "sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		  false },
		{ "SHA256:" HEX, false },
		{ "sha512:" HEX, false },
		{ "md5:0123456789abcdef0123456789abcdef", false },
		{ "sha256:sha256:" HEX, false },
		{ "sha256::" HEX, false },
		{ "sha256:../../../../../../../../../../../../../../../../../../etc/passwd123",
		  false },
		{ "sha256:" HEX "\n", false },
		{ " sha256:" HEX, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(digest_is_valid(cases[i].text), cases[i].valid);
		if (digest_is_valid(cases[i].text) != cases[i].valid)
			printf("# case %zu: %s\n", i, cases[i].text);
	}
}

static void formats(void)
{
	uint8_t sum[32];
	char text[DIGEST_SIZE];

	for (int i = 0; i < 32; i++)
		sum[i] = (uint8_t)(i * 8 + 7);
	digest_format(text, sum);
	CHECK(digest_is_valid(text));
	CHECK_STR(text, "sha256:070f171f272f373f474f575f676f777f878f979fa7afb7bfc7cfd7dfe7eff7ff");
	CHECK_STR(digest_hex(text), text + 7);
}

UNIT_MAIN({ "accepts_only_the_form", accepts_only_the_form }, { "formats", formats })
