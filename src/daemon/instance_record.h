/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_INSTANCE_RECORD_H
#define NACRE_DAEMON_INSTANCE_RECORD_H

#include "base/log/error.h"

/*
 * Instances as rows of the run database.
 */

struct instance;
struct instances;
struct run_store;

int instance_record_save(struct run_store *s, const struct instance *i, struct error *err);
/* Removes the record; a failure is logged. */
void instance_record_drop(struct run_store *s, const struct instance *i);
/* Takes up all that are recorded. */
int instance_records_adopt(struct run_store *s, struct instances *instances, struct error *err);

#endif
