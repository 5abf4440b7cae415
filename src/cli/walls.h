/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_WALLS_H
#define NACRE_CLI_WALLS_H

#include "api/runtime.pb-c.h"
#include "base/args.h"
#include "base/error.h"
#include "cli/security_options.h"

/* What a container may reach, use and do: --volume, --tmpfs, --read-only, limits and privilege, for
 * its message. */

struct walls {
	Aurae__Runtime__V0__Mount *mounts, **list;
	Aurae__Runtime__V0__Tmpfs *tmpfs;
	char **words; /* what the messages point to */
	size_t n, n_words;
	Aurae__Runtime__V0__Resources resources;
	struct security_options security;
};

#define WALLS_INIT                                                                                 \
	{                                                                                          \
		.mounts = NULL                                                                     \
	}

/* ERROR_INVALID names the option. The message points into w. */
int walls_take(struct walls *w, Aurae__Runtime__V0__Container *to, const struct args *a,
	       struct error *err);
/* Limits alone: --memory and the like. *ret is NULL where none is given, else it lies in *to. */
int walls_limits(Aurae__Runtime__V0__Resources **ret, Aurae__Runtime__V0__Resources *to,
		 const struct args *a, struct error *err);
void walls_done(struct walls *w);
/* "64m", "1G", "4096", "16MiB": 0 or a negative errno. */
int walls_size(const char *text, uint64_t *ret);

#endif
