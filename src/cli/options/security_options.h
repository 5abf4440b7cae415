/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SECURITY_OPTIONS_H
#define NACRE_CLI_SECURITY_OPTIONS_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/text/args.h"

/* The options for the privilege of a container, for its message: --cap-add, --cap-drop,
 * --group-add, --security-opt, --security-profile, --privileged, --device, --ulimit, --init; and
 * those that the containers of a pod have in common: --pid, --ipc, --uts, --sysctl,
 * --cgroup-parent. */

struct security_options {
	Aurae__Runtime__V0__Security message;
	char **add, **drop; /* of the arguments */
	uint32_t *groups;
	char **mask, **unmask;
	struct buf profile;
	Aurae__Runtime__V0__Ulimit *limits, **ulimits;
	Aurae__Runtime__V0__Device *devices, **device_list;
	char **vendor_devices; /* by the names of their vendors */
	char **words;          /* texts that the messages point to; ends with NULL */
};

#define SECURITY_OPTIONS_INIT                                                                      \
	{                                                                                          \
		.add = NULL                                                                        \
	}

/* ERROR_INVALID names the option. The message points into s and the arguments. */
int security_options_take(struct security_options *s, Aurae__Runtime__V0__Container *to,
			  const struct args *a, struct error *err);
void security_options_done(struct security_options *s);

struct pod_options {
	Aurae__Runtime__V0__PodSecurity message;
	char **sysctls; /* of the arguments */
};

/* *ret is NULL where nothing is given, else it lies in *p. ERROR_INVALID names the option. */
int pod_options_take(struct pod_options *p, const struct args *a,
		     Aurae__Runtime__V0__PodSecurity **ret, struct error *err);
void pod_options_done(struct pod_options *p);

#endif
