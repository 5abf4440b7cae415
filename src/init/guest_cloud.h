/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_CLOUD_H
#define NACRE_INIT_GUEST_CLOUD_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * A guest in a cloud: there is no boot port. It asks for an address by DHCP, and for what the node
 * has to say to it in the metadata service of the cloud (wire/message/metadata.h), which nobody in
 * this machine reaches from then on. In vSphere it asks the host (init/guest_vmware.h), overwrites
 * what it has read there, and tells its address. It asks for minutes, since all of it may come
 * later than the machine.
 *
 * The address is kept without asking again: a cloud's machine has it as long as it lives.
 */

/* Whether the words of the kernel's command line say so: NACRE_CLOUD=ec2, gce or vsphere.
 * ERROR_INVALID: another cloud. */
int guest_cloud_is_asked(bool *ret, struct error *err);
/* Appends the frame BOOT, which has a secret in it, to `frame`. Returns the index of the network
 * device. */
int guest_cloud_hear(struct buf *frame, struct error *err);

#endif
