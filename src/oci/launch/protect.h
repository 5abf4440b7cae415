/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_PROTECT_H
#define NACRE_OCI_PROTECT_H

#include "base/log/error.h"

/*
 * Processes in a container that can see one of ours reach this program through it: one that opens
 * its /proc/PID/exe could write to the runtime itself (security.md A01). So it executes itself
 * again out of a read-only mount that nobody else has.
 */

/* 1, or 0 where this process is protected already. */
int protect_is_needed(struct error *err);
/* Returns only where it fails. */
int protect_program(char **argv, struct error *err);

#endif
