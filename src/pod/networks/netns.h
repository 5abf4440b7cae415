/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_NETNS_H
#define NACRE_POD_NETNS_H

#include "base/log/error.h"
#include "pod/workload/model.h"

/* The network namespace of one that starts or runs: that of its keeper or of its machine, or of a
 * container of the cell. ERROR_UNAVAILABLE: it has ended. */
int netns_open(const struct workload *w, struct error *err);
/* A namespace of the keeper of a pod of kind cell, by its name in /proc/PID/ns, likewise. */
int netns_open_kind(const struct workload *w, const char *kind, struct error *err);

#endif
