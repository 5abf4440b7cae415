/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_RECORD_H
#define NACRE_POD_RECORD_H

#include "pod/workload/model.h"

/*
 * Workloads as rows of the run database.
 */

struct run_store;

int record_put_workload(struct run_store *s, const struct workload *w, struct error *err);
int record_put_container(struct run_store *s, const struct pod_container *c, struct error *err);
/* A new workload and all its containers in one transaction, with what it was asked to be (NULL:
 * that is not kept); nothing of it where that fails. */
int record_put_all(struct run_store *s, const struct workload *w, const char *wish,
		   struct error *err);
/* The same of one that is recorded. */
int record_put_again(struct run_store *s, const struct workload *w, struct error *err);
/* All of it as one text (store/store.h, struct run_kept), to be freed by the caller. Errors of
 * record_wish(). */
int record_keep(struct run_store *s, const struct workload *w, char **ret, struct error *err);
/* The request that it was made by, to be freed by the caller. ERROR_PRECONDITION: it was not kept.
 */
int record_wish(struct run_store *s, const struct workload *w, char **ret, struct error *err);

/* Calls fn with each recorded workload, its containers filled in; fn owns it. instance_id: where it
 * lived; attachment: as attachment_print() had it, or "". */
int record_each(struct run_store *s,
		int (*fn)(void *userdata, struct workload *w, const char *instance_id,
			  const char *attachment),
		void *userdata, struct error *err);

#endif
