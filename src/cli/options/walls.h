/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_WALLS_H
#define NACRE_CLI_WALLS_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/text/args.h"
#include "cli/options/mount_words.h"
#include "cli/options/secret_words.h"
#include "cli/options/security_options.h"

/* The options for the mounts, limits and privilege of a container, for its message: --volume,
 * --tmpfs, --read-only and others. */

struct walls {
	struct mount_words mounts;
	struct secret_words secrets;
	Aurae__Runtime__V0__Mount **all_mounts; /* of both */
	Aurae__Runtime__V0__Resources resources;
	struct security_options security;
};

/* Nothing of it. */
extern const struct walls walls_none;

/* ERROR_INVALID names the option. The message points into w. */
int walls_take(struct walls *w, Aurae__Runtime__V0__Container *to, const struct args *a,
	       struct error *err);
/* Limits alone: --memory and the like. *ret is NULL where none is given, else it lies in *to. */
int walls_limits(Aurae__Runtime__V0__Resources **ret, Aurae__Runtime__V0__Resources *to,
		 const struct args *a, struct error *err);
void walls_done(struct walls *w);

#endif
