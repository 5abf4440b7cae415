/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_HOSTS_H
#define NACRE_REGISTRY_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"

/*
 * hosts.toml, in the layout that containerd made usual: how one registry is reached, and its
 * mirrors. Read strictly: of TOML what this layout needs (strings on one line, booleans, arrays,
 * tables), and no key that is not known, since a misspelt "skip_verify" or "ca" must not pass.
 *
 *   server = "https://registry.example"      capabilities, ca, client, skip_verify, override_path,
 *   ca = "ca.pem"                            dial_timeout and [header] stand here for the server,
 *   [host."https://mirror.example"]          and in a [host."URL"] for that mirror
 *   capabilities = ["pull", "resolve"]
 *   client = [["a.pem", "a.key"]]
 *   [host."https://mirror.example".header]
 *   x-any = "value"
 */

struct hosts_entry {
	const char *url; /* as written; of the server NULL where it is not given */
	uint32_t can;    /* FETCH_CAN_* */
	bool skip_verify;
	bool override_path;
	uint32_t dial_ms;     /* 0: not given */
	const char **ca;      /* files, ended by NULL; relative ones stand beside hosts.toml */
	const char **client;  /* the same in pairs: certificate, key (the certificate's file, where
				 one has both) */
	const char **headers; /* "Name: value", ended by NULL */
	size_t n_ca, n_client, n_headers;
};

struct hosts {
	struct hosts_entry server;
	struct hosts_entry *entries; /* the mirrors, in the file's order */
	size_t n_entries;
};

#define HOSTS_LIST_MAX 32 /* elements of an array, headers of a host */

/* The result lives in the arena. ERROR_INVALID with the line. */
int hosts_parse(struct hosts *ret, struct arena *arena, const char *text, size_t len,
		struct error *err);

#endif
