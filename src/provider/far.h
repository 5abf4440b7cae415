/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_FAR_H
#define NACRE_PROVIDER_FAR_H

#include "base/log/error.h"
#include "instance/model.h"
#include "provider/far_config.h"

/*
 * Kinds ec2, gce and vsphere of instance/provider.h: an instance in a virtual machine of a cloud
 * (doc/decisions/cloud-pods.md). A node has one cloud, and makes instances of its kind alone; those
 * of another one that are there go on.
 *
 * Its parts: a machine in the cloud with a record of its own (clouds/clouds.h), made from the
 * agent's image, in which this program is pid 1 and keeper; and a gate (vm/driver/gate.h) in the
 * network of the node, the only process here that speaks with it. The machine learns from its
 * user-data who it is, and enrols with the token in there. Images come to it over the gate, as
 * disks in its memory (peer_ops.put_disk).
 *
 * The gate is what the instance lives and dies with: where it ends, its machine is ended in the
 * cloud, and where the machine goes, the gate is. A machine whose instance is not there any more
 * goes: also where the node has lost its instances by a reboot.
 */

struct fars;
struct provider;

int fars_new(struct fars **ret, const struct fars_config *config, struct error *err);
/* When no instance is left in memory and the clouds have ended. Machines go on. */
struct fars *fars_free(struct fars *all);
/* Once the instances of earlier lives are taken up and the clouds have begun. */
void fars_begin(struct fars *all);
/* NULL: the kind is none of a cloud. */
struct provider *fars_provider(struct fars *all, enum instance_kind kind);

#endif
