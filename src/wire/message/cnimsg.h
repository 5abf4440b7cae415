/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CNIMSG_H
#define NACRE_WIRE_CNIMSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "wire/message/keyed.h"

/*
 * Messages between the daemon and nacre-cni: packets of a SOCK_SEQPACKET socket, each a list of
 * words "KEY=VALUE" with a NUL behind each. The keys are those of cnimsg_keys alone, a value has no
 * control characters and is valid UTF-8; the helper has read what strangers wrote, so the daemon
 * checks its packets as well.
 *
 * The daemon says, each with a `number` that the answer has again:
 *   verb=add     container, pod (its name), namespace, uid; network where not the first
 *                one of the directory is meant; ip, mac, port (PROTOCOL,HOST,HOSTPORT,PORT),
 *                rate-in, rate-out (bits per second), server, search, option: any number of
 *                those that may repeat. The descriptor of the network namespace comes with it.
 *   verb=del     container
 *   verb=check   container
 *   verb=keep    once, first: all other containers that have a record are deleted; container,
 *                any number of times.
 *
 * Answers: verb=done and number; where it failed kind (enum error_kind) and text; for add:
 * network, ip (with length), mac, mtu, route. At any time the helper says verb=state with ready
 * (yes or no), network and text.
 */

#define CNIMSG_SIZE_MAX 131072
#define CNIMSG_WORDS_MAX 4096

struct cnimsg {
	struct keyed words;
};

/* Appends a word; -EINVAL: no such key, or a value that none can be. Or -ENOMEM. */
int cnimsg_put(struct buf *b, const char *key, const char *fmt, ...) _printf_(3, 4) _must_check_;

/* -EBADMSG: that is none. The packet stays where it is meanwhile. */
int cnimsg_read(struct cnimsg *ret, const void *data, size_t len);

/* The value; "" where there is none. */
const char *cnimsg_get(const struct cnimsg *m, const char *key);
/* The next value of a key behind *at, which begins with NULL. NULL: no more. */
const char *cnimsg_next(const struct cnimsg *m, const char *key, const char **at);

#endif
