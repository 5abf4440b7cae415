/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_REFERRERS_H
#define NACRE_FETCH_REFERRERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "fetch/network.h"

#define FETCH_REFERRERS_MAX 1024

/*
 * Tells a REFERRER for each manifest that refers to `digest`, at most max: by the API of
 * distribution 1.1, or by the tag that stands in for it. optional: a registry that does not answer
 * is a NOTE and no error.
 */
int referrers_tell(struct network *n, const char *digest, size_t max, bool optional,
		   struct error *err);

#endif
