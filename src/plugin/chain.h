/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_CHAIN_H
#define NACRE_PLUGIN_CHAIN_H

#include "base/log/error.h"
#include "base/time/clock.h"
#include "wire/document/cni_config.h"
#include "wire/document/cni_result.h"

/*
 * The plugins of one network as a chain: what CNI has a runtime do with them. Each function runs
 * one process after the other and waits for them (plugin/run.h). Errors begin with the plugin's
 * name and what it said.
 */

struct chain {
	const struct cni_config *config;
	const char *bin_dirs;  /* absolute, parted by ':' */
	const char *path;      /* PATH of a plugin */
	const char *container; /* "" for what is about no container, and the next three as well */
	const char *netns;     /* "": it is gone */
	const char *interface;
	const char *args;                 /* CNI_ARGS */
	const struct json_value *offered; /* of the capabilities; may be NULL */
	struct arena *arena;              /* results are there */
	nsec_t limit;                     /* of each plugin */
	nsec_t pause;                     /* before one is asked again that wants to be */
	int cancel_fd;                    /* or -1 */
};

/* Whether there is a program for each plugin: ERROR_PRECONDITION names the first that has none.
 * A chain that has not begun need not be undone. */
int chain_is_complete(const struct chain *c, struct error *err);
/* The result of the last one. Where it fails, chain_del() is what follows. */
int chain_add(const struct chain *c, struct cni_result *ret, struct error *err);
/* In reverse. result: that of chain_add(), or NULL. Ends at the first failure; may be repeated. */
int chain_del(const struct chain *c, const struct json_value *result, struct error *err);
/* Nothing before 0.4.0, and where the configuration does not want it. */
int chain_check(const struct chain *c, const struct json_value *result, struct error *err);
/* Nothing before 1.1.0 and where it is not wanted. attachments: JSON. Goes on after a failure and
 * tells the first. */
int chain_gc(const struct chain *c, const char *attachments, struct error *err);
/* Nothing before 1.1.0. ERROR_UNAVAILABLE. */
int chain_status(const struct chain *c, struct error *err);
/* Whether each plugin is there and speaks the version. ERROR_PRECONDITION. */
int chain_version(const struct chain *c, struct error *err);

#endif
