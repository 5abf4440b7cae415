/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_TYPING_H
#define NACRE_KEEPER_TYPING_H

#include <stdbool.h>
#include <stddef.h>

#include "api/instance.pb-c.h"
#include "base/log/error.h"
#include "cell/spec.h"

/*
 * The input that the client of a call sends to a program: the messages behind the first one, one
 * after the other, each when the program has taken the one before it. A program that no longer
 * reads is no failure: input for it is dropped. A value.
 */

struct rpc_call;
struct typing;

struct typing_ops {
	/* As keeper_exec_write(), whose `done` is to call typing_written(). */
	int (*write)(struct typing *t, const void *data, size_t len, bool close, struct error *err);
	int (*resize)(struct typing *t, const struct terminal_size *size, struct error *err);
	int (*signal)(struct typing *t, int sig, struct error *err);
	/* Ends the call: a message makes no sense. */
	void (*refuse)(struct typing *t, const struct error *err);
	/* The `input` of a message; NULL where it has none. */
	const Nacre__Instance__V1__StreamInput *(*input)(const ProtobufCMessage *message);
};

struct typing {
	struct rpc_call *call;
	const struct typing_ops *ops;
	bool wanted; /* stdin was asked for */
	bool closed; /* nothing more goes there */
	bool stopped;
};

/* Takes the messages of the call from now on, until it ends. */
void typing_start(struct typing *t, struct rpc_call *call, const struct typing_ops *ops,
		  bool wanted);
/* The write in hand is done, or cannot be (err). */
void typing_written(struct typing *t, const struct error *err);
/* The program has ended: nothing that comes now goes anywhere. */
void typing_stop(struct typing *t);

#endif
