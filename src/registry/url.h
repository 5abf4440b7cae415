/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_URL_H
#define NACRE_REGISTRY_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * URLs of http and https as registries name them, taken apart strictly: no user, no fragment, no
 * byte that would have to be escaped, a host of letters, digits, '.', '-' and '_' or an IPv6
 * address in brackets. All decisions about a URL are made on these parts, and curl gets the result
 * of url_format(): there is no second opinion about where its host ends.
 */

#define URL_HOST_MAX 255
#define URL_PATH_MAX 4095 /* with the query: signed links are long */
#define URL_SIZE (URL_HOST_MAX + URL_PATH_MAX + 24)

struct url {
	bool tls;
	char host[URL_HOST_MAX + 1]; /* lower case, an IPv6 address without its brackets */
	uint16_t port;
	char path[URL_PATH_MAX + 1]; /* begins with '/', the query behind it */
};

/* Where a host is, as far as its name says it: a name says nothing but "localhost". */
enum url_reach { URL_FAR, URL_LOOPBACK, URL_LINK_LOCAL };

struct sockaddr;

/* ERROR_INVALID. Without a path: "/". */
int url_parse(struct url *ret, const char *text, struct error *err);
/* Resolves a Location or Link of an answer from `base`. */
int url_join(struct url *ret, const struct url *base, const char *text, struct error *err);
/* Behind the host and port of a reference: "docker.io" is where Docker keeps it. */
int url_of_host(struct url *ret, const char *host, bool tls, struct error *err);
void url_format(const struct url *u, char ret[URL_SIZE]);
/* Scheme, host and port, as errors name it. */
void url_format_origin(const struct url *u, char ret[URL_SIZE]);
/* Scheme, host and port. */
bool url_same_origin(const struct url *a, const struct url *b);
/*
 * One host, or two under a name that one owner has: "auth.docker.io" and "registry-1.docker.io".
 * Names are compared by their last two labels, or three where the second is as short as those below
 * a country (co.uk); addresses as a whole.
 */
bool url_same_owner(const struct url *a, const struct url *b);
enum url_reach url_reach(const struct url *u);
enum url_reach url_reach_of(const struct sockaddr *address, size_t len);

/* Escapes for a query or a form: to has room for three times the length and a NUL. */
void url_escape(char *to, const char *text);

#endif
