/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_ENDPOINT_H
#define NACRE_REGISTRY_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "registry/url.h"

/*
 * Where the content of one registry can be had: its mirrors, first those of our configuration and
 * then those of hosts.toml, and last the registry itself. The files for it are read here, once,
 * before the sandbox closes.
 */

struct endpoint {
	struct url root;   /* of the API: ".../v2", without a slash at the end */
	char *credentials; /* the host whose credentials it may see */
	bool mirror;       /* is told which registry is meant ("ns") */
	uint32_t can;      /* FETCH_CAN_* */
	bool insecure;     /* TLS without looking at the certificate */
	uint32_t dial_ms;  /* 0: not given */
	struct buf ca;     /* PEM, besides the system's; may be empty */
	struct buf cert;   /* PEM; empty: none */
	struct buf key;
	char **headers; /* "Name: value" */
};

struct endpoints {
	struct endpoint *list;
	size_t n;
	struct buf system_ca; /* PEM */
};

struct endpoint_mirror {
	const char *host, *url;
	uint32_t can, flags;
};

struct endpoint_config {
	const char *host;    /* of the reference */
	uint32_t host_flags; /* FETCH_HOST_*, of the registry itself */
	char *const *dirs;   /* certs.d and its like; the first that has a directory for the host */
	const struct endpoint_mirror *mirrors;
	size_t n_mirrors;
};

#define ENDPOINTS_INIT                                                                             \
	{                                                                                          \
		.list = NULL, .system_ca = BUF_INIT                                                \
	}

/* ERROR_INVALID names the file and line. On an error endpoints_done() is still due. */
int endpoints_load(struct endpoints *e, const struct endpoint_config *config, struct error *err);
void endpoints_done(struct endpoints *e);

#endif
