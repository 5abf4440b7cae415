/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CONFIG_READ_H
#define NACRE_DAEMON_CONFIG_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/* The YAML of a configuration, by the table of its keys (daemon/config.c). */

struct config;

#define CONFIG_KEYS_MAX 128

struct config_key {
	const char *key;
	int (*set)(struct config *c, const char *value);
	const char *expected;
	bool is_list; /* set() is called for each value */
};

/* n_keys: at most CONFIG_KEYS_MAX. 0, or an error that names path, line and key. */
int config_read(struct config *c, const struct config_key *keys, size_t n_keys, const char *path,
		const struct buf *text, struct error *err);

/* The events of any YAML file of the daemon, in their order, up to the first error. 0, what fn
 * returned, or ERROR_INVALID that names path and line. */
int config_read_events(const void *data, size_t len, const char *path,
		       int (*fn)(void *userdata, const yaml_event_t *e, struct error *err),
		       void *userdata, struct error *err);

#endif
