/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_RENAME_H
#define NACRE_POD_RENAME_H

#include "base/log/error.h"

/*
 * Another name for a workload that is there, in whatever state. Its path is what users and records
 * know; its handle is what the keeper and the cgroups have of it, neither of which can rename what
 * lives. So the path changes alone, and with the next start the handle follows.
 */

struct workload;
struct workloads;

/* Recorded before it holds: after an error it has the name that it had. ERROR_INVALID names `name`;
 * ERROR_EXISTS; ERROR_PRECONDITION: something is in it; ERROR_UNSUPPORTED: a sandbox. */
int workload_rename(struct workload *w, const char *name, struct error *err);

/* Of one that is about to be started, its instance known: the last label of its path, or that with
 * a number where what was renamed lives under it. */
void rename_choose_handle(const struct workloads *all, struct workload *w);

#endif
