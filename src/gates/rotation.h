/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_ROTATION_H
#define NACRE_GATES_ROTATION_H

#include <stdint.h>

#include "base/log/error.h"
#include "gates/issuer.h"

/*
 * The end of a rotation of the authority: once all that the older one has signed is over, it is
 * retired. That is when the last certificate that it gave a user has ended or is revoked, and those
 * of instances, workloads and listeners too, which live a day at most.
 */

struct identities;
struct loop;
struct rotation;

struct rotation_config {
	struct loop *loop;
	struct issuer *issuer; /* both must outlive the rotation */
	const struct identities *identities;
};

int rotation_new(struct rotation **ret, const struct rotation_config *config);
struct rotation *rotation_free(struct rotation *r);

/* Seconds since 1970; 0: no rotation is in progress. */
uint64_t rotation_retires_at(const struct issuer_rotation *r, const struct identities *identities);

#endif
