/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_MODULES_H
#define NACRE_INIT_GUEST_MODULES_H

#include "base/log/error.h"

/*
 * The kernel's modules that the initramfs brings in /modules, loaded in the order of /modules/list,
 * one file name a line; the memory of each is freed there. A line that begins with '?' names one
 * that the machine can do without; with '+' likewise, and a boot does not wait for it: each takes
 * milliseconds where the processor is emulated. So does each disk, and a machine has slots for
 * many: the driver of disks looks at none when it is loaded, but at those that are looked for
 * (isolate/disk/disk_bus.h). No list: a kernel with everything built in.
 */
struct guest_modules {
	int dir_fd;
	char *later; /* lines */
};

#define GUEST_MODULES_INIT                                                                         \
	{                                                                                          \
		.dir_fd = -1, .later = NULL                                                        \
	}

/* Those that a boot waits for; all of them where the machine is given shares (virtiofs). */
int guest_modules_load(struct guest_modules *m, struct error *err);
/* All others: now, or by a thread. Once; what fails is logged. */
void guest_modules_load_later(struct guest_modules *m);
void guest_modules_load_apart(struct guest_modules *m);

#endif
