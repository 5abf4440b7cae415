/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_TREE_H
#define NACRE_ISOLATE_TREE_H

#include "isolate/steps/step.h"

/*
 * The root of ISOLATE_ROOT_TREE, in the child; private to this area. s->root_fd is attached to "/"
 * of this process's own mount namespace already, and the umask is 0. Makes all that the lists of
 * the plan say, in their order. part_fds: of a container (isolate/tree/tree_view.h); NULL for a
 * tree.
 */
int tree_make(struct isolate_steps *s, const int *part_fds, struct error *err);

#endif
