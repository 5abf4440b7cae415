/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IDENTITY_CA_GIVEN_H
#define NACRE_IDENTITY_CA_GIVEN_H

#include "base/log/error.h"
#include "identity/cert.h"
#include "identity/key.h"

/* Bytes of the certificate. */
#define CA_GIVEN_MAX 1536

/*
 * A certificate authority that an administrator has made elsewhere: two files in PEM, the private
 * key (PKCS #8, Ed25519, not encrypted) and the certificate, a root that is signed by this key.
 * Whoever else can read the key may have kept it: ERROR_PRECONDITION for any permission for group
 * or others, and for a file of another user. Whether it may sign for this node is not looked at
 * here.
 */
int ca_given_read(int key_fd, int cert_fd, struct key **ret_key, struct cert *ret_root,
		  struct error *err);

/* The rules of a file with a private key: regular, of this user, mode 0600 or less. */
int ca_given_check_file(int fd, struct error *err);

#endif
