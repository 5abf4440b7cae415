/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_HEALTH_VIEW_H
#define NACRE_CLI_HEALTH_VIEW_H

#include "api/nacre.pb-c.h"
#include "base/text/json.h"

/* Health of containers, as it is shown. */

/* "healthy", "unhealthy", "starting": of all containers that are probed, the worst; "": none is. */
const char *health_view_word(const Nacre__V1__Workload *w);
/* The member "health" of a container. */
void health_view(struct json *j, const Nacre__V1__Container *c);
/* The members of one result. */
void health_view_result(struct json *j, const Nacre__V1__HealthResult *r);
/* The member "Health" of docker's State; nothing where it is not probed. */
void health_view_docker(struct json *j, const Nacre__V1__Container *c);

#endif
