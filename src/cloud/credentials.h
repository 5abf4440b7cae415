/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_CREDENTIALS_H
#define NACRE_CLOUD_CREDENTIALS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/time/clock.h"

/*
 * The key that requests are signed with. It comes from the first of these that has one:
 *
 *   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN of the environment, where no
 *      profile is named
 *   2. the profile in ~/.aws/credentials, then in ~/.aws/config (or the files that
 *      AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name)
 *   3. the metadata service of the machine that this process runs in (IMDSv2)
 *
 * The first two are read once, before the sandbox closes. The third is asked again some minutes
 * before the key ends.
 */

#define CREDENTIALS_ID_MAX 256
#define CREDENTIALS_SECRET_MAX 512
#define CREDENTIALS_TOKEN_MAX 8192

struct credentials {
	char id[CREDENTIALS_ID_MAX + 1];
	char secret[CREDENTIALS_SECRET_MAX + 1];
	char token[CREDENTIALS_TOKEN_MAX + 1]; /* "": none */
	nsec_t ends;                           /* by the wall clock; NSEC_NEVER */
};

struct credentials_source {
	pthread_mutex_t lock;
	bool fixed;             /* of the environment or a file */
	char metadata[256];     /* URL of the metadata service; "" where it is switched off */
	struct credentials now; /* id "": none yet */
};

/* Reads environment and files. profile: "" for $AWS_PROFILE, else "default". ERROR_PRECONDITION
 * where a named profile has no key, or a file cannot be read as one. */
int credentials_open(struct credentials_source *s, const char *profile, struct error *err);
void credentials_close(struct credentials_source *s);
/* A copy of a key that does not end soon. ERROR_PRECONDITION where there is none,
 * ERROR_UNAVAILABLE where the metadata service does not answer. From any thread. */
int credentials_get(struct credentials_source *s, struct credentials *ret, struct error *err);
/* The cloud says that this key has ended: the next one is asked for. false: there is no other, but
 * by reading environment and files again. */
bool credentials_renew(struct credentials_source *s, const struct credentials *old);
/* Whether the file's section, "[NAME]" or "[profile NAME]", has a key: 1, or 0. ERROR_INVALID with
 * the line. */
int credentials_read_profile(struct credentials *ret, const char *text, size_t len,
			     const char *profile, struct error *err);
/* The answer of the metadata service. ERROR_INVALID. */
int credentials_read_metadata(struct credentials *ret, const void *data, size_t len,
			      struct error *err);

#endif
