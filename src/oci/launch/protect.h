/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_PROTECT_H
#define NACRE_OCI_PROTECT_H

#include "base/log/error.h"

/*
 * Processes of ours that those in a container can see show them this program: who opens
 * /proc/PID/exe of them could write to the runtime itself (security.md A01). So it executes itself
 * again out of a read-only mount that nobody else has.
 */

/* 1, or 0 where this process is protected already. */
int protect_is_needed(struct error *err);
/* Returns only where it fails. */
int protect_program(char **argv, struct error *err);

#endif
