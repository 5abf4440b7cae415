/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_PROVIDER_CELL_H
#define NACRE_INSTANCE_PROVIDER_CELL_H

#include "instance/provider.h"

/*
 * Kind cell: a keeper in namespaces of its own (instance/spawn.h), and the keeper of the node,
 * which has none. Private to this area.
 */
struct provider *provider_cell(void);

#endif
