/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/platform_option.h"

#include <string.h>

#include "base/macros.h"
#include "unit.h"

static void reads(void)
{
	static const struct {
		const char *text, *architecture, *variant;
	} cases[] = {
		{ NULL, "", "" },
		{ "arm64", "arm64", "" },
		{ "linux/arm64", "arm64", "" },
		{ "arm64/v8", "arm64", "v8" },
		{ "linux/arm/v7", "arm", "v7" },
		{ "pdp11", "pdp11", "" },
		{ "x86_64", "amd64", "" },
		{ "linux/aarch64/v8", "arm64", "v8" },
		{ "armhf", "arm", "v7" },
		{ "armhf/v6", "arm", "v6" },
		{ "i386", "386", "" },
		{ "12345678901234567890123456789012", "12345678901234567890123456789012", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		struct platform_option p;

		CHECK_INT(platform_option_read(&p, cases[i].text, &err), 0);
		CHECK_STR(p.architecture, cases[i].architecture);
		CHECK_STR(p.variant, cases[i].variant);
	}
}

static void refuses(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "is none" },
		{ "linux", "is none" },
		{ "linux/", "is none" },
		{ "/", "is none" },
		{ "/v8", "is none" },
		{ "arm64/", "is none" },
		{ "arm64//", "is none" },
		{ "arm64/v8/", "is none" },
		{ "arm64/v8/x", "is none" },
		{ "linux/linux", "is none" },
		{ "plan/arm64/v8", "is none" },
		{ "arm 64", "is none" },
		{ "arm\n", "is none" },
		{ "123456789012345678901234567890123", "is none" },
		{ "arm/123456789012345678901234567890123", "is none" },
		{ "windows/amd64", "not for windows" },
		{ "darwin", "not for darwin" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		struct platform_option p;

		CHECK(platform_option_read(&p, cases[i].text, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK(strstr(err.text, cases[i].why) != NULL);
	}
}

UNIT_MAIN({ "reads", reads }, { "refuses", refuses })
