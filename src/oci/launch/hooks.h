/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_HOOKS_H
#define NACRE_OCI_HOOKS_H

#include <stdbool.h>

#include "base/log/error.h"
#include "isolate/plan/plan.h"
#include "wire/document/oci_config.h"

/*
 * Runs the hooks of one kind, in order, where this process stands: in the runtime's namespaces, or
 * in a container's when its first process runs them. Each gets the state on standard input, exactly
 * the variables that its entry names and not one more, "/" as its directory, and what the caller
 * has as standard error for both streams. One that fails, or is still there after its timeout and
 * is killed, is an error, and ends the list.
 *
 * inside: NULL in the runtime's namespaces; else the plan of the container's first process, which
 * is the caller: a hook has the credentials that it has by now. One of startContainer, whose
 * program is a file of the container's own root, also has the plan's no_new_privs and filter
 * (security.md A25).
 */
int hooks_run(const struct oci_config *config, enum oci_hook_kind kind, const char *state,
	      const struct isolate_plan *inside, struct error *err);

/* The same for hooks whose failure changes nothing any more: each is told as a warning. */
void hooks_run_all(const struct oci_config *config, enum oci_hook_kind kind, const char *state);

/* Whether there is any. */
bool hooks_has(const struct oci_config *config, enum oci_hook_kind kind);

#endif
