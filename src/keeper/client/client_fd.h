/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_FD_H
#define NACRE_KEEPER_CLIENT_FD_H

#include "keeper/client/client_model.h"

/* Descriptors on their way to a keeper (io/unix.h, fdchan); for the units behind client.h. */

/* A number that the keeper does not know yet; 0 means none. */
int client_draw_token(uint64_t *ret);
/* Sends one descriptor, which stays the caller's, ahead of the request that names its token. */
int client_send_fd(const struct keeper_client *client, int fd, uint64_t *ret_token,
		   struct error *err);
/* Turns the failure of sending, a negative errno, into an error: ERROR_UNAVAILABLE where the keeper
 * is gone or does not read. */
void client_passing_error(int r, struct error *err);

#endif
