/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_ATTEST_H
#define NACRE_RUNTIME_ATTEST_H

#include <sys/types.h>

#include "base/log/error.h"

/* In which container a process of this host is, by the kernel's word: its cgroup. */

struct pod_container;
struct workload_service;

/* A running container that was given an identity (Mount.identity), of this kernel. ERROR_DENIED:
 * the process is in none; says why. Reads /proc; the caller must know that pid is still the process
 * that it means, behind the call too. */
int attest_process(const struct workload_service *s, pid_t pid, const struct pod_container **ret,
		   struct error *err);

#endif
