/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_POLICY_H
#define NACRE_DAEMON_POLICY_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * The methods that remote users may call, by a file that the administrator writes: a YAML mapping
 * of SPIFFE ids to permissions, a word or a list of words:
 *
 *   spiffe://nacre.local/user/alice: admin
 *   spiffe://nacre.local/user/ci-*: [ reader, /nacre.v1.ImageService/Pull ]
 *
 * A word is a role ("admin": everything; "reader": what changes nothing) or a method; a '*' at the
 * end of a method or of an id stands for any rest. All rules that name an id add up; an id without
 * a rule may do nothing.
 */

#define POLICY_RULES_MAX 1024

struct policy;

/* ERROR_INVALID with file and line; or the error of the file. */
int policy_load(struct policy **ret, const char *path, struct error *err);
/* The same of a text, for which `name` stands in errors. */
int policy_parse(struct policy **ret, const char *text, size_t len, const char *name,
		 struct error *err);
struct policy *policy_free(struct policy *p);

/* Whether a rule lets the id call "/package.Service/Method". */
bool policy_allows(const struct policy *p, const char *id, const char *method);

#endif
