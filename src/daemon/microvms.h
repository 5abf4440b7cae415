/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_MICROVMS_H
#define NACRE_DAEMON_MICROVMS_H

#include "base/log/error.h"

/*
 * The parts of a node that instances of kind vm need: its identity, whose keys are in "identity" of
 * the root directory, and their provider.
 */

struct config;
struct foreigns;
struct instances;
struct issuer;
struct loop;
struct place;
struct pool;
struct provider;
struct trial;
struct vms;
struct clouds;
struct fars;

struct microvms {
	int identity_fd; /* 0 and below: not open */
	struct issuer *issuer;
	struct vms *vms;
	struct trial *trial;
	struct foreigns *foreigns;
	struct fars *fars;
};

/* Starts nothing. A node without the programs for it has the provider too, which says what is
 * missing. What was opened where it fails is closed by microvms_close(). */
int microvms_open(struct microvms *m, struct loop *l, struct pool *pool, const struct place *place,
		  const struct config *config, struct error *err);
/* Once the daemon serves: what hardware virtualization is worth is tried, unless it is known, and
 * what is made ahead of need is begun. */
void microvms_begin(struct microvms *m, struct instances *all);
/* Machines with somebody's own system. The same. */
int microvms_open_foreign(struct microvms *m, struct loop *l, struct pool *pool,
			  const struct place *place, const struct config *config,
			  struct error *err);
/* Machines in a cloud, behind microvms_open(). The same; the clouds end before microvms_close().
 */
int microvms_open_far(struct microvms *m, struct loop *l, struct pool *pool, struct clouds *clouds,
		      const struct config *config, struct error *err);
/* Behind pool_free() and instances_free(). Also where it was never opened. */
void microvms_close(struct microvms *m);
struct provider *microvms_provider(struct microvms *m);

#endif
