/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_AURAE_CHECK_H
#define NACRE_AURAE_CHECK_H

#include "api/cells.pb-c.h"
#include "base/log/error.h"

/* Fields of aurae.cells.v0. What is wrong with one is ERROR_PRECONDITION, which names it, as
 * Aurae's daemon has it. */

struct arena;

/* The name of a cell, without slashes at its ends, in the arena. */
int aurae_check_name(struct arena *a, const char *field, const char *name, const char **ret,
		     struct error *err);
int aurae_check_executable(const Aurae__Cells__V0__Executable *e, struct error *err);
/* The limits of a cell in words of isolate/cgroup/limits_words.h, in the arena; NULL: there are
 * none. base_fd: the node's group, whose controllers are asked whether they are there. */
int aurae_check_limits(struct arena *a, const Aurae__Cells__V0__Cell *cell, int base_fd,
		       char ***ret, struct error *err);
/* For an error whose field is a file of the kernel: that of the request which is written there. */
void aurae_blame_limit(struct error *err);

#endif
