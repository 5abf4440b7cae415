/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_HEALTH_H
#define NACRE_RPC_HEALTH_H

#include <stdbool.h>

#include "base/memory/list.h"

/*
 * grpc.health.v1.Health: one state for all services of a server, as a value in it. The call_method
 * of each input has the struct health as its userdata.
 */

struct health {
	bool serving;
	struct list watches;
	bool (*knows)(struct health *h, const char *service);
};

#define HEALTH_SERVICE "grpc.health.v1.Health"

extern const struct call_input health_check;
extern const struct call_input health_watch;

void health_init(struct health *h, bool (*knows)(struct health *h, const char *service));
/* NOT_SERVING from now on; watchers hear it, and their calls end. */
void health_drain(struct health *h);

#endif
