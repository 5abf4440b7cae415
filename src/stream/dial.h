/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_DIAL_H
#define NACRE_STREAM_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * A request for a connection to a port of a pod: its sockets are made in the pod, or one is
 * connected already. It outlives the client that wanted it, so it is always answered, once.
 */

struct loop;

enum { DIAL_IP4, DIAL_IP6, DIAL_COUNT };

struct dial {
	void (*done)(void *userdata, struct dial *d); /* NULL: nobody wants it any more */
	void *userdata;
	struct loop *loop; /* of who asks */
	uint16_t port;
	int fds[DIAL_COUNT]; /* non-blocking; -1: none. Taken over by `done` */
	bool connected;      /* the first one is; else none is */
	struct error err;    /* code 0: none */
};

/* NULL without memory. */
struct dial *dial_new(void (*done)(void *userdata, struct dial *d), void *userdata);
/* With its sockets. */
struct dial *dial_free(struct dial *d);
/* fds and err are filled in: tells who wants it, and frees it. */
void dial_answer(struct dial *d);

#endif
