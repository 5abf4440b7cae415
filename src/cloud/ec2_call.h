/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_EC2_CALL_H
#define NACRE_CLOUD_EC2_CALL_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "cloud/credentials.h"
#include "cloud/http.h"
#include "cloud/provider.h"
#include "cloud/xml.h"
#include "registry/url.h"

/*
 * One request of EC2's query API, signed, sent and sent again: after a lost answer, a server's
 * fault, a throttled request, with pauses that grow and jitter, until EC2_PATIENCE is over. One
 * object for each thread.
 */

#define EC2_ANSWER_MAX (8 << 20)
#define EC2_PATIENCE (45 * NSEC_PER_SEC)

/* The state that all threads share. */
struct ec2_account {
	struct url endpoint;
	char region[64];
	struct credentials_source credentials;
	struct buf authorities;
};

struct ec2 {
	struct ec2_account *account;
	struct http http;
	bool once; /* the next call is one of which each try must be known */
};

/* endpoint "": that of the region. ERROR_INVALID names what is wrong with the endpoint: https, or
 * http to a loopback address. */
int ec2_account_open(struct ec2_account *a, const char *region, const char *endpoint,
		     const char *profile, struct error *err);
void ec2_account_close(struct ec2_account *a);

int ec2_init(struct ec2 *e, struct ec2_account *account, struct error *err);
void ec2_done(struct ec2 *e);

/* *ret: the root element of the answer, in the arena. */
int ec2_call(struct ec2 *e, const struct buf *form, struct arena *arena, struct xml_node **ret,
	     struct cloud_fault *f, struct error *err);

/* The result that an answer of this status and body stands for: 0, or the error; *ret_again where a
 * retry makes sense. */
int ec2_judge(int status, const struct xml_node *root, struct cloud_fault *f, bool *ret_again,
	      struct error *err);

#endif
