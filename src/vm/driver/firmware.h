/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_FIRMWARE_H
#define NACRE_VM_FIRMWARE_H

#include "base/log/error.h"
#include "vm/driver/driver.h"

/*
 * Firmware of machines, as the packages of this host have it. Opened read-only; ERROR_PRECONDITION
 * names the package where there is none.
 */

int firmware_open(enum vm_firmware firmware, struct error *err);
/* The variables of UEFI as they are before the first boot. At most FIRMWARE_VARS_MAX bytes. */
int firmware_open_vars(struct error *err);
/* Whether a guest can boot so, before anything is made for it. 0 or ERROR_PRECONDITION. */
int firmware_check(enum vm_firmware firmware, struct error *err);

#define FIRMWARE_VARS_MAX (4U << 20)

#endif
