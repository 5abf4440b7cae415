/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_PROTECT_H
#define NACRE_OCI_PROTECT_H

#include "base/error.h"

/*
 * Executes this program again out of a read-only mount that nobody else has, unless it already is:
 * for processes of ours that those in a container can see, who could open /proc/PID/exe of them and
 * write to the runtime itself (security.md A01). Returns 0 where it is protected, else an error; it
 * does not return where it executes.
 */
int protect_program(char **argv, struct error *err);

#endif
