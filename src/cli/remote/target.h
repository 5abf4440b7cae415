/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TARGET_H
#define NACRE_CLI_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/text/args.h"

/*
 * Which daemon a command speaks to: that at a socket of this host, or one elsewhere, over mutual
 * TLS, with a user's certificate.
 */
#define TARGET_OWNED_MAX 16

struct client_target {
	const char *socket; /* NULL: elsewhere */
	const char *host, *port;
	const char *server_name; /* that its certificate must have */
	const char *ca, *cert, *key;
	/* Texts that were made for it. */
	char *owned[TARGET_OWNED_MAX];
	size_t n_owned;
};

#define TARGET_PORT "7443"
#define CLI_SOCKET_DEFAULT "/run/nacre/nacre.sock"

/* By --socket, --host and --tls-…, behind the command before in front of it; else by --context;
 * else by $NACRE_HOST, $NACRE_SOCKET or $NACRE_CONTEXT; else the context in use; else the usual
 * socket. */
int target_settle(struct client_target *ret, const struct args *before, const struct args *after,
		  struct error *err);
/* Also where it was never settled. */
void target_done(struct client_target *t);
/* For people: the path of the socket, or "HOST:PORT". The caller frees it. */
char *target_text(const struct client_target *t);
/* ERROR_UNSUPPORTED where the daemon is elsewhere: `what` needs that it is here. */
int target_check_local(const struct client_target *t, const char *what, struct error *err);

/* Where a user keeps certificates: $NACRE_CERT_PATH, else "nacre" in $XDG_CONFIG_HOME or ~/.config.
 * The caller frees it; NULL: there is no home. */
char *target_directory(void);

#endif
