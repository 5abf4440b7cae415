/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_GCE_CALL_H
#define NACRE_CLOUD_GCE_CALL_H

#include <stdbool.h>

#include "base/memory/buf.h"
#include "cloud/gce_token.h"
#include "cloud/provider.h"
#include "wire/document/jsonread.h"

/*
 * One request of Google's Compute Engine (REST, JSON), sent and sent again: after a lost answer, a
 * server's fault, a limit of rates, a token that has ended, until GCE_PATIENCE is over. What takes
 * longer is an operation there, which is waited for. One object for each thread.
 */

#define GCE_ANSWER_MAX (8 << 20)
#define GCE_PATIENCE (45 * NSEC_PER_SEC)

/* The state that all threads share. */
struct gce_account {
	struct url endpoint;
	char project[64], zone[64];
	struct gce_tokens tokens;
	struct buf authorities;
};

struct gce {
	struct gce_account *account;
	struct http http;
	bool once; /* the next call is one of which each try must be known */
};

/* path: behind the URL of the zone ("/instances?maxResults=500"). body: JSON, or NULL. *ret: the
 * object that is answered, in the arena. f->code is the reason of a refusal. */
int gce_call(struct gce *g, const char *method, const char *path, const char *body,
	     struct arena *arena, const struct json_value **ret, struct cloud_fault *f,
	     struct error *err);
/* Waits until it is done; where that takes too long f->unknown. The operation's error is the
 * result. */
int gce_wait(struct gce *g, const struct json_value *operation, struct arena *arena,
	     struct cloud_fault *f, struct error *err);

/* The result that an answer of this status and body (NULL: none that can be read) stands for: 0, or
 * the error; *ret_again where a retry makes sense. */
int gce_judge(int status, const struct json_value *body, struct cloud_fault *f, bool *ret_again,
	      struct error *err);
/* The text of a member, "" where it has none. */
const char *gce_text(const struct json_value *object, const char *name);

#endif
