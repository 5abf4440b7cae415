/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_UPGRADE_H
#define NACRE_INSTANCE_UPGRADE_H

#include "instance/model.h"

/*
 * Keepers that an earlier build of this daemon has made are asked to go on as this one, in place,
 * from the top down and a few at a time. One that is busy is asked again; one that cannot stays
 * what it is, and `note` says why. Private to this area.
 */

/* At once; each is a matter of milliseconds, most of them of one core. */
#define UPGRADES_MAX 4

void upgrades_init(struct instances *all);
void upgrades_done(struct instances *all);
/* The instance has said hello, and what it has. */
void upgrade_consider(struct instance *i);
/* Whether its keeper is being asked, or is to be asked for the first time. */
bool upgrade_pending(struct instance *i);
/* Its peer is about to be freed. */
void upgrade_forget(struct instance *i);

#endif
