/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QEMU_IO_ERROR_H
#define NACRE_VM_QEMU_IO_ERROR_H

#include <stdbool.h>

#include "vm/driver/driver.h"

/* Decodes QEMU's event BLOCK_IO_ERROR, of a disk whose node was named by qemu.c. */

struct json_value;

/* False: it is of no disk of ours, or not what QEMU says. */
bool qemu_io_error_read(struct vm_io_error *ret, const struct json_value *data);

#endif
