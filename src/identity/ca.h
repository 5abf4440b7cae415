/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_CA_H
#define NACRE_IDENTITY_CA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "identity/cert.h"

/*
 * The certificate authority of a node: an Ed25519 key that signs the certificates of the node's own
 * end, of its instances, workloads and users. It is made at first start, or given, and lives in one
 * file, "ca" (mode 0600) of a directory that is handed in, which is there whole or not at all.
 *
 * Rotation: the file has two authorities for a while, and peers trust both roots. The older one
 * goes on to sign for the node itself, so that whoever knows the older root alone still believes
 * the node; the newer one signs for users at once, and for what is below the node from `active_at`
 * on, when all peers have got the new bundle. The older one is retired when all that it has signed
 * is over.
 */

#define CA_AUTHORITIES_MAX 2

struct ca;

enum ca_change {
	CA_KEEP,
	CA_ROTATE, /* makes a new authority, or takes the one that is given now */
	CA_RETIRE, /* forgets the older of two */
	CA_CHANGE_COUNT
};

struct ca_config {
	int dir_fd;
	const char *domain, *node;
	uint64_t now; /* seconds since 1970 */
	enum ca_change change;
	uint64_t prepare; /* seconds from a rotation until the new one signs for instances */
	bool given;       /* by the two files, in PEM; no descriptor is taken over */
	int key_fd, cert_fd;
};

/*
 * Reads the file, or makes it where there is none; then changes what is asked for. The file of an
 * attempt that was interrupted ("ca.new") is removed. ERROR_PRECONDITION for a file that is no CA's
 * (cut short, changed, of another trust domain, expired), that is not a regular file, that another
 * user owns, or that has any permission for group or others: it is left as it is, since all that it
 * has signed would be lost with it. Where an authority is to be made and the clock is before 2024
 * or after 9989, the clock is wrong: ERROR_PRECONDITION, and no file is made.
 *
 * An authority that is given is copied into the file; another one than before begins a rotation.
 * Its key and certificate are held to the same rules (identity/ca_given.h).
 */
int ca_open(struct ca **ret, const struct ca_config *config, struct error *err);
struct ca *ca_free(struct ca *ca);
static inline void ca_freep(struct ca **ca)
{
	*ca = ca_free(*ca);
}

/* The roots that its peers trust, in DER, one behind the other: the oldest first. */
const uint8_t *ca_bundle(const struct ca *ca, size_t *ret_len);
/* When the last rotation began, and when its authority begins to sign for instances; 0: there is
 * one authority. */
uint64_t ca_rotated_at(const struct ca *ca);
uint64_t ca_active_at(const struct ca *ca);

/* Signs for the ids of its own node alone, "spiffe://DOMAIN/node/NODE" and what is below, and for
 * users, "spiffe://DOMAIN/user/NAME". Others are ERROR_DENIED, as is a life that ends after the
 * CA's own. `now` in seconds since 1970. */
int ca_issue(const struct ca *ca, const struct cert_request *request, uint64_t now,
	     struct cert *ret, struct error *err);

#endif
