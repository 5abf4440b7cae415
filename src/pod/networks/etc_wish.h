/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_ETC_WISH_H
#define NACRE_POD_ETC_WISH_H

#include <stdbool.h>

#include "base/macros.h"

/*
 * The files below /etc (pod/networks/etc.h) and the hostname that a workload is to have. The texts
 * stand in the files as they are: the code that fills this in has checked them.
 */

#define ETC_SERVERS_MAX 3 /* resolv.conf(5): others are not asked */

/* Lists end with NULL; NULL itself is an empty one. */
struct etc_wish {
	char *hostname; /* NULL: the last part of its path */
	bool is_host;   /* that is the name of the node or of another pod, which nobody sets */
	char **servers; /* none: the host's; likewise search and options */
	char **search;  /* "." alone: none */
	char **options;
	char **hosts; /* lines, "192.0.2.1\tdb" */
};

/* A copy that is its owner's, NULL without memory. */
struct etc_wish *etc_wish_copy(const struct etc_wish *from) _must_check_;
/* Of a copy; NULL is fine. Returns NULL. */
struct etc_wish *etc_wish_free(struct etc_wish *w);

#endif
