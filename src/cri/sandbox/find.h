/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_FIND_H
#define NACRE_CRI_FIND_H

#include "base/log/error.h"
#include "pod/workload/model.h"

/*
 * Sandboxes and containers by what a call names them by: an id, or a beginning of one that is no
 * other's. ERROR_INVALID for an empty one or one of several (the field is `field`),
 * ERROR_NOT_FOUND.
 */

struct cri_runtime_service;
struct peer;

int cri_find_sandbox(const struct cri_runtime_service *s, const char *field, const char *id,
		     struct workload **ret, struct error *err);
int cri_find_container(const struct cri_runtime_service *s, const char *field, const char *id,
		       struct pod_container **ret, struct error *err);
/* The container of `container_id` and its keeper. ERROR_PRECONDITION: it does not run;
 * ERROR_UNAVAILABLE: its keeper is gone. */
int cri_find_running(const struct cri_runtime_service *s, const char *id,
		     struct pod_container **ret, struct peer **ret_peer, struct error *err);

#endif
