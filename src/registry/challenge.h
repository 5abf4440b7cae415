/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_CHALLENGE_H
#define NACRE_REGISTRY_CHALLENGE_H

#include <stdbool.h>

#include "base/log/error.h"

/* The challenge of an answer 401: the value of WWW-Authenticate (RFC 7235). */

#define CHALLENGE_REALM_MAX 2047
#define CHALLENGE_WORD_MAX 1023

struct challenge {
	bool basic;
	bool bearer; /* the next three are of its challenge */
	char realm[CHALLENGE_REALM_MAX + 1];
	char service[CHALLENGE_WORD_MAX + 1];
	char scope[CHALLENGE_WORD_MAX + 1];
};

/*
 * Adds the challenges of one header; the first one of a kind counts, other schemes are left out.
 * ERROR_INVALID where it is not of this form, or something in it is too long.
 */
int challenge_add(struct challenge *c, const char *value, struct error *err);

#endif
