/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_REGISTRY_H
#define NACRE_REGISTRY_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/time/clock.h"
#include "registry/endpoint.h"
#include "registry/transfer.h"
#include "wire/name/reference.h"

/*
 * A client of one repository of one registry (OCI distribution 1.1, Docker v2), for one job: what
 * registry/client.h makes, and exchanges work on. One thread. Of a registry as such no mirror is
 * asked, and no token for a repository.
 *
 * Credentials are shown to the registry that they were given for, and to the realm that it names
 * where one owner has both (url_same_owner) or credentials for the realm's own host were given;
 * they are never sent behind a redirect to another origin.
 */

struct registry_credentials {
	const char *host, *user, *secret;
	uint32_t kind; /* enum fetch_auth */
};

struct registry_settings {
	uint32_t connections, stall_ms, min_rate, n_retries, retry_ms, retry_max_ms, connect_ms,
		throttled_ms;
};

struct registry_config {
	/* Host and path of the reference. "HOST/": of no repository, but of the registry itself. */
	const char *name;
	struct endpoint_config endpoints; /* its host is taken from the name */
	const struct registry_credentials *credentials;
	size_t n_credentials;
	struct registry_settings settings; /* 0: the default */
	const char *http_proxy, *https_proxy, *no_proxy;
	/* Of a push: repositories from which blobs may be mounted; their paths, ended by NULL. */
	char *const *mounts;
	/* A line for people. */
	void (*note)(void *userdata, const char *text);
	void *userdata;
};

struct registry_token;

struct registry {
	const struct registry_config *config; /* lives as long as this */
	struct registry_settings settings;
	struct endpoints endpoints;
	struct registry_token *tokens; /* one for each endpoint */
	struct transfers *transfers;   /* its own, or those of the one that it goes with */
	struct transfers own;
	struct list exchanges;
	char host[REFERENCE_NAME_MAX + 1];
	const char *path; /* of the repository, within the name */
	bool pushes;
	uint64_t jitter;
};

#endif
