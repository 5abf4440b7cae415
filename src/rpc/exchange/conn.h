/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_CONN_H
#define NACRE_RPC_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory/list.h"
#include "base/time/clock.h"
#include "http/session.h"

/*
 * A connected socket with an HTTP/2 session on it, either side. Events of its streams are told
 * outside of the session, one conn_item at a time, so the callback may do anything, also free the
 * connection.
 *
 * Costs while idle: the session, no buffer. Output that is queued in one turn of the loop is
 * written together.
 */

/* The send buffer of a connection's socket (SO_SNDBUF) where its reader keeps up; the kernel
 * doubles it, within net.core.wmem_max. */
#define CONN_ROOM (512 * 1024)
/* So many connections at once; the others have what the kernel gives to all. */
#define CONN_ROOMY_MAX 32

struct loop;
struct conn;

struct conn_item {
	struct list member;
	void (*fn)(struct conn_item *item);
};

/* Takes fd over, also on failure. `lost` is called once, after the items that the loss made ready,
 * when the peer closed, broke the protocol, or all is said after a GOAWAY; it may free the
 * connection. */
int conn_new(struct conn **ret, struct loop *l, int fd, enum http_side side,
	     const struct http_ops *ops, void (*lost)(struct conn *c, void *owner), void *owner);
/* Closes at once; every stream gets its close op within, and `lost` is not called. Items that are
 * still in line afterwards are dropped. */
struct conn *conn_free(struct conn *c);

/* Asks a peer that has said nothing for `after` whether it is there, and takes the connection for
 * lost where nothing at all comes within `wait`. Without this call a silent peer may stay. */
void conn_keep_alive(struct conn *c, nsec_t after, nsec_t wait);

void *conn_owner(const struct conn *c);
struct loop *conn_loop(const struct conn *c);
/* NULL once the connection is lost. */
struct http_session *conn_http(const struct conn *c);
/* Whether all that was said is in the socket, also where a window kept it back. */
bool conn_is_written(const struct conn *c);
/* There is something to write, or to tell: soon. */
void conn_touch(struct conn *c);

void conn_item_init(struct conn_item *i, void (*fn)(struct conn_item *i));
/* Puts the item in line (once). list_remove(&item->member) takes it out. */
void conn_item_ready(struct conn *c, struct conn_item *i);

#endif
