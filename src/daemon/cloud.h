/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CLOUD_H
#define NACRE_DAEMON_CLOUD_H

#include "base/log/error.h"

struct clouds;
struct config;
struct events;
struct loop;
struct place;
struct root_store;

/* Machines in a cloud, whose changes become events: clouds_new(). While the store is idle. */
int cloud_open(struct clouds **ret, struct loop *loop, const struct config *config,
	       const struct place *place, struct root_store *store, struct events *events,
	       struct error *err);
/* Goes on with what was begun; what fails is logged. */
void cloud_begin(struct clouds *clouds);

#endif
