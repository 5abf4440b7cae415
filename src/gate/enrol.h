/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_ENROL_H
#define NACRE_GATE_ENROL_H

#include <stdbool.h>

#include "gate/handshake.h"
#include "gate/talk.h"

/*
 * How the node's end gives a guest a certificate, the first or a newer one: connects, is told the
 * guest's public key, hands it up, and passes on what was signed with the token for the next time.
 * A value inside its owner; it does one such conversation at a time.
 */

struct enrol;

struct enrol_ops {
	/* The guest's key; enrol_answer() is due, whenever it comes. */
	void (*on_key)(struct enrol *e, const uint8_t key[GATE_KEY_SIZE]);
	/* Over. err NULL: the guest has kept what it was sent. `shaken`: it was connected to, and
	 * refused or broke off then. */
	void (*on_end)(struct enrol *e, bool secured, const struct error *err);
};

struct enrol {
	const struct enrol_ops *ops;
	struct loop *loop;
	nsec_t patience;
	struct handshake handshake;
	struct talk talk;
	bool active, connected, asked, answered, kept;
};

/* patience: for each handshake. */
void enrol_init(struct enrol *e, struct loop *loop, nsec_t patience, const struct enrol_ops *ops);
/* fd: a socket that connects. Both are taken over. */
void enrol_start(struct enrol *e, int fd, struct tls *tls);
/* chain NULL: there is none. */
void enrol_answer(struct enrol *e, const struct gate_bytes *chain,
		  const uint8_t token[GATE_TOKEN_SIZE]);
/* Without a word. */
void enrol_stop(struct enrol *e);

#endif
