/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_MODULES_H
#define NACRE_INIT_GUEST_MODULES_H

#include "base/error.h"

/*
 * Loads the kernel's modules that the initramfs brings in /modules, in the order of /modules/list,
 * one file name a line, and frees their memory there. A line that begins with '?' names one that
 * the machine can do without. No list: a kernel with everything built in.
 */
int guest_modules_load(struct error *err);

#endif
