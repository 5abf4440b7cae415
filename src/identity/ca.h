/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_CA_H
#define NACRE_IDENTITY_CA_H

#include "base/log/error.h"
#include "identity/cert.h"

/*
 * The certificate authority of a node: one Ed25519 key that signs the certificates of the node's
 * own end and of its instances. It is made at first start, and lives in one file, "ca" (mode 0600)
 * of a directory that is handed in, which is there whole or not at all.
 */

struct ca;

/*
 * Reads the file, or makes it where there is none. The file of an attempt that was interrupted
 * ("ca.new") is removed. ERROR_PRECONDITION for a file that is no CA's (cut short, changed, of
 * another trust domain, expired), that is not a regular file, that another user owns, or that has
 * any permission for group or others: it is left as it is, since all that it has signed would be
 * lost with it. `now` in seconds since 1970; where the file is to be made and `now` is before 2024
 * or after 9989, the clock is wrong: ERROR_PRECONDITION, and no file is made. Keeps no descriptor.
 */
int ca_open(struct ca **ret, int dir_fd, const char *domain, const char *node, uint64_t now,
	    struct error *err);
struct ca *ca_free(struct ca *ca);
static inline void ca_freep(struct ca **ca)
{
	*ca = ca_free(*ca);
}

/* The root certificate that its peers trust. */
const struct cert *ca_root(const struct ca *ca);

/* Signs for the ids of its own node alone, "spiffe://DOMAIN/node/NODE" and what is below, and for
 * users, "spiffe://DOMAIN/user/NAME". Others are ERROR_DENIED, as is a life that ends after the
 * CA's own. */
int ca_issue(const struct ca *ca, const struct cert_request *request, struct cert *ret,
	     struct error *err);

#endif
