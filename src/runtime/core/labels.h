/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_LABELS_H
#define NACRE_RUNTIME_LABELS_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"

/* Labels of workloads, as a request gives them. */

#define LABELS_MAX 64
#define LABEL_NAME_MAX ((size_t)256)
#define LABEL_VALUE_MAX ((size_t)4096)
#define LABELS_BYTES ((size_t)64 * 1024) /* of all together */

/* meta may be NULL: ERROR_INVALID names "meta.labels". It puts them in order, so that requests with
 * the same ones are the same bytes for request_find(). */
int labels_check(const Aurae__Runtime__V0__Meta *meta, struct error *err);

#endif
