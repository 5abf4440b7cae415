/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_FAR_CONFIG_H
#define NACRE_PROVIDER_FAR_CONFIG_H

#include "base/time/clock.h"

/* The configuration of instances in machines of a cloud. */

struct clouds;
struct issuer;
struct loop;
struct pool;

struct fars_config {
	struct loop *loop;
	struct pool *pool;
	struct clouds *clouds;    /* outlives the instances, and ends before this */
	struct issuer *issuer;    /* outlives all of it */
	const char *gate_program; /* path of nacre-gate; copied */
	const char *image;        /* of the agent, as the cloud calls it; "": none; lives as long */
	nsec_t certificate_life;
	nsec_t boot_limit; /* from the first call to the answer of its keeper */
};

#endif
