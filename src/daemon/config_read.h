/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CONFIG_READ_H
#define NACRE_DAEMON_CONFIG_READ_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
