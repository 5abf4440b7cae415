/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CONVERT_GROUPS_H
#define NACRE_KEEPER_CONVERT_GROUPS_H

#include "api/instance.pb-c.h"

/* A keeper's messages about groups and processes, and their conversion: the keeper may be
 * compromised by now, so the values are used for display alone. */

struct arena;
struct process;
struct usage;

/* Its id and cell are left to the caller. */
void convert_group_usage(Nacre__Instance__V1__GroupUsage *to, const struct usage *from);
void convert_group_usage_back(struct usage *to, const Nacre__Instance__V1__GroupUsage *from);
/* Strings are in the arena, or in `from`; -ENOMEM. */
int convert_group_process(struct arena *a, Nacre__Instance__V1__GroupProcess *to,
			  struct process *from);
/* Without a pid or a parent, which are the other kernel's. The command is cut, and what cannot be
 * shown of it is '?'. */
void convert_group_process_back(struct process *to, const Nacre__Instance__V1__GroupProcess *from);

#endif
