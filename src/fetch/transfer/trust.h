/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_TRUST_H
#define NACRE_FETCH_TRUST_H

#include "base/log/error.h"
#include "fetch/transfer/network.h"

/*
 * Asks the node's policy (fetch/transfer/policy.h) whether what the reference names may be had:
 * `root`, the manifest or index as it was sent, names all else by digest. Where signatures are
 * wanted, they are looked for beside the image, in the tag "sha256-HEX.sig", and who has signed is
 * told as a note; in a pull the core is told all of it (VERDICT). Without a policy everything may.
 * ERROR_PRECONDITION "SignatureValidationFailed: ...", also where there are signatures that break
 * their rules.
 */
int trust_check(struct network *n, const struct network_document *root, struct error *err);

/* Likewise of a digest; that it may not be had is what is told too, and no error. */
int trust_verify(struct network *n, const char *digest, struct error *err);

#endif
