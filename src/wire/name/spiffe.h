/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_SPIFFE_H
#define NACRE_WIRE_SPIFFE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"

/*
 * SPIFFE ids, "spiffe://TRUST-DOMAIN/SEGMENT/...": read strictly, so that each identity has one
 * spelling only and two are the same exactly if their bytes are. A trust domain has 1 to 255 of
 * [a-z0-9._-]; a segment is one or more of [A-Za-z0-9._-], neither "." nor "..". There is no port,
 * user, query, fragment, percent sign, empty segment or slash at the end.
 *
 * A node is /node/NODE of its trust domain, an instance in it /node/NODE/instance/ID, a person or a
 * program that calls nodes from elsewhere /user/NAME.
 */

#define SPIFFE_MAX 2048 /* bytes of an id */
#define SPIFFE_SIZE (SPIFFE_MAX + 1)
#define SPIFFE_DOMAIN_MAX 255

/* Places in the text that was read. */
struct spiffe {
	const char *domain;
	size_t domain_len;
	const char *path; /* with its first slash; "" for the id of the trust domain itself */
	size_t path_len;
};

/* All len bytes: 0, or -EINVAL with what is wrong. The text need not end with NUL. */
int spiffe_parse(struct spiffe *ret, const char *text, size_t len, struct error *err);
/* Whether the text is an id with a path, as a process has one. */
bool spiffe_is_id(const char *text);
bool spiffe_domain_is_valid(const char *domain);
/* Whether both are ids and of the same trust domain. */
bool spiffe_same_domain(const char *a, const char *b);

/* Names of users have at most so many bytes. */
#define SPIFFE_USER_MAX 64

/* Whether it is "/user/NAME". */
bool spiffe_is_user(const struct spiffe *s);
bool spiffe_user_is_valid(const char *name);
/* ERROR_INVALID for a name that a user cannot have. */
int spiffe_format_user(char ret[SPIFFE_SIZE], const char *domain, const char *name,
		       struct error *err);

/* ERROR_INVALID for names that an id cannot have. instance NULL: the node itself. */
int spiffe_format(char ret[SPIFFE_SIZE], const char *domain, const char *node, const char *instance,
		  struct error *err);

#endif
