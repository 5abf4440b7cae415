/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_COPYING_H
#define NACRE_FETCH_COPYING_H

#include "base/log/error.h"

struct reading;
struct descriptor;

struct copying_ops {
	/* A blob that a manifest names. May come more than once. */
	int (*on_blob)(struct reading *r, const struct descriptor *d, struct error *err);
	/* A manifest or index, behind all that it names; may be NULL. May come more than once.
	 * subject: the digest of what it says that it refers to, or "". */
	int (*on_manifest)(struct reading *r, const struct descriptor *d, const char *subject,
			   struct error *err);
};

/* For a copy: every document below the root is put into staging, whatever its platform or kind. */
int copying_run(struct reading *r, const struct copying_ops *ops, const struct descriptor *root,
		struct error *err);

#endif
