/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_fd.h"

#include <errno.h>
#include <sys/random.h>

#include "io/unix.h"

void client_passing_error(int r, struct error *err)
{
	(void)error_set(err, r, "pass descriptors to the keeper");
	if (r == -EPIPE || r == -ECONNRESET || r == -EAGAIN)
		err->kind = ERROR_UNAVAILABLE;
}

int client_draw_token(uint64_t *ret)
{
	do {
		ssize_t n = getrandom(ret, sizeof(*ret), 0);

		if (n != (ssize_t)sizeof(*ret))
			return n < 0 ? -errno : -EIO;
	} while (*ret == 0);
	return 0;
}

int client_send_fd(const struct keeper_client *client, int fd, uint64_t *ret_token,
		   struct error *err)
{
	int r = client_draw_token(ret_token);

	if (r < 0)
		return error_set(err, r, "draw a token");
	r = fdchan_send(client->connection->channel_fd, *ret_token, client->target, fd);
	if (r < 0)
		client_passing_error(r, err);
	return r;
}
