/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_GCE_TOKEN_H
#define NACRE_CLOUD_GCE_TOKEN_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/time/clock.h"
#include "cloud/http.h"

/*
 * The token that requests to Google show (OAuth 2.0). It comes from
 *
 *   1. the key of a service account in a file: that which is named, else the one of
 *      GOOGLE_APPLICATION_CREDENTIALS. A claim is signed with it (JWT, RS256) and handed to the
 *      token endpoint that the file names (https, or http to a loopback address)
 *   2. the metadata service of the machine that this process runs in (GCE_METADATA_HOST names
 *      another host)
 *
 * The file is read once, before the sandbox closes. A token is asked for anew some minutes before
 * it ends, by the monotonic clock. From any thread.
 */

#define GCE_TOKEN_MAX 4095

struct gce_token {
	char text[GCE_TOKEN_MAX + 1];
};

struct gce_tokens {
	pthread_mutex_t lock;
	void *key; /* EVP_PKEY; NULL: the metadata service is asked */
	char email[256], key_id[128];
	struct url from; /* the token endpoint, or the metadata service */
	const struct buf *authorities;
	struct gce_token now;
	nsec_t ends; /* by the monotonic clock; 0: there is none */
};

/* path: of the file; "": GOOGLE_APPLICATION_CREDENTIALS, else the metadata service. authorities
 * live as long. ERROR_PRECONDITION, ERROR_INVALID say what is wrong with the file. */
int gce_tokens_open(struct gce_tokens *t, const char *path, const struct buf *authorities,
		    struct error *err);
void gce_tokens_close(struct gce_tokens *t);
/* A copy of a token that does not end soon. ERROR_PRECONDITION: the key is refused, or there is
 * none; ERROR_UNAVAILABLE. */
int gce_tokens_get(struct gce_tokens *t, struct gce_token *ret, struct error *err);
/* The cloud does not take this one any more. */
void gce_tokens_drop(struct gce_tokens *t, const struct gce_token *old);

/* ---- for tests ---- */

/* Adds the claim of this moment (seconds since 1970), signed. */
int gce_tokens_sign(struct gce_tokens *t, uint64_t now, struct buf *ret, struct error *err);

#endif
