/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_HEALTH_OPTIONS_H
#define NACRE_CLI_HEALTH_OPTIONS_H

#include <stdbool.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"

struct args;

/* How it is found out whether a container does its work. */
#define OPTIONS_HEALTH                                                                             \
	{ "health-cmd", 0, "COMMAND",                                                              \
	  "probe its health so: for its shell, or a JSON array of words; none" },                  \
		{ "health-http", 0, "PORT[/PATH]", "probe by a GET: 200 to 399 is healthy" },      \
		{ "health-tcp", 0, "PORT", "probe by a connection to a port of it" },              \
		{ "health-grpc", 0, "PORT[/SERVICE]", "probe by grpc.health.v1" },                 \
		{ "health-interval", 0, "TIME", "from a probe to the next one, else 30s" },        \
		{ "health-timeout", 0, "TIME", "of a probe, which is killed then, else 30s" },     \
		{ "health-retries", 0, "N", "so many failures in a row: unhealthy, else 3" },      \
		{ "health-start-period", 0, "TIME", "after its start failures do not count yet" }, \
		{ "health-start-interval", 0, "TIME", "between probes in that time, else 5s" },    \
		{ "health-on-failure", 0, "ACTION", "none, kill, stop or restart it then" },       \
	{                                                                                          \
		"no-healthcheck", 0, NULL, "no probe, whatever its image says"                     \
	}

/* Lives as long as the arguments. */
struct health_options {
	struct arena arena;
	Aurae__Runtime__V0__HealthCheck message;
	Aurae__Runtime__V0__HttpProbe http;
	Aurae__Runtime__V0__GrpcProbe grpc;
};

/* Puts the values of these options into the message of a container, which points into h.
 * ERROR_INVALID names the option. */
int health_options_take(struct health_options *h, Aurae__Runtime__V0__Container *to,
			const struct args *a, struct error *err);
/* ERROR_INVALID: --health-on-failure=restart was given, which excludes --rm. */
int health_options_check_stays(const struct health_options *h, struct error *err);
void health_options_done(struct health_options *h);

#endif
