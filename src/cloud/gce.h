/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_GCE_H
#define NACRE_CLOUD_GCE_H

#include "cloud/gce_call.h"

/*
 * Google's Compute Engine as one of the clouds (cloud/provider.h). A machine is called there by the
 * token of the call that makes it, which is a name like any (RFC 1035), and the id of that request
 * is drawn from it: a call that is made again finds what the first one has made. Tags are labels;
 * groups are network tags, by which firewall rules choose machines.
 */

/* ---- pure, for tests ---- */

#define GCE_UUID_SIZE 37

/* The body of instances.insert, to be freed. NULL without memory. */
char *gce_create_body(const struct gce_account *a, const struct cloudmsg *q, struct arena *arena);
/* The requestId of a token: the same one each time. */
void gce_request_id(const char *token, char ret[GCE_UUID_SIZE]);
/* An instance. ERROR_INVALID where it has no name that is one, or a text is too long. */
int gce_read_machine(struct cloud_machine *ret, const struct json_value *item, struct arena *arena,
		     struct error *err);

#endif
