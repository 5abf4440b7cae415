/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/kind.h"

#include "base/macros.h"
#include "base/text/str.h"
#include "runtime/core/check.h"

static const char *const kinds[] = { "auto", "cell", "vm", "ec2", "gce", "vsphere" };

int kind_take(const char *kind, enum instance_kind otherwise, enum instance_kind *ret,
	      struct error *err)
{
	struct error own = ERROR_INIT;
	const char *word;

	*ret = otherwise;
	if (str_empty(kind))
		return 0;
	if (check_word("kind", kind, kinds, ARRAY_SIZE(kinds), &word, &own) == 0) {
		*ret = instance_kind_of(word);
		return 0;
	}
	return error_copy(err, &own);
}
