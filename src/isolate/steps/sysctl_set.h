/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SYSCTL_SET_H
#define NACRE_ISOLATE_SYSCTL_SET_H

#include "base/log/error.h"
#include "isolate/plan/plan.h"

/*
 * Sets a sysctl of the namespaces that this thread is in and sees it taken. proc_fd: a /proc of
 * theirs. ERROR_PRECONDITION where the kernel has none such, or makes something else of the value;
 * ERROR_INVALID for a value that it does not take.
 */
int isolate_sysctl_set(int proc_fd, const struct isolate_sysctl *sysctl, struct error *err);

#endif
