/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PS_FILTER_H
#define NACRE_CLI_PS_FILTER_H

#include "api/nacre.pb-c.h"
#include "base/text/args.h"

/*
 * `ps --filter KEY=VALUE`, as docker and podman have it. One of several values of a key must fit,
 * but all labels must; and something of every key. The daemon chooses by label, the rest is chosen
 * here from what it lists.
 */

#define PS_FILTER_KEYS                                                                             \
	"name=REGEX, id=ID, label=NAME[=VALUE], status=STATE, exited=CODE, ancestor=IMAGE, "       \
	"network=NAME, volume=PATH, pod=NAME, health=WORD"

#define OPTION_PS_FILTER                                                                           \
	{                                                                                          \
		"filter", 'f', "KEY=VALUE", "only what fits: " PS_FILTER_KEYS                      \
	}

struct ps_filter {
	struct ps_filter_entry *entries;
	size_t n;
	char **labels; /* for a ListRequest */
	size_t n_labels;
	bool ended; /* it asks for what has ended, too */
};

/* From --filter; the values stay those of the arguments. ERROR_INVALID for a key that is not known,
 * or a value that is none of it. */
int ps_filter_init(struct ps_filter *f, const struct args *a, struct error *err);
bool ps_filter_matches(const struct ps_filter *f, const Nacre__V1__Workload *w);
void ps_filter_done(struct ps_filter *f);

/* Its state as docker says it: "created", "running", "paused", "stopping", "exited", "removing". */
const char *ps_status(const Nacre__V1__Workload *w);

#endif
