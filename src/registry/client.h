/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_CLIENT_H
#define NACRE_REGISTRY_CLIENT_H

#include <stdbool.h>

#include "base/log/error.h"
#include "registry/registry.h"

/* The life of a client, and its turns. */

/* Before the sandbox closes: reads files, starts libcurl. On an error client_close() is still due.
 */
int client_open(struct registry *r, const struct registry_config *config, bool pushes,
		struct error *err);
/* Exchanges must have ended or been stopped. */
void client_close(struct registry *r);
/* One turn of at most wait_ms; fd as transfers_turn() has it. */
int client_turn(struct registry *r, int fd, int wait_ms, bool *ret_readable, struct error *err);

/* Of two for one job, of which both wait at once: r's transfers are among the other's from now on.
 * r is closed first. */
void client_join(struct registry *r, struct registry *other);
/* One turn of both. */
int client_turn_both(struct registry *r, struct registry *joined, int fd, int wait_ms,
		     bool *ret_readable, struct error *err);

#endif
