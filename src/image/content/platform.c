/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/platform.h"

#include "base/text/str.h"

const char *platform_architecture(const struct utsname *u)
{
	static const struct {
		const char *machine, *name;
	} names[] = {
		{ "x86_64", "amd64" },    { "aarch64", "arm64" },       { "armv7l", "arm" },
		{ "riscv64", "riscv64" }, { "s390x", "s390x" },         { "ppc64le", "ppc64le" },
		{ "i686", "386" },        { "loongarch64", "loong64" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i].machine, u->machine))
			return names[i].name;
	return u->machine;
}
