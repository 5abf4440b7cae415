/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_PATH_H
#define NACRE_ISOLATE_TREE_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Absolute paths of a tree as text; private to this area. A clean one has neither "", "." nor ".."
 * as a component and no slash at its end; the root is "". */

/* -ENAMETOOLONG. */
int tree_path_clean(char *to, size_t size, const char *path);
/* Whether a path names the same as `known`, which is clean. */
bool tree_path_is(const char *path, const char *known);
/* The part of a clean path below `base`, which need not be clean: "a/b", "" for the base itself;
 * NULL where the path does not lie there. */
const char *tree_path_below(const char *clean, const char *base);

#endif
