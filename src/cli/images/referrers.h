/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_REFERRERS_H
#define NACRE_CLI_REFERRERS_H

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "cli/remote/client.h"

/* A document that refers to an image in its registry: an SBOM, provenance, a signature. A value. */

struct referrer {
	char *digest, *media_type, *artifact_type;
	uint64_t size;
	char **annotations; /* names and values by turns, ended by NULL */
	unsigned n_left_out;
};

struct client_target;

struct referrers {
	struct client_call call;
	char *subject; /* the digest that they refer to */
	struct referrer *list;
	size_t n;
};

#define REFERRERS_INIT                                                                             \
	{                                                                                          \
		.subject = NULL                                                                    \
	}

/* Asks the registry that the image came from, as the user. ERROR_PRECONDITION where it came from
 * none. On an error referrers_done() is still due. */
int referrers_ask(struct referrers *r, const struct client_target *daemon,
		  const Nacre__V1__Image *image, struct error *err);
/* {"subject": ..., "list": [...]} under that key. */
void referrers_show(struct json *j, const char *key, const struct referrers *r);
void referrers_done(struct referrers *r);

#endif
