/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"

static int label_check(const Aurae__Runtime__V0__Meta__LabelsEntry *label, struct error *err)
{
	size_t len = strlen(label->key);

	if (len == 0)
		return error_field(err, ERROR_INVALID, "meta.labels", "a label has no name");
	if (len > LABEL_NAME_MAX)
		return error_field(err, ERROR_INVALID, "meta.labels",
				   "the name \"%.20s…\" has %zu bytes; at most %zu", label->key,
				   len, LABEL_NAME_MAX);
	if (strchr(label->key, '='))
		return error_field(err, ERROR_INVALID, "meta.labels",
				   "the name \"%.80s\" has a '='", label->key);
	len = strlen(label->value);
	if (len > LABEL_VALUE_MAX)
		return error_field(err, ERROR_INVALID, "meta.labels",
				   "the value of \"%.80s\" has %zu bytes; at most %zu", label->key,
				   len, LABEL_VALUE_MAX);
	return 0;
}

static int label_order(const void *a, const void *b)
{
	const Aurae__Runtime__V0__Meta__LabelsEntry *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

int labels_check(const Aurae__Runtime__V0__Meta *meta, struct error *err)
{
	size_t n = meta ? meta->n_labels : 0, bytes = 0;
	int r;

	if (n == 0)
		return 0;
	if (n > LABELS_MAX)
		return error_field(err, ERROR_INVALID, "meta.labels",
				   "%zu are more than the limit of %d", n, LABELS_MAX);
	for (size_t i = 0; i < n; i++) {
		r = label_check(meta->labels[i], err);
		if (r < 0)
			return r;
		bytes += strlen(meta->labels[i]->key) + strlen(meta->labels[i]->value);
	}
	if (bytes > LABELS_BYTES)
		return error_field(err, ERROR_INVALID, "meta.labels",
				   "all together have %zu bytes; at most %zu", bytes, LABELS_BYTES);
	qsort(meta->labels, n, sizeof(*meta->labels), label_order);
	for (size_t i = 1; i < n; i++)
		if (str_eq(meta->labels[i]->key, meta->labels[i - 1]->key))
			return error_field(err, ERROR_INVALID, "meta.labels",
					   "\"%.80s\" is there twice", meta->labels[i]->key);
	return 0;
}
