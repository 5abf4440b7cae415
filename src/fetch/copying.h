/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_COPYING_H
#define NACRE_FETCH_COPYING_H

#include "base/error.h"

struct reading;
struct downloads;
struct descriptor;

/*
 * A pull for a copy: every document below the root is put into staging, whatever its platform or
 * kind, and each blob that they name is told by CONTENT and offered; then CONTENT_END.
 */
int copying_run(struct reading *r, struct downloads *d, const struct descriptor *root,
		struct error *err);

#endif
