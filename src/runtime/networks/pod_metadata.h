/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_POD_METADATA_H
#define NACRE_RUNTIME_POD_METADATA_H

#include <stdbool.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/buf.h"
#include "pod/workload/make.h"
#include "pod/workload/workload.h"

/*
 * The metadata service of a pod: PodNetwork.metadata of its request, and the page that is told
 * there (wire/document/imds.h).
 */

#define POD_METADATA_USER_DATA_MAX ((size_t)16384)
/* User data and labels together, so that a page has room for the addresses of each network. */
#define POD_METADATA_BYTES_MAX ((size_t)49152)

/* Whether such a specification, which has its network, can have one. ERROR_INVALID and
 * ERROR_UNSUPPORTED name the field. */
int pod_metadata_check(const Aurae__Runtime__V0__PodNetwork *asked,
		       const Aurae__Runtime__V0__Meta *meta, const struct workload_spec *spec,
		       struct error *err);

/* Whether one was asked for; ret_identity (may be NULL): with the pod's identity. */
bool pod_metadata_is_asked(const struct workload *w, bool *ret_identity);

/* Adds what is told of the workload now. 0, or an error. */
int pod_metadata_page(const struct workload *w, struct buf *page, struct error *err);

#endif
