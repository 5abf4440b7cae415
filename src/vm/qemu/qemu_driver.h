/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QEMU_DRIVER_H
#define NACRE_VM_QEMU_DRIVER_H

#include "vm/driver/driver.h"

/*
 * QEMU's machine `microvm`, from Debian's qemu-system-x86: virtio over MMIO with ACPI tables, a
 * serial line, pvpanic. In the machine's directory: qmp.sock, which it is spoken to by, and
 * vmm.err, a named pipe with its last words, which it holds open itself.
 */
extern const struct vm_driver vm_qemu;

#endif
