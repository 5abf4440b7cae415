/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_REMOTE_H
#define NACRE_RUNTIME_REMOTE_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * Checks for features that are not supported yet in an instance with a kernel of its own, which the
 * node's files and groups do not reach. 0, or ERROR_UNSUPPORTED with the field.
 */

struct instance;
struct instance_choice;
struct workload_spec;

/* Whether what is made there will be: parent NULL is the node; choice: of an instance that is to be
 * made, or NULL. */
bool remote_will_be(const struct instance *parent, const struct instance_choice *choice);
/* Of a workload that is to be made. */
int remote_check_run(const struct workload_spec *spec, struct error *err);
/* Of a request about one that is there (NULL: none): "FIELD: PATH has a kernel of its own, WHAT".
 */
int remote_refuse(const struct instance *i, const char *field, const char *what, struct error *err);

#endif
