/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_REMOTE_H
#define NACRE_CLI_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "cli/remote/target.h"

/*
 * The program that does TLS for this one (nacre-remote, gate/remote_main.c): started for each
 * connection, and ended with it.
 */

struct remote;

/* Waits until the node has taken the certificate; *ret_fd is a socket to speak HTTP/2 over, the
 * caller's. ERROR_UNAVAILABLE with the sentence of the program. */
int remote_connect(struct remote **ret, const struct client_target *t, int *ret_fd,
		   struct error *err);
/* Why the connection was lost, where that is known: copies it to err. */
void remote_explain(struct remote *r, struct error *err);
/* When the socket is closed. Takes NULL. */
struct remote *remote_free(struct remote *r);

/* A new private key, in PEM, and its public half in DER; both are the caller's to free, the first
 * to be overwritten before. */
int remote_new_key(char **ret_pem, uint8_t **ret_public, size_t *ret_len, struct error *err);

#endif
