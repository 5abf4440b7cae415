/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_SERVER_H
#define NACRE_STREAM_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "stream/command.h"

/*
 * The streaming server of the CRI: who has a URL, which is good for one connection, speaks with a
 * command, with a container's program or with ports of a pod: over streams of SPDY/3.1 (remote
 * command, version 1 to 4 of the protocol; port-forward), over channels of a WebSocket (version 1,
 * 4 and 5, also in base64), or over SPDY/3.1 in a WebSocket (port-forward).
 *
 * It listens on a loopback address, from the first URL on. A connection shows its token before
 * anything else of it is read than the head of a request, and has STREAM_TOKEN_PATIENCE for that;
 * then STREAM_PATIENCE for opening its streams. Any user of the host can connect, so those without
 * a token do not count among STREAM_CONNECTIONS_MAX: of them at most STREAM_STRANGERS_MAX are kept.
 * Where one more comes the oldest is closed that is not of the daemon's user, who alone is told
 * tokens; one of that user's is closed for another of the same only. What it does not read holds
 * the command up, and what the command does not read holds the connection up; nothing is kept in
 * between but STREAM_WAITING_MAX bytes.
 */

#define STREAM_TOKEN_LIFE (60 * NSEC_PER_SEC)
#define STREAM_TOKENS_MAX 1000
#define STREAM_CONNECTIONS_MAX 1024
#define STREAM_STRANGERS_MAX 64

struct loop;
struct stream_server;

/* address: stream/address.h; -EINVAL. */
int stream_server_new(struct stream_server **ret, struct loop *l, const char *address);
/* Closes all connections. */
struct stream_server *stream_server_free(struct stream_server *s);

/* A URL for one connection, of at most `size` bytes. ERROR_EXHAUSTED past STREAM_TOKENS_MAX. Takes
 * command->userdata over where it succeeds. */
int stream_server_offer(struct stream_server *s, const struct stream_command *command, char *ret,
			size_t size, struct error *err);

#endif
