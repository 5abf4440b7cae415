/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_CHANNEL_H
#define NACRE_FETCH_CHANNEL_H

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"

/* The helper's end of the socket to the core. */

/* Waits for one message; its texts live until the next call. */
int channel_receive(int sock_fd, struct fetchmsg *ret, struct error *err);
#define CHANNEL_FDS_MAX 2

/* The same with the descriptors that came along, which are the caller's; on an error none is. */
int channel_receive_fds(int sock_fd, struct fetchmsg *ret, int ret_fds[CHANNEL_FDS_MAX],
			size_t *ret_n_fds, struct error *err);
int channel_send(int sock_fd, const struct fetchmsg *m, struct error *err);
/* Makes a text fit for a message: control characters become '?', and an incomplete last character
 * is cut off. */
void channel_clean(char *text);
/* Sends the error as the last message; bytes that no text may hold become '?'. */
void channel_send_error(int sock_fd, const struct error *what);

#endif
