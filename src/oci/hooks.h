/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_HOOKS_H
#define NACRE_OCI_HOOKS_H

#include <stdbool.h>

#include "base/error.h"
#include "wire/oci_config.h"

/*
 * Runs the hooks of one kind, in order, where this process stands: in the runtime's namespaces, or
 * in a container's when its first process runs them. Each gets the state on standard input, exactly
 * the variables that its entry names and not one more, "/" as its directory, and what the caller
 * has as standard error for both streams. One that fails, or is still there after its timeout and
 * is killed, is an error, and ends the list.
 *
 * inside: in a container, with the credentials that this process has by now.
 */
int hooks_run(const struct oci_config *config, enum oci_hook_kind kind, const char *state,
	      bool inside, struct error *err);

/* The same for hooks whose failure changes nothing any more: each is told as a warning. */
void hooks_run_all(const struct oci_config *config, enum oci_hook_kind kind, const char *state);

/* Whether there is any. */
bool hooks_has(const struct oci_config *config, enum oci_hook_kind kind);

#endif
