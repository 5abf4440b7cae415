/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_FORWARD_H
#define NACRE_STREAM_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/dial.h"
#include "stream/spdy.h"

/*
 * Ports of a pod over one connection of the streaming server (portforward.k8s.io); private to this
 * area. A client opens two streams for each connection to a port, "error" and "data", with the same
 * requestID. What goes wrong is said in the first of the two; both end with the connection.
 */

#define FORWARD_PAIRS_MAX 256

struct loop;
struct forward;

/* The connection that it speaks over. */
struct forward_client {
	void (*reply)(void *userdata, uint32_t stream);
	void (*data)(void *userdata, uint32_t stream, const void *data, size_t len, bool fin);
	void (*reset)(void *userdata, uint32_t stream, uint32_t status);
	bool (*is_full)(void *userdata);
	/* Nothing more is read of the client meanwhile. */
	void (*hold)(void *userdata, bool held);
	void *userdata;
};

struct forward_config {
	struct loop *loop;
	struct forward_client client;
	/* Makes the sockets for a port: dial_answer(). */
	void (*dial)(void *userdata, struct dial *d);
	void *userdata;
};

/* NULL without memory. */
struct forward *forward_new(const struct forward_config *config);
struct forward *forward_free(struct forward *f);

/* Takes an event of the client: SPDY_OPEN, SPDY_DATA, SPDY_RESET. */
void forward_event(struct forward *f, const struct spdy_event *e);
/* client.is_full() is false again. */
void forward_room(struct forward *f);

#endif
