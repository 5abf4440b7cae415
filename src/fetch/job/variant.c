/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/variant.h"

#include <stddef.h>

#include "base/macros.h"
#include "base/text/str.h"

/* The variant of an architecture where none is said. */
static const struct {
	const char *architecture;
	int level;
} variant_usual[] = { { "arm", 7 }, { "arm64", 8 }, { "amd64", 1 } };

/* "v7": 7, "v8.1": 8, "": the usual one; -1: unlike these. */
static int variant_level(const char *architecture, const char *variant)
{
	if (!*variant) {
		for (size_t i = 0; i < ARRAY_SIZE(variant_usual); i++)
			if (str_eq(variant_usual[i].architecture, architecture))
				return variant_usual[i].level;
		return 0;
	}
	if (variant[0] != 'v' || variant[1] < '1' || variant[1] > '9' ||
	    (variant[2] && variant[2] != '.'))
		return -1;
	return variant[1] - '0';
}

int variant_rank(const char *wanted, const char *wanted_variant, const char *architecture,
		 const char *variant)
{
	int can = variant_level(wanted, wanted_variant);
	int needs = variant_level(architecture, variant);

	if (!str_eq(wanted, architecture))
		return 0;
	if (str_eq(wanted_variant, variant))
		return 100;
	if (can < 0 || needs < 0 || needs > can)
		return 0;
	return 1 + needs;
}
