/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_FIND_KEEPER_H
#define NACRE_POD_FIND_KEEPER_H

#include "pod/workload/make.h"
#include "pod/workload/workloads.h"

/*
 * The keeper that a workload is started in: that of an instance which is there, or of one that is
 * made for it. Private to this area.
 */

/* ERROR_PRECONDITION: the parent is not ready; ERROR_UNAVAILABLE: that is the node. */
int keeper_check_parent(const struct workloads *all, const struct workload_spec *spec,
			struct error *err);
/* Of a pod, makes its instance, which calls workload_on_instance_ready(). */
int keeper_find(struct workload *w, const struct workload_spec *spec, struct error *err);

#endif
