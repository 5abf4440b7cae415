/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CONFIG_H
#define NACRE_DAEMON_CONFIG_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

/*
 * The configuration of a node: a YAML file of these keys, all optional. Anything else in it is an
 * error that names file, line and key.
 *
 *   log:
 *     level: info        # debug, info, warn, error
 *     form: text         # text, json
 *   drain: 10s           # how long calls may go on after SIGTERM
 *   cgroup: /nacre       # where workloads live below the root of the v2 hierarchy; default: below
 * the daemon's own group libexec: DIR         # where nacre-fetch is
 *   spare: yes     # whether a keeper is made ahead of need, for the next pod
 */
struct config {
	enum log_level log_level;
	enum log_form log_form;
	nsec_t drain;
	char cgroup[512]; /* "" : found out */
	char libexec[512];
	bool spare;
};

/* What holds without a file. */
void config_init(struct config *c);
/* missing_ok: a file that is not there is an empty one. */
int config_load(struct config *c, const char *path, bool missing_ok, struct error *err);

#endif
