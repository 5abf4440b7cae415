/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_REFERRERS_H
#define NACRE_FETCH_REFERRERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "fetch/transfer/network.h"
#include "wire/name/digest.h"

#define FETCH_REFERRERS_MAX 1024

struct descriptor;

/* Each manifest that the registry lists as one that refers to `digest`, by the API of distribution
 * 1.1 or by the tag that stands in for it; more than max of them are an error. None where it has
 * neither. Nothing of it was verified. */
typedef int (*referrers_fn)(struct network *n, const struct descriptor *d, void *userdata,
			    struct error *err);
int referrers_each(struct network *n, const char *digest, size_t max, referrers_fn fn,
		   void *userdata, struct error *err);

#define REFERRERS_TAG_SIZE (sizeof("sha256-") + DIGEST_HEX_LEN)

/* The tag that stands in for that API. */
void referrers_tag(const char *digest, char ret[REFERRERS_TAG_SIZE]);

/*
 * Tells a REFERRER for each manifest that refers to `digest`, at most max: by the API of
 * distribution 1.1, or by the tag that stands in for it. optional: a registry that does not answer
 * is a NOTE and no error.
 */
int referrers_tell(struct network *n, const char *digest, size_t max, bool optional,
		   struct error *err);

#endif
