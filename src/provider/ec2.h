/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_EC2_H
#define NACRE_PROVIDER_EC2_H

#include "base/log/error.h"
#include "provider/ec2_config.h"

/*
 * Kind ec2 of instance/provider.h: an instance in a virtual machine of Amazon's EC2
 * (doc/decisions/cloud-pods.md).
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

struct ec2s;
struct provider;

int ec2s_new(struct ec2s **ret, const struct ec2s_config *config, struct error *err);
/* When no instance is left in memory and the clouds have ended. Machines go on. */
struct ec2s *ec2s_free(struct ec2s *all);
/* Once the instances of earlier lives are taken up and the clouds have begun. */
void ec2s_begin(struct ec2s *all);
struct provider *ec2s_provider(struct ec2s *all);

#endif
